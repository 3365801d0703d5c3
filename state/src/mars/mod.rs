//! Sessions, graphs of tensors and frames and of their chunks, what is known of both, and tileables that are written in
//! place (Mars).
//!
//! A front end tiles: what comes here is the graph of chunks, and which chunks a tileable consists of. Each chunk is made by
//! one task of the job's scheduler ([`crate::ray`]) and is one of its objects; this domain says what is to be made, in which
//! order, and until when it is kept.
//!
//! # Rules
//!
//! * A graph is seen when it is committed, wholly or not at all. The same key with the same bytes is the same graph.
//! * A chunk has a reference of this domain from when its task is submitted until no chunk that is not over reads it and no
//!   tileable that somebody refers to consists of it. Then it is dropped at once.
//! * Few subtasks of a graph are with the scheduler at a time; whoever leads proposes the next ones ([`Decision::Advance`]).
//! * When one fails, the rest of its graph is cancelled, and the graph has failed when none of them runs. What is lost and
//!   can be made again is the scheduler's matter.
//! * What a graph that failed or was stopped has made is dropped.
//! * Whatever ends by time is proposed by the leader: [`crate::State::mars_due`].
//! * A refusal changes nothing.
//!
//! # Map
//!
//! | module | what |
//! |---|---|
//! | `command`, `answer`, `refusal`, [`ids`], [`limits`], `view` | the words |
//! | `apply`, `act`, `remember` | the match over all commands; one command's work; requests that come again |
//! | `record`, `session`, `graph`, `chunk`, `tileable`, `mutable`, `upload`, `key` | what is kept |
//! | `sessions`, `uploads`, `drafts`, `intake`, `commit` | sessions; graphs that come |
//! | `advance`, `settle`, `stop`, `drops` | subtasks begin and end; graphs end and go; references |
//! | `create`, `seal`, `stores` | mutable tileables |
//! | `due`, `query`, `query_metas`, `query_mutables` | what is to be proposed; what is shown |
//! | `part`, `restore` | snapshots |

pub mod ids;
pub mod limits;

mod act;
mod advance;
mod answer;
mod apply;
mod arrange;
mod chunk;
mod command;
mod commit;
mod create;
mod drafts;
mod drops;
mod due;
mod graph;
mod intake;
mod key;
mod mutable;
mod part;
mod query;
mod query_metas;
mod query_mutables;
mod record;
mod refusal;
mod remember;
mod restore;
mod seal;
mod session;
mod sessions;
mod settle;
mod stop;
mod stores;
mod tileable;
mod upload;
mod uploads;
mod view;

pub use answer::Answer;
pub use arrange::arrange;
pub use command::{
    Chunk, Column, Command, Decision, Definition, Digest, Graph, Input, Labels, Options, Part, Request,
    Scalar, Tileable, TileableKind,
};
pub use graph::{Counts, GraphError, GraphState};
pub use ids::{GraphKind, GraphName, GraphNo, MutableNo, Name, Place, SessionNo};
pub use key::key_says_index;
pub use mutable::MutableState;
pub use query_mutables::{mutable_chunk_key, mutable_chunk_numbers};
pub use refusal::Refusal;
pub use view::{
    ChunkState, ChunkView, GraphView, MutableChunkView, MutableEntry, MutableView, SealOrder, SessionView,
    TileableView, Totals,
};

pub(crate) use part::{Head, Part as SnapshotPart};
pub(crate) use record::Mars;

/// The function that executes a chunk's subtask.
pub const CHUNK_FUNCTION: &str = "tripod.mars.chunk";
