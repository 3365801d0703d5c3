//! What changes sessions and what they hold.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::command::Scope;
use crate::ids::DurationMs;
use crate::mars::ids::{GraphKind, GraphName, GraphNo, MutableNo, Place};
use crate::ray::Needs;

/// A command to a job's sessions. Needs feature level 10.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// What a client asks. `request_id`, unless it is empty: one that comes again within ten minutes is answered as the first
    /// one was.
    Ask { scope: Scope, request_id: String, request: Request },
    /// What the leader found out.
    Lead { scope: Scope, decision: Decision },
}

impl Command {
    /// The job that it is about.
    #[must_use]
    pub fn scope(&self) -> Scope {
        match self {
            Self::Ask { scope, .. } | Self::Lead { scope, .. } => *scope,
        }
    }
}

/// Names with values, by name.
pub type Labels = Vec<(String, String)>;

/// What a client asks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Request {
    /// Answers [`super::Answer::Session`]. `is_proposed`: the client left the id to the node, which drew 128 random bits.
    CreateSession { session: String, is_proposed: bool, if_not_exist: bool, labels: Labels },
    /// Answers [`super::Answer::Deleted`].
    DeleteSession { session: String, if_exist: bool },
    /// A part of the client's own bytes of a graph: kept for the node that has the last one, which reads all of them with
    /// `State::mars_upload`. Answers [`super::Answer::Uploaded`].
    Upload { graph: GraphName, offset: u64, bytes: Bytes, is_last: bool },
    /// A whole graph. Answers [`super::Answer::Graph`].
    Submit { graph: GraphName, digest: Digest, options: Options, targets: Vec<String>, content: Graph },
    /// A graph in parts begins; one of that key that was begun before and has the same digest is begun anew. Answers
    /// [`super::Answer::Graph`], whose state is [`super::GraphState::Preparing`] if its parts are wanted.
    Begin { graph: GraphName, digest: Digest, options: Options, targets: Vec<String> },
    /// Adds a part. `draft` is what the beginning was answered. Answers [`super::Answer::Done`].
    Add { graph: GraphName, draft: GraphNo, part: Part },
    /// All parts are there. Answers [`super::Answer::Graph`].
    Commit { graph: GraphName, draft: GraphNo },
    /// Answers [`super::Answer::Stopped`].
    Stop { graph: GraphName },
    /// Answers [`super::Answer::Freed`].
    DeleteGraph { graph: GraphName },
    /// Takes references to tileables away; all of them or none. Answers [`super::Answer::Done`].
    Decref { session: String, keys: Vec<String>, counts: Vec<u64> },
    /// Answers [`super::Answer::Mutable`]. `is_proposed` as of a session's id.
    CreateMutable {
        session: String,
        name: String,
        is_proposed: bool,
        definition: Definition,
        if_not_exist: bool,
    },
    /// Answers [`super::Answer::Sealing`]. What was written after `timestamp_ns` does not count.
    SealMutable { session: String, name: String, timestamp_ns: Option<i64> },
    /// Answers [`super::Answer::Deleted`].
    DeleteMutable { session: String, name: String, if_exist: bool },
    /// A store has made, or could not make, the objects of these chunks of a mutable that is sealed: see [`super::SealOrder`].
    /// `store` is the address that it serves. Without effect if it is not waited for any more. Answers
    /// [`super::Answer::Done`].
    SealReported { mutable: MutableNo, epoch: u64, store: String, chunks: Vec<u32>, failed: bool },
}

impl Request {
    /// In which session, if it is about what a session holds.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        match self {
            Self::CreateSession { .. } | Self::DeleteSession { .. } | Self::SealReported { .. } => None,
            Self::Upload { graph, .. }
            | Self::Submit { graph, .. }
            | Self::Begin { graph, .. }
            | Self::Add { graph, .. }
            | Self::Commit { graph, .. }
            | Self::Stop { graph }
            | Self::DeleteGraph { graph } => Some(&graph.session),
            Self::Decref { session, .. }
            | Self::CreateMutable { session, .. }
            | Self::SealMutable { session, .. }
            | Self::DeleteMutable { session, .. } => Some(session),
        }
    }
}

/// What tells a graph from another one: a hash of the client's bytes, options and targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Digest(pub [u8; 32]);

