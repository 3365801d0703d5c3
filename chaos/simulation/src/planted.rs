//! Mistakes that a simulation makes on purpose. A suite that does not catch them proves nothing when it is green.
//!
//! They live outside the code under test: in the disk below it, and in the backend between gateway and raft.

mod mindspore;
mod scheduler;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;
use tripod_gateway::{
    Admin, ChangeError, Future, Leadership, LevelError, LevelRequest, Levels, Measures, MembersAnswer,
    MembersRequest, ProposeError, Replica, SaveError, Saving, Status,
};
use tripod_raft::{Applied, Handle};
use tripod_state::ids::{Incarnation, LogIndex, NodeId, TaskId};
use tripod_state::{Answer, Command, Envelope, Scope, State, barrier, kv, ray, task};

/// A mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Planted {
    /// Disks say that they have written what they have not: writes are acknowledged before they are durable.
    LyingDisk,
    /// Disks say that they have written a vote, and have not.
    ForgottenVote,
    /// Members tell leaders that ask which vote they hold the one that they held when they started.
    StaleVote,
    /// A follower answers linearizable reads from its own memory.
    StaleReads,
    /// An older life of a task is taken for its newest.
    IncarnationCheckSkipped,
    /// Now and then an arrival at a barrier is not recorded.
    BarrierArrivalDropped,
    /// Now and then an increment is applied twice.
    DoubleApply,
    /// A node that joins is given an id that another one had.
    ReusedId,
    /// Now and then an object store's report is acknowledged and forgotten.
    ResultLost,
    /// What a worker referred to that is given up is never freed.
    HoldsForgotten,
    /// Now and then a task is taken from a worker that has just been given it.
    TaskTakenAway,
    /// Now and then it is acknowledged that tasks are given back, and forgotten.
    GiveBackForgotten,
    /// What tasks submit is recorded as if a driver had: their next attempts submit it once more.
    ParentForgotten,
    /// A later version of an export is acknowledged at once, and takes effect after what comes behind it.
    ExportLate,
    /// Every node of MindSpore is told that its rank is 0.
    RankTwice,
    /// Now and then it is acknowledged that a node of MindSpore tells all something, and forgotten.
    EventLost,
}

impl Planted {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::LyingDisk,
        Self::ForgottenVote,
        Self::StaleVote,
        Self::StaleReads,
        Self::IncarnationCheckSkipped,
        Self::BarrierArrivalDropped,
        Self::DoubleApply,
        Self::ReusedId,
        Self::ResultLost,
        Self::HoldsForgotten,
        Self::TaskTakenAway,
        Self::GiveBackForgotten,
        Self::ParentForgotten,
        Self::ExportLate,
        Self::RankTwice,
        Self::EventLost,
    ];

    /// Whether it is made in schedulers only.
    #[must_use]
    pub fn needs_scheduler(self) -> bool {
        matches!(
            self,
            Self::ResultLost
                | Self::HoldsForgotten
                | Self::TaskTakenAway
                | Self::GiveBackForgotten
                | Self::ParentForgotten
                | Self::ExportLate
        )
    }

    /// Whether it is made in clusters of MindSpore only.
    #[must_use]
    pub fn needs_mindspore(self) -> bool {
        matches!(self, Self::RankTwice | Self::EventLost)
    }
}

/// Of so many commands of the kind one is treated wrongly.
const ONE_OF: u64 = 5;

/// How late something takes effect.
const LATE: Duration = Duration::from_secs(1);

/// The backend of a simulated node: the real one, with a mistake or without.
pub(crate) struct PlantedBackend {
    inner: Arc<dyn Replica>,
    admin: Arc<dyn Admin>,
    node: NodeId,
    planted: Option<Planted>,
    seen: AtomicU64,
}

impl PlantedBackend {
    pub(crate) fn new(handle: Handle, node: NodeId, planted: Option<Planted>) -> Self {
        let handle = Arc::new(handle);
        let inner = Arc::clone(&handle) as Arc<dyn Replica>;
        Self { inner, admin: handle, node, planted, seen: AtomicU64::new(0) }
    }

    fn is_this_one(&self) -> bool {
        self.seen.fetch_add(1, Ordering::Relaxed) % ONE_OF == ONE_OF - 1
    }

