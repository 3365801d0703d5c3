//! Graphs of tensors and frames to graphs of chunks: a pure function, [`tile`].
//!
//! A client sends a graph of *tileables*: a tensor of 100 GB plus one, its mean along an axis. No worker can hold one. Each
//! operator has a rule here that says of which chunks its result consists, which function a worker applies for each of them,
//! and to which chunks. The chunk graph is what is logged, scheduled and executed; `README.md` beside this crate has every
//! operator with its rule.
//!
//! # What this crate does not know
//! * Arrays: chunks are computed by workers. It knows their extents and element types as far as they follow from the graph.
//! * Workers, sessions, logs, calls. It sees nothing of ours.
//! * Clocks, randomness, the environment: random chunks carry the seed that the client chose.
//!
//! # Invariants
//! * Equal graphs give equal chunk graphs, byte for byte, on every machine.
//! * A graph is tiled wholly or refused with the node and the reason; nothing is guessed. Where the rule needs an extent that
//!   only execution tells, that is the reason.
//! * Work and memory are bounded by [`limits`] whatever the graph says; nothing is allocated before its bound is looked at.
//! * In a chunk graph the inputs of a node stand before it.
//!
//! # Modules
//!
//! | module | holds |
//! |---|---|
//! | [`limits`] | every bound |
//! | `graph`, `operator` | what is tiled |
//! | `chunk` | what comes of it |
//! | `payload` | operators as bytes, for whoever sends them |
//! | `tiling` | the way from one to the other: order, rules, pruning |
//! | `rules` | a file for each group of operators |
//! | `fuse` | chains of chunks, and others that are small, as one |
//! | `builder` | what the rules add nodes to, and its bounds |
//! | `tiled` | a tileable whose chunks are known |
//! | `splits`, `extent`, `index` | how dimensions are cut |
//! | `dtype`, `scalar` | types of elements as numpy promotes them |
//! | `refusal` | why a graph is refused |

mod builder;
mod chunk;
mod column;
mod dtype;
mod extent;
mod fuse;
mod graph;
mod index;
mod key;
pub mod limits;
mod operator;
mod order;
mod payload;
mod refusal;
mod rules;
mod scalar;
mod splits;
mod tiled;
mod tiling;

pub use chunk::{
    ChunkGraph, ChunkId, ChunkKey, ChunkNode, ChunkOperator, Content, Gives, Step, Takes, Target,
};
pub use column::{Column, ColumnType};
pub use dtype::DType;
pub use extent::{Extent, Measure, Unknown};
pub use fuse::fuse;
pub use graph::{Declared, Tileable, TileableGraph};
pub use index::{AxisIndex, Range};
pub use key::TileableKey;
pub use operator::{
    Aggregate, AggregateFunction, BinaryFunction, Chunking, FrameFormat, Operand, Operator, Reduction,
    ReductionFunction, UnaryFunction,
};
pub use payload::{read_operator, write_operator};
pub use refusal::{Reason, Refusal};
pub use scalar::Scalar;
pub use splits::Splits;
pub use tiling::{Helpers, tile};
