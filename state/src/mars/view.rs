//! What sessions show.

use crate::ids::TimeMs;
use crate::mars::command::Definition;
use crate::mars::command::{Column, Labels, Options, TileableKind};
use crate::mars::graph::{Counts, GraphError, GraphState};
use crate::mars::ids::{GraphKind, GraphNo, MutableNo};
use crate::mars::mutable::MutableState;
use crate::ray::ids::{ObjectId, StoreId};

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionView {
    pub session: String,
    pub labels: Labels,
    pub created_ms: TimeMs,
    /// Since when nothing runs.
    pub last_idle_ms: Option<TimeMs>,
    pub graphs: u64,
    pub chunks: u64,
}

/// A graph. One whose bytes are being uploaded has no number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphView {
    pub graph: Option<GraphNo>,
    pub kind: GraphKind,
    pub key: String,
    pub state: GraphState,
    /// Of 1,000,000: subtasks that have succeeded, of all.
    pub progress_millionths: u32,
    pub start_ms: TimeMs,
    pub end_ms: Option<TimeMs>,
    pub error: Option<GraphError>,
    pub targets: Vec<String>,
    pub counts: Counts,
    /// Chunks that it makes.
    pub graph_size: u64,
    pub options: Options,
}

/// Where a chunk is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChunkState {
    Pending,
    Running,
    Succeeded,
    Errored,
    Cancelled,
}

impl ChunkState {
    /// In words.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Errored => "errored",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkView {
    pub key: String,
    pub index: Vec<u64>,
    /// -1: only execution tells.
    pub shape: Vec<i64>,
    pub element_type: u8,
    /// What its object takes, once its worker said so.
    pub bytes: Option<u64>,
    pub state: ChunkState,
    /// None: not begun yet, or dropped.
    pub object: Option<ObjectId>,
    /// The stores that have it, with their addresses.
    pub stores: Vec<(StoreId, String)>,
    /// The graph that made it, or that fetched it last.
    pub graph: GraphNo,
}

/// A tileable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileableView {
    pub key: String,
    pub kind: TileableKind,
    pub name: String,
    pub shape: Vec<i64>,
    pub element_type: u8,
    pub columns: Vec<Column>,
    pub nsplits: Vec<Vec<i64>>,
    /// In C order, as are the indexes.
    pub chunk_keys: Vec<String>,
    pub chunk_indexes: Vec<Vec<u64>>,
    pub graph_kind: GraphKind,
    pub graph_key: String,
    pub state: GraphState,
    /// Of all chunks, once all have told theirs.
    pub bytes: Option<u64>,
    /// References of clients.
    pub count: u64,
}

/// A chunk of a mutable tileable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MutableChunkView {
    pub key: String,
    pub index: Vec<u64>,
    pub shape: Vec<u64>,
    /// The addresses of the stores that have it, the one that seals it first.
    pub stores: Vec<String>,
}

/// A mutable tileable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MutableView {
    pub mutable: MutableNo,
    pub session: String,
    pub name: String,
    pub epoch: u64,
    pub state: MutableState,
    pub definition: Definition,
    pub chunks: Vec<MutableChunkView>,
    /// That of the seal, if it has one.
    pub seal_timestamp_ns: Option<i64>,
    /// The key of its tileable, once it is sealed.
    pub tileable_key: Option<String>,
}

/// One of a session's mutables, without what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MutableEntry {
    pub mutable: MutableNo,
    pub name: String,
    /// How many it has.
    pub chunks: u64,
}

/// What a store is to seal: it makes these objects of the chunks, and says so with
/// [`super::Request::SealReported`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealOrder {
    pub mutable: MutableNo,
    pub session: String,
    pub name: String,
    pub epoch: u64,
    pub timestamp_ns: Option<i64>,
    /// The address that the store serves.
    pub store: String,
    /// The chunks by their places, with their keys and objects.
    pub chunks: Vec<(u32, String, ObjectId)>,
}

/// How much a job's sessions hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub sessions: u64,
    pub graphs: u64,
    /// Those that run.
    pub running: u64,
    pub chunks: u64,
    pub tasks: u64,
    pub uploads: u64,
    pub upload_bytes: u64,
    pub mutables: u64,
    pub remembered: u64,
}
