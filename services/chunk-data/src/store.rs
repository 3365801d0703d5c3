//! What an object store shows of itself.

use std::any::Any;
use std::fmt;

use bytes::Bytes;
use tonic::transport::Channel;
use tonic::{Extensions, Status};
use tripod_proto::mars::v1::worker_client::WorkerClient;
use tripod_proto::mars::v1::{ChunkMeta, MutableInfo, MutableState};

/// What somebody wants who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// To read or write chunks.
    Data,
    /// To have something removed.
    Order,
}

/// Where an object is, as the store knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    Here,
    /// It is being written or fetched.
    Coming,
    Absent,
}

/// A whole object, which stays in memory as long as this lives.
pub struct Object {
    pub bytes: Bytes,
    /// Where its description stands.
    pub metadata_offset: u64,
    /// What keeps it.
    pub keep: Box<dyn Any + Send + Sync>,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

/// Why an object cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    #[error("{0}")]
    Gone(String),
    #[error("{0}")]
    Damaged(String),
    #[error("{0}")]
    NoRoom(String),
    #[error("{0}")]
    Unavailable(String),
}

/// What a store has and may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Workers that take their orders here.
    pub workers: usize,
    pub used_bytes: u64,
    pub capacity_bytes: u64,
    pub spilled_bytes: u64,
    pub objects: usize,
}

/// How far mutable tileables are, as the scheduler says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MutableStates {
    /// Whose word it is: the cluster and the job. Empty if that is not told.
    pub cluster: String,
    /// As of which entry of the log.
    pub applied_index: u64,
    /// In the order in which they were asked for; unspecified is one that this build does not know.
    pub states: Vec<MutableState>,
}

/// An object store, and the ways from it to nodes and other stores.
#[tonic::async_trait]
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// The `HOST:PORT` that others are told, which is the worker's id.
    fn address(&self) -> &str;

    /// Whether the caller may.
    ///
    /// # Errors
    /// What it is told.
    async fn admit(&self, extensions: &Extensions, wish: Wish) -> Result<(), Status>;

    fn whereabouts(&self, object: u64) -> Whereabouts;

    /// Waits for an object that is on its way, as long as it takes: who has no use for it any more drops the future.
    ///
    /// # Errors
    /// [`ObjectError`].
    async fn object(&self, object: u64) -> Result<Object, ObjectError>;

    /// Makes an object of these bytes, which the store reports as ready. One that is here already is that object.
    ///
    /// # Errors
    /// [`ObjectError`].
    async fn make(&self, object: u64, pieces: Vec<Bytes>, metadata_offset: u64) -> Result<(), ObjectError>;

    fn usage(&self) -> Usage;

    /// `GetChunkMetas` of the scheduler.
    ///
    /// # Errors
    /// Its refusal.
    async fn chunk_metas(&self, session: &str, keys: Vec<String>) -> Result<Vec<ChunkMeta>, Status>;

    /// `GetMutableTileable` of the scheduler, by the key of a chunk.
    ///
    /// # Errors
    /// Its refusal.
    async fn mutable_of(&self, session: &str, key: &str) -> Result<MutableInfo, Status>;

    /// `GetMutableStates` of the scheduler, by the numbers of tileables.
    ///
    /// # Errors
    /// Its refusal.
    async fn mutable_states(&self, tileables: Vec<u64>) -> Result<MutableStates, Status>;

    /// A way to another store.
    ///
    /// # Errors
    /// Why there is none, for people.
    async fn worker(&self, address: &str) -> Result<WorkerClient<Channel>, String>;
}
