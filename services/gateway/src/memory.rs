//! A backend without replication: commands apply to a [`State`] at once. For tests of front ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::time::Instant;
use tripod_raft::{
    Applied, Comparisons, DiskStatus, GivenUp, Hooks, Leadership, Measures, MemberStatus, NodeSilence,
    ProposeError, Role, Status,
};
use tripod_state::ids::{LogIndex, NodeId, Term, TimeMs};
use tripod_state::{ApplyContext, Envelope, State};

use crate::backend::{Admin, Future, Replica};
use crate::clock::{self, Clock};

const NODE: NodeId = NodeId(1);

/// What becomes of one proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mishap {
    /// None: it is applied, and the proposer is told.
    Success,
    /// It is applied, but the proposer is told that its outcome is unknown.
    UnknownButApplied,
    /// It is lost, and the proposer is told that its outcome is unknown.
    UnknownAndLost,
    /// It is refused for want of a leader.
    NoLeader,
    /// It is refused for a full queue.
    Overloaded,
    /// It is refused for full disks.
    DiskFull,
    /// It is applied after so long, and after all before it that are slow, too.
    Slow(Duration),
    /// It is refused for want of memory for its job.
    JobFull,
    /// It is refused by a leader whose level is lower than this node knows.
    Level,
    /// It never gets an answer, and is lost.
    Silence,
}

/// One state, which leads from the start. [`crate::Gateway::in_memory`] makes one.
pub struct MemoryBackend {
    inner: Arc<Inner>,
}

struct Inner {
    state: RwLock<State>,
    applied: watch::Sender<LogIndex>,
    leadership: watch::Sender<Leadership>,
    stopped: AtomicBool,
    /// Held while a command applies and its effects are told, so that effects come in log order.
    log: Mutex<()>,
    hooks: OnceLock<Hooks>,
    clock: Clock,
    mishaps: Mutex<Mishaps>,
    /// Whose turn it is of those that are slow, which are taken in the order in which they came.
    slow: tokio::sync::Mutex<()>,
    measures: Mutex<Measures>,
}

type Mishaps = Box<dyn FnMut(&Envelope) -> Mishap + Send>;

impl MemoryBackend {
    /// [`Self::beginning`] now, by this machine's clock.
    pub(crate) fn new() -> Arc<Self> {
        Self::beginning(clock::wall())
    }

    /// An empty state that leads. Its clock starts at `started` and runs with tokio's, so that a
    /// test that pauses or advances one does so with both.
    pub(crate) fn beginning(started: TimeMs) -> Arc<Self> {
        let started_at = Instant::now();
        let clock = move || TimeMs(started.0.saturating_add(clock::millis(started_at.elapsed())));
        let leadership = Leadership { leader: Some(NODE), term: Term(1), ready_here: true };
        let inner = Inner {
            state: RwLock::default(),
            applied: watch::Sender::new(LogIndex(0)),
            leadership: watch::Sender::new(leadership),
            stopped: AtomicBool::new(false),
            log: Mutex::default(),
            hooks: OnceLock::new(),
            clock: Arc::new(clock),
            mishaps: Mutex::new(Box::new(|_| Mishap::Success)),
            slow: tokio::sync::Mutex::default(),
            measures: Mutex::default(),
        };
        Arc::new(Self { inner: Arc::new(inner) })
    }

    pub(crate) fn clock(&self) -> Clock {
        Arc::clone(&self.inner.clock)
    }

    /// Tells `hooks` of everything from now on. Only the first call counts.
    pub(crate) fn hook(&self, hooks: Hooks) {
        let first = self.inner.hooks.set(hooks).is_ok();
        assert!(first, "a backend has one gateway");
    }

    /// Decides the fate of every proposal from now on.
    pub fn set_mishaps(&self, mishaps: impl FnMut(&Envelope) -> Mishap + Send + 'static) {
        *self.inner.mishaps.lock() = Box::new(mishaps);
    }

    /// Has the node tell these figures of itself.
    pub fn set_measures(&self, measures: Measures) {
        *self.inner.measures.lock() = measures;
    }

    /// The leader is gone, until [`Self::elect`].
    pub fn depose(&self) {
        self.inner.leadership.send_modify(|now| {
            now.leader = None;
            now.ready_here = false;
        });
    }

    /// This node leads, in a new term.
    pub fn elect(&self) {
        self.inner.leadership.send_modify(|now| {
            *now = Leadership { leader: Some(NODE), term: Term(now.term.0 + 1), ready_here: true };
        });
    }

    /// The node stops: nothing is replicated any more.
    pub fn stop(&self) {
        self.inner.stopped.store(true, Ordering::SeqCst);
        self.depose();
    }

    /// The state as it is now. O(1).
    #[must_use]
    pub fn state(&self) -> State {
        self.inner.state.read().clone()
    }

    /// Puts another state in place of this one, as an installed snapshot does.
    pub fn replace(&self, state: State) {
        let _log = self.inner.log.lock();
        *self.inner.state.write() = state;
        if let Some(hooks) = self.inner.hooks.get() {
            (hooks.replaced)();
        }
    }
}

