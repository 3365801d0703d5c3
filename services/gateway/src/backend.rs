//! The seam between the gateway and what replicates: the raft handle in a server, a bare state in
//! tests of front ends.

use std::pin::Pin;

use bytes::Bytes;
use tokio::sync::watch;
use tripod_raft::backup::{SaveError, Saving};
use tripod_raft::{
    Applied, ChangeError, Handle, Leadership, LevelError, LevelRequest, Levels, Measures, MembersAnswer,
    MembersRequest, ProposeError, Status,
};
use tripod_state::ids::{LogIndex, NodeId};
use tripod_state::{Envelope, State};

/// A boxed future, so that the trait can be used behind a pointer.
pub type Future<T> = Pin<Box<dyn std::future::Future<Output = T> + Send>>;

/// Replication as the gateway needs it. The methods are those of [`tripod_raft::Handle`].
pub trait Backend: Send + Sync + 'static {
    fn propose(&self, envelope: Envelope) -> Future<Result<Applied, ProposeError>>;
    fn read_barrier(&self) -> Future<Result<LogIndex, ProposeError>>;
    fn wait_applied(&self, index: LogIndex) -> Future<Result<(), ProposeError>>;
    fn read(&self, look: &mut dyn FnMut(&State));
    fn applied_index(&self) -> LogIndex;
    fn leadership(&self) -> watch::Receiver<Leadership>;
    fn ask_leader(&self, question: Bytes) -> Future<Result<Bytes, ProposeError>>;
    fn status(&self) -> Status;
    fn transfer_leadership(&self, to: Option<NodeId>) -> Future<Result<(), ProposeError>>;
    fn members(&self, request: MembersRequest) -> Future<Result<MembersAnswer, ChangeError>>;
    /// A backend that is not a node measures nothing.
    fn measures(&self) -> Measures {
        Measures::default()
    }
    /// A backend that is not a node has no feature levels to change.
    fn levels(&self, _request: LevelRequest) -> Future<Result<Levels, LevelError>> {
        let why = "there is no node here that has a feature level".to_owned();
        Box::pin(std::future::ready(Err(LevelError::Unavailable(why))))
    }
    /// A backend that is not a node has no snapshots.
    fn save_snapshot(&self) -> Result<Saving, SaveError> {
        Err(SaveError::Stopped("there is no node here whose state could be saved".into()))
    }
}

/// [`Backend::read`] with a result.
pub(crate) fn look<T>(backend: &dyn Backend, look: impl FnOnce(&State) -> T) -> T {
    let mut look = Some(look);
    let mut seen = None;
    backend.read(&mut |state| seen = look.take().map(|look| look(state)));
    seen.expect("a backend calls its reader once")
}

/// A replicated node.
pub struct RaftBackend {
    handle: Handle,
}

impl RaftBackend {
    #[must_use]
    pub fn new(handle: Handle) -> Self {
        Self { handle }
    }
}

impl Backend for RaftBackend {
    fn propose(&self, envelope: Envelope) -> Future<Result<Applied, ProposeError>> {
        let handle = self.handle.clone();
        Box::pin(async move { handle.propose(envelope).await })
    }

    fn read_barrier(&self) -> Future<Result<LogIndex, ProposeError>> {
        let handle = self.handle.clone();
        Box::pin(async move { handle.read_barrier().await })
    }

    fn wait_applied(&self, index: LogIndex) -> Future<Result<(), ProposeError>> {
        let handle = self.handle.clone();
        Box::pin(async move { handle.wait_applied(index).await })
    }

    fn read(&self, look: &mut dyn FnMut(&State)) {
        self.handle.read(look);
    }

    fn applied_index(&self) -> LogIndex {
        self.handle.applied_index()
    }

    fn leadership(&self) -> watch::Receiver<Leadership> {
        self.handle.leadership()
    }

    fn ask_leader(&self, question: Bytes) -> Future<Result<Bytes, ProposeError>> {
        let handle = self.handle.clone();
        Box::pin(async move { handle.ask_leader(question).await })
    }

    fn status(&self) -> Status {
        self.handle.status()
    }

    fn measures(&self) -> Measures {
        self.handle.measures()
    }

    fn transfer_leadership(&self, to: Option<NodeId>) -> Future<Result<(), ProposeError>> {
        let handle = self.handle.clone();
        Box::pin(async move { handle.transfer_leadership(to).await })
    }

    fn members(&self, request: MembersRequest) -> Future<Result<MembersAnswer, ChangeError>> {
        let handle = self.handle.clone();
        Box::pin(async move { handle.members(request).await })
    }

    fn levels(&self, request: LevelRequest) -> Future<Result<Levels, LevelError>> {
        let handle = self.handle.clone();
        Box::pin(async move { handle.levels(request).await })
    }

    fn save_snapshot(&self) -> Result<Saving, SaveError> {
        self.handle.save_snapshot()
    }
}
