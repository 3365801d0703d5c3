//! Bytes of chunks: `mars.v1.Worker`, which object stores serve for clients and for each other.
//!
//! Chunks of tensors and frames are objects of a store; clients name them by keys, get what they want of them, and
//! compressed if they like. Mutable chunks are written in place, durably, and read as of any time.
//!
//! What this crate does not know: where objects are kept, who may call, how nodes are asked: that is the store's
//! ([`Store`]). Nor what a chunk means: operators are the workers'.
//!
//! Invariants:
//! * No bytes of others end the process or take memory beyond a bound: every length is compared with what is there.
//! * What is wrong with one key is told of it, and the others go on.
//! * A batch is answered when it is durable on all owners; it counts as a whole or not at all, and once.
//! * Nothing is read that may be lost later.
//!
//! | module | what |
//! |---|---|
//! | `layout` | chunks as objects hold them, read and written |
//! | `element`, `npy` | types of elements, and the head of a file of numpy |
//! | `index`, `rows` | what of a tensor or a frame is wanted |
//! | `answer`, `compression`, `stream` | a chunk as messages, and who does not read them |
//! | `request` | calls, compared with bounds |
//! | `look_up` | which object a key is, and who has a mutable chunk; remembered for a while |
//! | `mutable` | chunks that are written in place, or put as wholes, until they are sealed |
//! | `put_chunk` | what a chunk that is put has to be |
//! | `reading`, `writing`, `copying`, `putting`, `sealing`, `dropping`, `service` | `mars.v1.Worker` |
//! | `sweeping` | records that nobody needs any more |
//! | `store` | what an object store shows of itself |
//! | `status`, `limits` | codes of errors; bounds |

mod answer;
mod compression;
mod copying;
mod dropping;
mod element;
#[doc(hidden)]
pub mod fuzzing;
mod index;
pub mod layout;
mod limits;
mod look_up;
pub mod mutable;
mod npy;
mod put_chunk;
mod putting;
mod reading;
mod request;
mod rows;
mod sealing;
mod service;
mod status;
mod store;
mod stream;
mod sweeping;
mod writing;

pub use element::Element;
pub use service::ChunkData;
pub use store::{MutableStates, Object, ObjectError, Store, Usage, Whereabouts, Wish};
pub use sweeping::Sweeper;

/// Bytes that a server of [`ChunkData`] must be able to read as one message.
pub const MESSAGE_BYTES_MAX: usize = limits::MESSAGE_BYTES_MAX;
