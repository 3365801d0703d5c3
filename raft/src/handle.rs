//! A running node as the rest of the process sees it. Nothing of openraft shows.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;
use tripod_state::ids::{LogIndex, NodeId};
use tripod_state::{Envelope, State};

use crate::apply::hooks::Hooks;
use crate::base::error::{Applied, ProposeError, StartError};
use crate::base::options::Options;
use crate::care::level::{LevelError, LevelRequest, Levels};
use crate::care::membership::{ChangeError, MembersAnswer, MembersRequest};
use crate::lead::leadership::Leadership;
use crate::node::Node;
use crate::node::measures::Measures;
use crate::node::status::Status;
use crate::node::world::World;
use crate::offline::backup::{SaveError, Saving};

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

    /// Replicates a command and gives its reply once it is durable on a quorum and applied on the
    /// leader. On a follower the command goes to the leader, one hop; that this node has applied it,
    /// too, is what [`Self::wait_applied`] is for.
    ///
    /// # Errors
    /// [`ProposeError`]; only [`ProposeError::Unknown`] may have taken effect.
    pub async fn propose(&self, envelope: Envelope) -> Result<Applied, ProposeError> {
        self.node.propose(envelope).await
    }

    /// Waits until this node's state holds every write that was acknowledged before the call.
    ///
    /// # Errors
    /// [`ProposeError`]; never `Unknown`.
    pub async fn read_barrier(&self) -> Result<LogIndex, ProposeError> {
        self.node.read_barrier().await
    }

    /// Waits until this node has applied `index`.
    ///
    /// # Errors
    /// [`ProposeError::Stopped`].
    pub async fn wait_applied(&self, index: LogIndex) -> Result<(), ProposeError> {
        self.node.wait_applied(index).await
    }

    /// Looks at this node's state as it is now. Keep it short: apply waits.
    pub fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        self.node.read(look)
    }

    /// Begins to write a snapshot of this node's state as it is now for a client, while the node goes on. Needs no
    /// leader.
    ///
    /// # Errors
    /// [`SaveError`].
    pub fn save_snapshot(&self) -> Result<Saving, SaveError> {
        self.node.save_snapshot()
    }

    /// [`Self::save_snapshot`] for this node itself: it is none of those that clients are sent, and not bounded by them.
    ///
    /// # Errors
    /// [`SaveError::Stopped`].
    pub fn save_own_snapshot(&self) -> Result<Saving, SaveError> {
        self.node.save_own_snapshot()
    }

    /// The last index applied to the state that [`Self::read`] shows.
    #[must_use]
    pub fn applied_index(&self) -> LogIndex {
        self.node.applied_index()
    }

    /// Who leads, as it changes.
    #[must_use]
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.node.leadership().subscribe()
    }

    /// Asks the leader's gateway; on the leader, this node's own handler.
    ///
    /// # Errors
    /// [`ProposeError::NoLeader`] or [`ProposeError::Stopped`].
    pub async fn ask_leader(&self, question: Bytes) -> Result<Bytes, ProposeError> {
        self.node.ask_leader(question).await
    }

    /// This node's view of itself and the cluster.
    #[must_use]
    pub fn status(&self) -> Status {
        self.node.status()
    }

    /// What this node has measured of itself. Not for a hot path: it copies some kilobytes.
    #[must_use]
    pub fn measures(&self) -> Measures {
        self.node.measures()
    }

    /// Hands leadership to another voter (`None`: the one that is furthest of those that answer) and waits
    /// for it, twice the longest election timeout at most. Whoever stops waiting cancels nothing.
    ///
    /// # Errors
    /// This node does not lead, that voter does not answer or is behind, or nobody took over in time: then
    /// this node stands for election itself.
    pub async fn transfer_leadership(&self, to: Option<NodeId>) -> Result<(), ProposeError> {
        self.node.transfer_leadership(to).await
    }

    /// Who the members are, and changes of them. Changes are taken by the leader, which gives its answer when
    /// a change has begun; [`MembersRequest::List`] tells how it goes on. Whoever leads finishes it.
    ///
    /// # Errors
    /// [`ChangeError`]; only after [`ChangeError::Unknown`] a change may have begun.
    pub async fn members(&self, request: MembersRequest) -> Result<MembersAnswer, ChangeError> {
        self.node.members(request).await
    }

    /// The feature level, and changes of it. Those are taken by the leader.
    ///
    /// # Errors
    /// [`LevelError`]; only after [`LevelError::Unknown`] something may have been done.
    pub async fn levels(&self, request: LevelRequest) -> Result<Levels, LevelError> {
        self.node.levels(request).await
    }

    /// Resolves when this node is no member any more, with the reason and what to do. The process should end.
    pub async fn removed(&self) -> String {
        self.node.removed().await
    }

    /// Hands leadership to the best voter, if this node has it, and waits for that, two seconds at most from the
    /// first call. For a node that is about to stop: it serves on, but does not stand for election any more, and
    /// [`Self::shutdown`] does not begin anew. Whoever stops waiting cancels nothing.
    ///
    /// # Errors
    /// No voter answers, or nobody took over in time.
    pub async fn leave(&self) -> Result<(), ProposeError> {
        self.node.leave().await
    }

    /// The replicated state, to break it.
    #[cfg(test)]
    pub(crate) fn machine(&self) -> &crate::apply::state_machine::StateMachine {
        self.node.machine()
    }

    /// Resolves when the node cannot go on (storage fault, divergence), with the reason. The process
    /// must end.
    pub async fn failed(&self) -> String {
        self.node.failed().await
    }

    /// [Leaves](Self::leave), then stops.
    pub async fn shutdown(&self) {
        self.node.shutdown().await;
    }
}