    /// Lets an increment through twice.
    fn twice(&self, envelope: Envelope) -> Future<Result<Applied, ProposeError>> {
        let first = self.inner.propose(Envelope { stamp: None, command: envelope.command.clone() });
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            first.await?;
            inner.propose(envelope).await
        })
    }

    /// Lets a command through, and before or after it another one.
    fn with(
        &self,
        before: Option<ray::Command>,
        envelope: Envelope,
        after: Option<ray::Command>,
    ) -> Future<Result<Applied, ProposeError>> {
        let inner = Arc::clone(&self.inner);
        let own = |command| Envelope { stamp: None, command: Command::Ray(command) };
        Box::pin(async move {
            if let Some(before) = before {
                inner.propose(own(before)).await?;
            }
            let applied = inner.propose(envelope).await?;
            if let Some(after) = after {
                inner.propose(own(after)).await?;
            }
            Ok(applied)
        })
    }

    /// What becomes of a command to a scheduler.
    fn scheduled(&self, envelope: Envelope) -> Future<Result<Applied, ProposeError>> {
        let Command::Ray(command) = &envelope.command else { return self.inner.propose(envelope) };
        let answered = |answer| {
            let applied = Applied { index: self.inner.applied_index(), reply: Ok(Answer::Ray(answer)) };
            Box::pin(std::future::ready(Ok(applied))) as Future<_>
        };
        match self.planted {
            Some(Planted::ResultLost) => {
                // What a store says that it holds would tell.
                if matches!(command, ray::Command::Lead { decision: ray::Decision::Reconcile { .. }, .. }) {
                    return answered(ray::Answer::Done);
                }
                match scheduler::taken(command) {
                    Some(answer) if self.is_this_one() => answered(answer),
                    _ => self.inner.propose(envelope),
                }
            }
            Some(Planted::HoldsForgotten) => {
                let mut before = None;
                self.inner.read(&mut |state: &State| before = scheduler::keep_forever(state, command));
                self.with(before, envelope, None)
            }
            Some(Planted::TaskTakenAway) => {
                let after = scheduler::take_back(command).filter(|_| self.is_this_one());
                self.with(None, envelope, after)
            }
            Some(Planted::GiveBackForgotten) => match scheduler::given_back(command) {
                Some(answer) if self.is_this_one() => answered(answer),
                _ => self.inner.propose(envelope),
            },
            Some(Planted::ParentForgotten) => {
                let Envelope { stamp, command: Command::Ray(mut command) } = envelope else { unreachable!() };
                scheduler::without_parents(&mut command);
                self.inner.propose(Envelope { stamp, command: Command::Ray(command) })
            }
            Some(Planted::ExportLate) => match scheduler::exported_again(command) {
                Some(export) => {
                    let inner = Arc::clone(&self.inner);
                    tokio::spawn(async move {
                        tokio::time::sleep(LATE).await;
                        // Who sent it believes that it is there.
                        drop(inner.propose(Envelope { stamp: None, command: Command::Ray(export) }).await);
                    });
                    answered(ray::Answer::Done)
                }
                None => self.inner.propose(envelope),
            },
            _ => self.inner.propose(envelope),
        }
    }

    /// What becomes of a command to a scheduler of MindSpore.
    fn clustered(&self, envelope: Envelope) -> Future<Result<Applied, ProposeError>> {
        let Command::Mindspore(command) = &envelope.command else { return self.inner.propose(envelope) };
        match self.planted {
            Some(Planted::EventLost) if mindspore::is_event(command) && self.is_this_one() => {
                let answer = Answer::Mindspore(mindspore::ACCEPTED);
                let applied = Applied { index: self.inner.applied_index(), reply: Ok(answer) };
                Box::pin(std::future::ready(Ok(applied)))
            }
            Some(Planted::RankTwice) => {
                let proposed = self.inner.propose(envelope);
                Box::pin(async move {
                    let mut applied = proposed.await?;
                    if let Ok(Answer::Mindspore(answer)) = &mut applied.reply {
                        mindspore::make_first(answer);
                    }
                    Ok(applied)
                })
            }
            _ => self.inner.propose(envelope),
        }
    }

    /// The life that is current, whatever life the caller is.
    fn current(&self, scope: Scope, task: TaskId) -> Option<Incarnation> {
        let mut current = None;
        self.inner.read(&mut |state: &State| {
            let report = state.tasks(scope, &[task]).ok();
            current = report.and_then(|report| report.tasks.first().map(|info| info.incarnation));
        });
        current
    }

    fn unfenced(&self, mut envelope: Envelope) -> Future<Result<Applied, ProposeError>> {
        match &mut envelope.command {
            Command::Task(
                task::Command::Register { scope, task, incarnation, .. }
                | task::Command::RegisterFrom { scope, task, incarnation, .. },
            ) => {
                // An older life: lives are numbered in their order here.
                let current = self.current(*scope, *task);
                *incarnation = current.map_or(*incarnation, |current| current.max(*incarnation));
            }
            Command::Task(task::Command::RefuseBeat { scope, .. }) => {
                let mut service = None;
                let job = scope.job;
                self.inner.read(&mut |state: &State| service = state.job(job).map(|job| job.service));
                if let Some(service) = service {
                    let index = self.inner.applied_index();
                    let applied = Applied { index, reply: Ok(Answer::Registered { service }) };
                    return Box::pin(std::future::ready(Ok(applied)));
                }
            }
            _ => {}
        }
        self.inner.propose(envelope)
    }
}

