//! What a running node does for those who call it.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use openraft::async_runtime::WatchReceiver as _;
use tripod_state::ids::{LogIndex, NodeId};
use tripod_state::planted::{Bug, is_planted};
use tripod_state::{Envelope, State, level};

use super::Node;
use crate::base::codec;
use crate::base::command::COMMAND_BYTES_MAX;
use crate::base::error::{Applied, ProposeError};
use crate::care::level::{LevelError, LevelRequest, Levels};
use crate::care::membership::{ChangeError, MembersAnswer, MembersRequest};
use crate::lead::leadership::LeadershipWatch;
use crate::node::measures::{self, Measures};
use crate::node::status::{self, Health, Status};
use crate::offline::backup::{self, SaveError, SavesFull, Saving};

/// Most commands are shorter: what is reserved for one when it is encoded.
const ENVELOPE_BYTES: usize = 512;

impl Node {
    fn check_running(&self) -> Result<(), ProposeError> {
        if let Some(reason) = self.failure.get() {
            return Err(ProposeError::Stopped(reason));
        }
        if self.stopping.load(Ordering::Relaxed) {
            return Err(ProposeError::Stopped("this node is stopping".into()));
        }
        Ok(())
    }

    /// Replicates a command. Its lists were checked by whoever took it from a client.
    pub(crate) async fn propose(&self, envelope: Envelope) -> Result<Applied, ProposeError> {
        self.check_running()?;
        let payload: Bytes = codec::encode_sized(&envelope, ENVELOPE_BYTES).into();
        let needs = envelope.command.needs();
        if payload.len() > COMMAND_BYTES_MAX {
            let text =
                format!("a command of {} bytes is above the limit of {COMMAND_BYTES_MAX}", payload.len());
            return Err(ProposeError::Overloaded(text));
        }
        if self.leadership.leads_here() {
            // Nothing takes room while it waits.
            self.desk.door().wait_for_first_look().await?;
            let _admitted = self.admission.admit(&self.machine, &envelope, payload.len())?;
            let _passed = if needs > level::FIRST {
                Some(self.desk.door().pass(&envelope.command).await?)
            } else {
                None
            };
            drop(envelope);
            tokio::select! {
                biased;
                applied = self.submitter.submit(payload) => applied,
                () = self.leadership.deposed() => Err(ProposeError::Unknown("this node ceased to lead".into())),
            }
        } else if needs > level::FIRST {
            drop(envelope);
            self.link.propose_newer(payload, needs).await
        } else {
            drop(envelope);
            self.forwarder.propose(payload).await
        }
    }

    pub(crate) async fn read_barrier(&self) -> Result<LogIndex, ProposeError> {
        self.check_running()?;
        if is_planted(Bug::StaleReads) {
            return Ok(self.applied_index());
        }
        let index = if self.leadership.leads_here() {
            tokio::select! {
                biased;
                index = self.own_rounds.join() => index?,
                () = self.leadership.deposed() => {
                    return Err(ProposeError::NoLeader("this node ceased to lead".into()));
                }
            }
        } else {
            self.remote_rounds.join().await?
        };
        self.wait_applied(index).await?;
        Ok(index)
    }

    pub(crate) async fn wait_applied(&self, index: LogIndex) -> Result<(), ProposeError> {
        if self.machine.applied_index() >= index.0 {
            return Ok(());
        }
        let mut applied = self.machine.applied();
        let mut stop = self.stop.subscribe();
        tokio::select! {
            reached = applied.wait_for(|applied| applied.is_some_and(|id| id.index >= index.0)) => {
                reached.map(|_| ()).map_err(|_| ProposeError::Stopped("this node is stopping".into()))
            }
            reason = self.failure.wait() => Err(ProposeError::Stopped(reason)),
            _ = stop.wait_for(|stop| *stop) => Err(ProposeError::Stopped("this node is stopping".into())),
        }
    }

