//! A running node as the rest of the process sees it. Nothing of openraft shows.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;
use tripod_state::ids::{LogIndex, NodeId, TimeMs};
use tripod_state::planted::{Bug, is_planted};
use tripod_state::{Envelope, State};

use crate::apply::hooks::Hooks;
use crate::base::codec;
use crate::base::command::COMMAND_BYTES_MAX;
use crate::base::error::{Applied, NodeSilence, ProposeError, StartError};
use crate::base::options::Options;
use crate::care::level::{LevelError, LevelRequest, Levels};
use crate::care::membership::{ChangeError, MembersAnswer, MembersRequest};
use crate::lead::leadership::Leadership;
use crate::node::Node;
use crate::node::measures::{self, Measures};
use crate::node::status::{self, Status};
use crate::node::world::World;
use crate::offline::backup::{self, SaveError, SavesFull, Saving};

/// Most commands are shorter: what is reserved for one when it is encoded.
const ENVELOPE_BYTES: usize = 512;

/// A cheap, clonable handle on a running node.
#[derive(Clone)]
pub struct Handle {
    node: Arc<Node>,
}

impl Handle {
    /// Starts the node: opens its storage, joins its peers, recovers its state. The hooks may be
    /// called before this returns, for entries that are applied again.
    ///
    /// # Errors
    /// A data directory of another node or cluster, damaged storage, a port in use.
    pub async fn start(options: Options, hooks: Hooks) -> Result<Self, StartError> {
        Self::start_in(World::real(), options, hooks).await
    }

