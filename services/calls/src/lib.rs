//! Many calls by one stream to one node: the client's side of `tripod.v1.Calls`.
//!
//! A call of its own costs a request of HTTP/2 at both ends, which is most of what a small call costs. By a stream it is
//! an op of a frame. A frame goes at once while fewer than two frames wait for their answers; what is called meanwhile
//! gathers, and goes together when one has come back. There is no timer, so a lone call never waits for company.
//!
//! Calls are bytes here: a path, a message, metadata and perhaps a sequence. Whoever passes calls of others on uses
//! [`CallStream::call`]; generated clients work unchanged over a [`Multiplexed`], or over a [`Way`], which also knows the
//! connection and sends by a call of its own what no stream takes.
//!
//! What this crate does not know: what a call means, how nodes are found and connected to, when a call is sent again.
//!
//! Invariants:
//! * A call of which nobody has an answer is told apart by whether it may have been executed: [`Lost`].
//! * No op is sent that the node has not granted, nor one for which it would end the stream.
//! * Dropping what waits for a call gives the call up, at the node too.
//! * Whatever a node sends, calls end: what it must not send ends the stream.
//!
//! | module | what |
//! |---|---|
//! | `stream` | a stream, its task, and what its owner sees of it |
//! | `ledger` | what was called, sent and granted: every rule, without input or output |
//! | `frames_waiting` | which frames have not come back |
//! | `outgoing` | the client's frames |
//! | `calling` | a call that is waited for |
//! | `options`, `hello`, `metadata` | what is said of one call, and once of all |
//! | `answer`, `lost` | how a call ends |
//! | `one_message`, `message_body` | requests of one message, and bodies with one |
//! | `multiplexed`, `way` | services for generated clients |
//! | `bounds` | how much of everything |

mod answer;
mod bounds;
mod calling;
mod frames_waiting;
mod hello;
mod ledger;
mod lost;
mod message_body;
mod metadata;
mod multiplexed;
mod one_message;
mod options;
mod outgoing;
mod stream;
mod way;

pub use answer::Answer;
pub use bounds::{
    CALLS_MAX, FRAME_BYTES_MAX, FRAME_OPS_MAX, OP_MESSAGE_BYTES_MAX, OP_METADATA_BYTES_MAX, PATHS_MAX,
    QUEUED_BYTES_MAX,
};
pub use calling::Calling;
pub use hello::Hello;
pub use lost::{Lost, Reason};
pub use multiplexed::{Multiplexed, NoAnswer};
pub use options::CallOptions;
pub use stream::CallStream;
pub use way::Way;