impl Inner {
    async fn propose(&self, envelope: Envelope) -> Result<Applied, ProposeError> {
        self.leader()?;
        let mishap = (self.mishaps.lock())(&envelope);
        match mishap {
            Mishap::Success => Ok(self.apply(envelope)),
            Mishap::UnknownButApplied => {
                self.apply(envelope);
                Err(ProposeError::Unknown("mishap: applied".into()))
            }
            Mishap::UnknownAndLost => Err(ProposeError::Unknown("mishap: lost".into())),
            Mishap::NoLeader => Err(ProposeError::NoLeader("mishap".into())),
            Mishap::Overloaded => Err(ProposeError::Overloaded("mishap".into())),
            Mishap::DiskFull => Err(ProposeError::DiskFull("mishap".into())),
            Mishap::Slow(takes) => {
                let _alone = self.slow.lock().await;
                tokio::time::sleep(takes).await;
                Ok(self.apply(envelope))
            }
            Mishap::Level => Err(ProposeError::Level("mishap".into())),
            Mishap::JobFull => Err(ProposeError::JobFull("mishap".into())),
            Mishap::Silence => std::future::pending().await,
        }
    }

    fn apply(&self, envelope: Envelope) -> Applied {
        let _log = self.log.lock();
        let index = LogIndex(self.applied.borrow().0 + 1);
        let context = ApplyContext { index, term: self.term(), now_ms: (self.clock)() };
        let outcome = self.state.write().apply(&context, envelope);
        if let Some(hooks) = self.hooks.get() {
            (hooks.effects)(&outcome.effects);
        }
        self.applied.send_replace(index);
        Applied { index, reply: outcome.reply }
    }

    fn term(&self) -> Term {
        self.leadership.borrow().term
    }

    fn leader(&self) -> Result<NodeId, ProposeError> {
        if self.stopped.load(Ordering::SeqCst) {
            return Err(ProposeError::Stopped("stopped".into()));
        }
        let leader = self.leadership.borrow().leader;
        leader.ok_or_else(|| ProposeError::NoLeader("deposed".into()))
    }
}

impl Replica for MemoryBackend {
    fn propose(&self, envelope: Envelope) -> Future<Result<Applied, ProposeError>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move { inner.propose(envelope).await })
    }

    fn read_barrier(&self) -> Future<Result<LogIndex, ProposeError>> {
        let index = self.inner.leader().map(|_| *self.inner.applied.borrow());
        Box::pin(std::future::ready(index))
    }

    fn wait_applied(&self, index: LogIndex) -> Future<Result<(), ProposeError>> {
        let mut applied = self.inner.applied.subscribe();
        Box::pin(async move {
            let reached = applied.wait_for(|applied| *applied >= index).await;
            reached.map(|_| ()).map_err(|_| ProposeError::Stopped("dropped".into()))
        })
    }

    fn read(&self, look: &mut dyn FnMut(&State)) {
        look(&self.inner.state.read());
    }

    fn applied_index(&self) -> LogIndex {
        *self.inner.applied.borrow()
    }

    fn leadership(&self) -> watch::Receiver<Leadership> {
        self.inner.leadership.subscribe()
    }

    fn last_contact(&self) -> Option<Instant> {
        None
    }

    fn ask_leader(&self, question: Bytes) -> Future<Result<Bytes, ProposeError>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            inner.leader()?;
            let hooks = inner.hooks.get().ok_or_else(|| ProposeError::NoLeader("no gateway".into()))?;
            hooks.asks.ask(question).await.map_err(ProposeError::NoLeader)
        })
    }

    fn ask_node(
        &self,
        node: NodeId,
        question: Bytes,
        _patience: Duration,
    ) -> Future<Result<Bytes, NodeSilence>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let hooks = inner.hooks.get().filter(|_| node == NODE).ok_or(NodeSilence::NoMember)?;
            hooks.asks.ask_here(question).await.map_err(NodeSilence::Refuses)
        })
    }
}

impl Admin for MemoryBackend {
    fn status(&self) -> Status {
        let now = *self.inner.leadership.borrow();
        let applied = self.applied_index();
        let myself = MemberStatus { node: NODE, peer: "memory".into(), voter: true, matched: Some(applied) };
        Status {
            cluster_id: "memory".into(),
            node: NODE,
            role: if now.leader.is_some() { Role::Leader } else { Role::Candidate },
            term: now.term,
            leader: now.leader,
            last_log: applied,
            committed: applied,
            applied,
            snapshot: LogIndex(0),
            purged: LogIndex(0),
            members: vec![myself],
            disk: DiskStatus::default(),
            growth_refused: None,
            given_up: GivenUp::default(),
            comparisons: Comparisons::default(),
            forming: None,
        }
    }

    fn measures(&self) -> Measures {
        self.inner.measures.lock().clone()
    }
}
