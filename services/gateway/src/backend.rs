//! The seam between the gateway and what replicates: the raft handle in a server, a bare state in tests of front ends.
//!
//! It has two halves: what every call of a client needs, and what an operator asks of a node. Whatever is new to an
//! operator is a method of [`Handle`] and one of [`Admin`], and reaches front ends by
//! [`Gateway::admin`](crate::Gateway::admin).

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;
use tripod_raft::backup::{SaveError, Saving};
use tripod_raft::{
    Applied, ChangeError, Handle, Leadership, LevelError, LevelRequest, Levels, Measures, MembersAnswer,
    MembersRequest, NodeSilence, ProposeError, Status,
};
use tripod_state::ids::{LogIndex, NodeId, TimeMs};
use tripod_state::{Envelope, State};

/// A boxed future, so that the traits can be used behind a pointer.
pub type Future<T> = Pin<Box<dyn std::future::Future<Output = T> + Send>>;

/// One replica of the state, and the log that drives it. The methods are those of [`tripod_raft::Handle`], with the
/// same errors.
pub trait Replica: Send + Sync + 'static {
    /// Replicates a command. Only [`ProposeError::Unknown`] may have taken effect.
    fn propose(&self, envelope: Envelope) -> Future<Result<Applied, ProposeError>>;
    /// Waits until this replica holds every write that was acknowledged before the call.
    fn read_barrier(&self) -> Future<Result<LogIndex, ProposeError>>;
    /// Waits until this replica has applied `index`.
    fn wait_applied(&self, index: LogIndex) -> Future<Result<(), ProposeError>>;
    /// Looks at this replica as it is now, once. Keep it short: apply waits.
    fn read(&self, look: &mut dyn FnMut(&State));
    /// The last index applied to the state that [`Self::read`] shows.
    fn applied_index(&self) -> LogIndex;
    /// The time of the log, as this replica has applied it. Asked with calls: what has a lock for its state tells it without.
    fn log_now(&self) -> TimeMs {
        let mut now = TimeMs::default();
        self.read(&mut |state| now = state.now_ms());
        now
    }
    /// Who leads, as it changes.
    fn leadership(&self) -> watch::Receiver<Leadership>;
    /// When this node last learned what only a node in contact with a quorum can; `None`: not yet.
    fn last_contact(&self) -> Option<Instant>;
    /// Asks the leader's gateway.
    fn ask_leader(&self, question: Bytes) -> Future<Result<Bytes, ProposeError>>;
    /// Asks the gateway of a member, whoever leads; what is no node is its only member.
    fn ask_node(
        &self,
        _node: NodeId,
        _question: Bytes,
        _patience: Duration,
    ) -> Future<Result<Bytes, NodeSilence>> {
        Box::pin(std::future::ready(Err(NodeSilence::NoMember)))
    }
}

/// What an operator asks of a node, and of the cluster by it. The methods are those of [`tripod_raft::Handle`], with
/// the same errors; what is no node answers what it can.
pub trait Admin: Send + Sync + 'static {
    /// This node's own view of itself and the cluster; needs no leader.
    fn status(&self) -> Status;

    /// What this node has measured of itself.
    fn measures(&self) -> Measures {
        Measures::default()
    }

    /// Hands leadership to another voter (`None`: the one that is furthest) and waits for it. Fails if this node does
    /// not lead, or nobody took over in time.
    fn transfer_leadership(&self, _to: Option<NodeId>) -> Future<Result<(), ProposeError>> {
        Box::pin(std::future::ready(Err(ProposeError::NoLeader("there is no other node".into()))))
    }

    /// Who the members are, and changes of them; only the leader takes those.
    fn members(&self, _request: MembersRequest) -> Future<Result<MembersAnswer, ChangeError>> {
        let why = "there is no node here that has members".to_owned();
        Box::pin(std::future::ready(Err(ChangeError::Unavailable(why))))
    }

    /// The feature level, and changes of it; only the leader takes those.
    fn levels(&self, _request: LevelRequest) -> Future<Result<Levels, LevelError>> {
        let why = "there is no node here that has a feature level".to_owned();
        Box::pin(std::future::ready(Err(LevelError::Unavailable(why))))
    }

    /// Begins to write a snapshot of this node's state as it is now, while the node goes on. Fails if the node is
    /// stopping, or sends as many as it may.
    ///
    /// # Errors
    /// [`SaveError`].
    fn save_snapshot(&self) -> Result<Saving, SaveError> {
        Err(SaveError::Stopped("there is no node here whose state could be saved".into()))
    }
}

/// [`Replica::read`] with a result.
pub(crate) fn look<T>(replica: &dyn Replica, look: impl FnOnce(&State) -> T) -> T {
    let mut look = Some(look);
    let mut seen = None;
    replica.read(&mut |state| seen = look.take().map(|look| look(state)));
    seen.expect("a replica calls its reader once")
}

// In both, a method of the handle itself goes before that of the trait.

impl Replica for Handle {
    fn propose(&self, envelope: Envelope) -> Future<Result<Applied, ProposeError>> {
        let handle = self.clone();
        Box::pin(async move { handle.propose(envelope).await })
    }

    fn read_barrier(&self) -> Future<Result<LogIndex, ProposeError>> {
        let handle = self.clone();
        Box::pin(async move { handle.read_barrier().await })
    }

    fn wait_applied(&self, index: LogIndex) -> Future<Result<(), ProposeError>> {
        let handle = self.clone();
        Box::pin(async move { handle.wait_applied(index).await })
    }

    fn read(&self, look: &mut dyn FnMut(&State)) {
        self.read(look);
    }

    fn applied_index(&self) -> LogIndex {
        self.applied_index()
    }

    fn log_now(&self) -> TimeMs {
        self.log_now()
    }

    fn leadership(&self) -> watch::Receiver<Leadership> {
        self.leadership()
    }

    fn last_contact(&self) -> Option<Instant> {
        self.last_contact()
    }

    fn ask_leader(&self, question: Bytes) -> Future<Result<Bytes, ProposeError>> {
        let handle = self.clone();
        Box::pin(async move { handle.ask_leader(question).await })
    }

    fn ask_node(
        &self,
        node: NodeId,
        question: Bytes,
        patience: Duration,
    ) -> Future<Result<Bytes, NodeSilence>> {
        let handle = self.clone();
        Box::pin(async move { handle.ask_node(node, question, patience).await })
    }
}

impl Admin for Handle {
    fn status(&self) -> Status {
        self.status()
    }

    fn measures(&self) -> Measures {
        self.measures()
    }

    fn transfer_leadership(&self, to: Option<NodeId>) -> Future<Result<(), ProposeError>> {
        let handle = self.clone();
        Box::pin(async move { handle.transfer_leadership(to).await })
    }

    fn members(&self, request: MembersRequest) -> Future<Result<MembersAnswer, ChangeError>> {
        let handle = self.clone();
        Box::pin(async move { handle.members(request).await })
    }

    fn levels(&self, request: LevelRequest) -> Future<Result<Levels, LevelError>> {
        let handle = self.clone();
        Box::pin(async move { handle.levels(request).await })
    }

    fn save_snapshot(&self) -> Result<Saving, SaveError> {
        self.save_snapshot()
    }
}