impl Replica for PlantedBackend {
    fn propose(&self, envelope: Envelope) -> Future<Result<Applied, ProposeError>> {
        match (self.planted, &envelope.command) {
            (Some(Planted::DoubleApply), Command::Kv(kv::Command::Increment { .. }))
                if self.is_this_one() =>
            {
                self.twice(envelope)
            }
            (Some(Planted::BarrierArrivalDropped), Command::Barrier(barrier::Command::Arrive { .. }))
                if self.is_this_one() =>
            {
                Box::pin(std::future::pending())
            }
            (Some(Planted::IncarnationCheckSkipped), Command::Task(_)) => self.unfenced(envelope),
            (Some(_), Command::Ray(_)) => self.scheduled(envelope),
            (Some(_), Command::Mindspore(_)) => self.clustered(envelope),
            _ => self.inner.propose(envelope),
        }
    }

    fn read_barrier(&self) -> Future<Result<LogIndex, ProposeError>> {
        let follows = self.leadership().borrow().leader != Some(self.node);
        if self.planted == Some(Planted::StaleReads) && follows {
            return Box::pin(std::future::ready(Ok(self.inner.applied_index())));
        }
        self.inner.read_barrier()
    }

    fn wait_applied(&self, index: LogIndex) -> Future<Result<(), ProposeError>> {
        self.inner.wait_applied(index)
    }

    fn read(&self, look: &mut dyn FnMut(&State)) {
        self.inner.read(look);
    }

    fn applied_index(&self) -> LogIndex {
        self.inner.applied_index()
    }

    fn leadership(&self) -> watch::Receiver<Leadership> {
        self.inner.leadership()
    }

    fn last_contact(&self) -> Option<Instant> {
        self.inner.last_contact()
    }

    fn ask_leader(&self, question: Bytes) -> Future<Result<Bytes, ProposeError>> {
        self.inner.ask_leader(question)
    }
}

impl Admin for PlantedBackend {
    fn status(&self) -> Status {
        self.admin.status()
    }

    fn measures(&self) -> Measures {
        self.admin.measures()
    }

    fn transfer_leadership(&self, to: Option<NodeId>) -> Future<Result<(), ProposeError>> {
        self.admin.transfer_leadership(to)
    }

    fn levels(&self, request: LevelRequest) -> Future<Result<Levels, LevelError>> {
        self.admin.levels(request)
    }

    fn save_snapshot(&self) -> Result<Saving, SaveError> {
        self.admin.save_snapshot()
    }

    fn members(&self, request: MembersRequest) -> Future<Result<MembersAnswer, ChangeError>> {
        let joins = matches!(request, MembersRequest::Join { .. });
        let asked = self.admin.members(request);
        if self.planted != Some(Planted::ReusedId) || !joins {
            return asked;
        }
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let MembersAnswer::Join { cluster_id, node } = asked.await? else { unreachable!("it joins") };
            let mut given = node;
            inner.read(&mut |state: &State| {
                let removed = (1..node.0).map(NodeId).find(|node| state.registry().is_removed(*node));
                given = removed.unwrap_or(node);
            });
            Ok(MembersAnswer::Join { cluster_id, node: given })
        })
    }
}