    /// [`Self::start`] in another world: for simulations.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn start_in(world: World, options: Options, hooks: Hooks) -> Result<Self, StartError> {
        Ok(Self { node: Arc::new(Node::start(world, options, hooks).await?) })
    }

    /// The node, for tests that make its disk or its peers fail.
    #[cfg(test)]
    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// Replicates a command, whose lists were checked by whoever took it from a client, and gives its reply once it is
    /// durable on a quorum and applied on the leader. On a follower the command goes to the leader, one hop; that this
    /// node has applied it, too, is what [`Self::wait_applied`] is for.
    ///
    /// # Errors
    /// [`ProposeError`]; only [`ProposeError::Unknown`] may have taken effect.
    pub async fn propose(&self, envelope: Envelope) -> Result<Applied, ProposeError> {
        self.check_running()?;
        let node = &self.node;
        let payload: Bytes = codec::encode_sized(&envelope, ENVELOPE_BYTES).into();
        let needs = envelope.command.needs();
        if payload.len() > COMMAND_BYTES_MAX {
            let text =
                format!("a command of {} bytes is above the limit of {COMMAND_BYTES_MAX}", payload.len());
            return Err(ProposeError::Overloaded(text));
        }
        if node.leadership.leads_here() {
            // Nothing takes room while it waits.
            let gate = node.level_handler.gate();
            gate.wait_for_first_look().await?;
            let _passage = gate.pass(&envelope.command).await?;
            let _admitted = node.admission.admit(&node.machine, &envelope, payload.len())?;
            drop(envelope);
            node.submitter.submit_as_leader(payload).await
        } else {
            drop(envelope);
            node.forwarder.propose(payload, needs).await
        }
    }

    /// Waits until this node's state holds every write that was acknowledged before the call.
    ///
    /// # Errors
    /// [`ProposeError`]; never `Unknown`.
    pub async fn read_barrier(&self) -> Result<LogIndex, ProposeError> {
        self.check_running()?;
        if is_planted(Bug::StaleReads) {
            return Ok(self.applied_index());
        }
        let node = &self.node;
        let index = if node.leadership.leads_here() {
            node.own_rounds.join().await?
        } else {
            node.remote_rounds.join().await?
        };
        self.wait_applied(index).await?;
        Ok(index)
    }

    /// When this node last learned what only a node in contact with a quorum can: of one that leads, when a quorum last
    /// answered it, and of another, when the leader last answered it with a quorum. `None`: not yet.
    #[must_use]
    pub fn last_contact(&self) -> Option<Instant> {
        self.node.link.last_contact()
    }

    /// Waits until this node has applied `index`.
    ///
    /// # Errors
    /// [`ProposeError::Stopped`].
    pub async fn wait_applied(&self, index: LogIndex) -> Result<(), ProposeError> {
        let node = &self.node;
        if node.machine.applied_index() >= index.0 {
            return Ok(());
        }
        let mut applied = node.machine.applied();
        tokio::select! {
            reached = applied.wait_for(|applied| applied.is_some_and(|id| id.index >= index.0)) => {
                reached.map(|_| ()).map_err(|_| ProposeError::Stopped("this node is stopping".into()))
            }
            reason = node.failure.wait() => Err(ProposeError::Stopped(reason)),
            () = node.stop.cancelled() => Err(ProposeError::Stopped("this node is stopping".into())),
        }
    }

    /// Looks at this node's state as it is now. Keep it short: apply waits.
    pub fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        self.node.machine.read(look)
    }

    /// Begins to write a snapshot of this node's state as it is now for a client, while the node goes on. Needs no
    /// leader.
    ///
    /// # Errors
    /// [`SaveError`].
    pub fn save_snapshot(&self) -> Result<Saving, SaveError> {
        self.check_saves()?;
        let saving = self.node.saves.begin(|| self.node.machine.freeze());
        saving.map_err(|SavesFull| SaveError::Full { max: SavesFull::MAX })
    }

    /// [`Self::save_snapshot`] for this node itself: it is none of those that clients are sent, and not bounded by them.
    ///
    /// # Errors
    /// [`SaveError::Stopped`].
    pub fn save_own_snapshot(&self) -> Result<Saving, SaveError> {
        self.check_saves()?;
        Ok(backup::save(self.node.machine.freeze(), None))
    }

    /// The last index applied to the state that [`Self::read`] shows.
    #[must_use]
    pub fn applied_index(&self) -> LogIndex {
        LogIndex(self.node.machine.applied_index())
    }

    /// The time of the log: the latest stamp of a leader in the state that [`Self::read`] shows, without its lock.
    #[must_use]
    pub fn log_now(&self) -> TimeMs {
        self.node.machine.now_at_a_glance()
    }

    /// Who leads, as it changes.
    #[must_use]
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.node.leadership.subscribe()
    }

    /// Asks the leader's gateway; on the leader, this node's own handler.
    ///
    /// # Errors
    /// [`ProposeError::NoLeader`] or [`ProposeError::Stopped`].
    pub async fn ask_leader(&self, question: Bytes) -> Result<Bytes, ProposeError> {
        self.check_running()?;
        let leadership = self.node.leadership.get();
        if leadership.leader != Some(self.node.options.node) {
            return self.node.link.ask(question).await;
        }
        if !leadership.ready_here {
            return Err(ProposeError::NoLeader("this node leads, but is not ready yet".into()));
        }
        self.node.hooks.asks.ask(question).await.map_err(ProposeError::NoLeader)
    }

    /// Asks the gateway of a member, whoever leads; this node's own handler, if it is this node.
    ///
    /// # Errors
    /// [`NodeSilence`].
    pub async fn ask_node(
        &self,
        node: NodeId,
        question: Bytes,
        patience: Duration,
    ) -> Result<Bytes, NodeSilence> {
        if node == self.node.options.node {
            return self.node.hooks.asks.ask_here(question).await.map_err(NodeSilence::Refuses);
        }
        self.node.link.ask_node(node, question, patience).await
    }

    /// This node's view of itself and the cluster.
    #[must_use]
    pub fn status(&self) -> Status {
        status::of(&self.node)
    }

    /// What this node has measured of itself. Not for a hot path: it copies some kilobytes.
    #[must_use]
    pub fn measures(&self) -> Measures {
        measures::of(&self.node)
    }

    /// Hands leadership to another voter (`None`: the one that is furthest of those that answer) and waits
    /// for it, twice the longest election timeout at most. Whoever stops waiting cancels nothing.
    ///
    /// # Errors
    /// This node does not lead, that voter does not answer or is behind, or nobody took over in time: then
    /// this node stands for election itself.
    pub async fn transfer_leadership(&self, to: Option<NodeId>) -> Result<(), ProposeError> {
        self.check_running()?;
        self.node.hand_over.to(to).await
    }

    /// Who the members are, and changes of them. Changes are taken by the leader, which gives its answer when
    /// a change has begun; [`MembersRequest::List`] tells how it goes on. Whoever leads finishes it.
    ///
    /// # Errors
    /// [`ChangeError`]; only after [`ChangeError::Unknown`] a change may have begun.
    pub async fn members(&self, request: MembersRequest) -> Result<MembersAnswer, ChangeError> {
        self.check_running().map_err(|error| ChangeError::Unavailable(error.to_string()))?;
        self.node.members.ask(request).await
    }

    /// The feature level, and changes of it. Those are taken by the leader.
    ///
    /// # Errors
    /// [`LevelError`]; only after [`LevelError::Unknown`] something may have been done.
    pub async fn levels(&self, request: LevelRequest) -> Result<Levels, LevelError> {
        self.check_running().map_err(|error| LevelError::Unavailable(error.to_string()))?;
        self.node.level_handler.ask(request).await
    }

    /// Resolves when this node is no member any more, with the reason and what to do. The process should end.
    pub async fn removed(&self) -> String {
        let mut removed = self.node.removed.subscribe();
        let text = removed.wait_for(Option::is_some).await.expect("the sender is ours");
        text.clone().expect("waited for")
    }

    /// Hands leadership to the best voter, if this node has it, and waits for that, two seconds at most from the
    /// first call. For a node that is about to stop: it serves on, but does not stand for election any more, and
    /// [`Self::shutdown`] does not begin anew. Whoever stops waiting cancels nothing.
    ///
    /// # Errors
    /// No voter answers, or nobody took over in time.
    pub async fn leave(&self) -> Result<(), ProposeError> {
        self.check_running()?;
        if self.node.leadership.leads_here() { self.node.hand_over.leave().await } else { Ok(()) }
    }

    fn check_running(&self) -> Result<(), ProposeError> {
        if let Some(reason) = self.node.failure.get() {
            return Err(ProposeError::Stopped(reason));
        }
        if self.node.stopping.load(Ordering::Relaxed) {
            return Err(ProposeError::Stopped("this node is stopping".into()));
        }
        Ok(())
    }

    fn check_saves(&self) -> Result<(), SaveError> {
        self.check_running().map_err(|error| SaveError::Stopped(error.to_string()))?;
        if self.node.work.is_inline() {
            return Err(SaveError::Stopped("a simulated node saves no snapshots".into()));
        }
        Ok(())
    }

    /// The replicated state, to break it.
    #[cfg(test)]
    pub(crate) fn machine(&self) -> &crate::apply::state_machine::StateMachine {
        self.node.machine()
    }

    /// Resolves when the node cannot go on (storage fault, divergence), with the reason. The process
    /// must end.
    pub async fn failed(&self) -> String {
        self.node.failure.wait().await
    }

    /// [Leaves](Self::leave), then stops.
    pub async fn shutdown(&self) {
        self.node.shutdown().await;
    }
}
