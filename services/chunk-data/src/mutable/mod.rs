//! Chunks that are written in place: batches of cells with the time as of which they count, durable before they are
//! answered, and read as of any time.
//!
//! A batch has a timestamp of its client, and a place in the order in which batches of its chunk came. Of all that was
//! written to a cell with a timestamp up to T, the one with the largest pair of timestamp and place is what is read as of T.
//!
//! | module | what |
//! |---|---|
//! | `definition` | what a chunk is |
//! | `frame` | cells of frames: rows of columns |
//! | `record` | what stands in a file |
//! | `frames` | a file as frames, and what is whole of it |
//! | `cells` | one chunk's batches, pure |
//! | `records` | a chunk with its file |
//! | `directory` | the files of a store |
//! | `engine` | all chunks of a store |
//! | `puts` | chunks that are put as wholes, each in a file until it is sealed |
//! | `sweep` | what is kept, and what of it goes |
//! | `playground` | a chunk without a file, as it is fuzzed |

mod cells;
mod definition;
mod directory;
mod engine;
mod error;
mod frame;
mod frames;
mod playground;
mod puts;
mod record;
mod records;
mod sweep;

pub(crate) use definition::is_for_puts;
pub use definition::{ChunkId, Definition};
pub use directory::DirectoryError;
pub use engine::{Engine, Put};
pub(crate) use engine::{Progress, Slot};
pub use error::MutableError;
pub use frame::FrameColumn;
pub(crate) use playground::Playground;
pub(crate) use puts::PutWriter;
pub(crate) use record::Stored;
pub(crate) use sweep::Held;

#[cfg(test)]
mod tests;