    pub(crate) fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        self.machine.read(look)
    }

    /// Begins to write a snapshot of the state as it is now, for a client.
    pub(crate) fn save_snapshot(&self) -> Result<Saving, SaveError> {
        self.check_saves()?;
        self.saves
            .begin(|| self.machine.freeze())
            .map_err(|SavesFull| SaveError::Full { max: SavesFull::MAX })
    }

    /// The same for this node itself, which no client can keep from it.
    pub(crate) fn save_own_snapshot(&self) -> Result<Saving, SaveError> {
        self.check_saves()?;
        Ok(backup::save(self.machine.freeze(), None))
    }

    fn check_saves(&self) -> Result<(), SaveError> {
        self.check_running().map_err(|error| SaveError::Stopped(error.to_string()))?;
        if self.work.is_inline() {
            return Err(SaveError::Stopped("a simulated node saves no snapshots".into()));
        }
        Ok(())
    }

    pub(crate) fn applied_index(&self) -> LogIndex {
        LogIndex(self.machine.applied_index())
    }

    pub(crate) fn leadership(&self) -> &LeadershipWatch {
        &self.leadership
    }

    pub(crate) async fn ask_leader(&self, question: Bytes) -> Result<Bytes, ProposeError> {
        self.check_running()?;
        let leadership = self.leadership.get();
        if leadership.leader != Some(self.options.node) {
            return self.link.ask(question).await;
        }
        if !leadership.ready_here {
            return Err(ProposeError::NoLeader("this node leads, but is not ready yet".into()));
        }
        self.hooks.asks.ask(question).await.map_err(ProposeError::NoLeader)
    }

    pub(crate) fn status(&self) -> Status {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let health = Health {
            disk: self.gauge.last(),
            growth_refused: self.admission.refusal().map(|reason| reason.to_string()),
            given_up: self.fitness.given_up(),
            comparisons: self.comparer.comparisons(),
            forming: self.forming.get(),
        };
        status::of(&self.options, &metrics, self.leadership.get(), self.machine.applied_index(), health)
    }

    pub(crate) fn measures(&self) -> Measures {
        Measures {
            stages: self.log.stages().times(),
            flush: self.log.stages().flush_times(),
            proposals: self.log.stages().proposals(),
            forwarding: self.forwarder.waiting(),
            elections: self.leadership.elections(),
            snapshots: self.machine.snapshots().tally().counts(),
            heard: measures::heard(self.options.node, &self.raft.metrics().borrow_watched()),
        }
    }

    /// Hands leadership to another voter, `None`: to the best.
    pub(crate) async fn transfer_leadership(&self, to: Option<NodeId>) -> Result<(), ProposeError> {
        self.check_running()?;
        self.hand_over.to(to).await
    }

    /// What is asked about members.
    pub(crate) async fn members(&self, request: MembersRequest) -> Result<MembersAnswer, ChangeError> {
        self.check_running().map_err(|error| ChangeError::Unavailable(error.to_string()))?;
        self.members.ask(request).await
    }

    /// What is asked about the feature level.
    pub(crate) async fn levels(&self, request: LevelRequest) -> Result<Levels, LevelError> {
        self.check_running().map_err(|error| LevelError::Unavailable(error.to_string()))?;
        self.desk.ask(request).await
    }

    /// Resolves when this node was removed, with what to tell the operator.
    pub(crate) async fn removed(&self) -> String {
        let mut removed = self.removed.subscribe();
        let text = removed.wait_for(Option::is_some).await.expect("the sender is ours");
        text.clone().expect("waited for")
    }

    /// Hands leadership to the best voter, if this node has it, because it is about to stop.
    pub(crate) async fn leave(&self) -> Result<(), ProposeError> {
        self.check_running()?;
        if self.leadership.leads_here() { self.hand_over.leave().await } else { Ok(()) }
    }

    pub(crate) async fn failed(&self) -> String {
        self.failure.wait().await
    }
}