/// How a graph is executed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Options {
    /// The higher, the earlier its subtasks have their turn.
    pub priority: i32,
    /// Attempts of a subtask after the first; `None`: as many as a task of the scheduler has.
    pub max_reschedules: Option<u32>,
    /// After this time it has failed.
    pub timeout_ms: Option<DurationMs>,
    /// So long after its end it is deleted.
    pub result_ttl_ms: Option<DurationMs>,
    /// As the client said. Chains are joined before anything is in the log, so nobody reads it here.
    pub fuse: bool,
}

/// Chunks and tileables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Graph {
    /// Inputs stand before what reads them: see [`super::arrange`].
    pub chunks: Vec<Chunk>,
    pub tileables: Vec<Tileable>,
}

/// A part of a graph: what stands behind so many chunks and tileables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Part {
    pub chunks_before: u64,
    pub tileables_before: u64,
    pub content: Graph,
}

/// A chunk that is to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Chunk {
    pub key: String,
    /// The first argument of its task, as it is encoded.
    pub argument: Bytes,
    pub inputs: Vec<Input>,
    /// Empty: as its key says, or none.
    pub index: Vec<u64>,
    /// -1: only execution tells.
    pub shape: Vec<i64>,
    /// As the wire numbers them; 0: none.
    pub element_type: u8,
    /// Its priority is the graph's.
    pub needs: Needs,
    /// May be tried again when its worker dies, or its result is lost.
    pub is_retryable: bool,
}

impl Chunk {
    /// How many bytes a command says about it, roughly: those of [`super::limits::COMMAND_BYTES_MAX`].
    #[must_use]
    pub fn said_bytes(&self) -> u64 {
        let lists = 8 * (self.index.len() + self.shape.len()) + said_of_inputs(&self.inputs);
        let named: usize = self.needs.named_milli.keys().map(|name| 16 + name.len()).sum();
        (64 + self.key.len() + self.argument.len() + lists + named) as u64
    }
}

impl Tileable {
    /// The same of a tileable.
    #[must_use]
    pub fn said_bytes(&self) -> u64 {
        let columns: usize = self.columns.iter().map(|column| 16 + column.name.len()).sum();
        let splits: usize = self.nsplits.iter().map(|axis| 8 + 8 * axis.len()).sum();
        (64 + self.key.len() + self.name.len() + columns + splits + said_of_inputs(&self.chunks)) as u64
    }
}

fn said_of_inputs(inputs: &[Input]) -> usize {
    let of = |input: &Input| match input {
        Input::Chunk(_) => 8,
        Input::Session(key) => 12 + key.len(),
    };
    inputs.iter().map(of).sum()
}

/// What a chunk is made from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Input {
    /// A chunk of the graph, by its place.
    Chunk(Place),
    /// A chunk of the session that was made before.
    Session(String),
}

/// What a tileable is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TileableKind {
    Tensor,
    Frame,
}

/// A tileable with its chunks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tileable {
    pub key: String,
    pub kind: TileableKind,
    pub name: String,
    /// Of a tensor, as the wire numbers them.
    pub element_type: u8,
    /// Of a frame.
    pub columns: Vec<Column>,
    /// The extents of the chunks along each axis; -1: only execution tells.
    pub nsplits: Vec<Vec<i64>>,
    /// As many as there are cells, in C order.
    pub chunks: Vec<Input>,
}

/// A column of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Column {
    pub name: String,
    pub element_type: u8,
}

/// One value. Fractions are the bits of theirs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scalar {
    Boolean(bool),
    Integer(i64),
    Fraction(u64),
    Text(String),
}

/// What a mutable tileable is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Definition {
    pub kind: TileableKind,
    pub element_type: u8,
    pub columns: Vec<Column>,
    /// One, or one for each column.
    pub defaults: Vec<Scalar>,
    pub nsplits: Vec<Vec<u64>>,
    /// How many stores have each chunk; 0: one.
    pub replicas: u32,
}

/// What the leader found out. Apply looks again: what does not hold any more changes nothing and is no refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// The graph can have more of its subtasks with the scheduler.
    Advance { graph: GraphNo },
    /// The graph has run for too long.
    TimedOut { graph: GraphNo },
    /// A graph has ended long ago, or its parts have not come.
    Expired { graph: GraphNo },
    /// The parts of an upload have not come.
    UploadExpired { session: String, kind: GraphKind, key: String },
    /// Answers that were remembered for long enough.
    Forget,
    /// The stores of a mutable went or came, or sealing takes too long.
    Judge { mutable: MutableNo },
}
