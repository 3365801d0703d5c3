//! The seam between the gateway and what replicates: the raft handle in a server, a bare state in
//! tests of front ends.

use std::pin::Pin;

use bytes::Bytes;
use tokio::sync::watch;
use tripod_raft::{Applied, Leadership, ProposeError, Status};
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
}
