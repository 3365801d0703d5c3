//! What is on disk, and whose it is. Knows no engine, no leader, no member and no snapshot.
//!
//! | module | what |
//! |---|---|
//! | `contract` | what the log asks of whatever keeps it |
//! | `files` | the seam to the file system |
//! | `journal` | what makes the log durable, in front of its home; the simulated disk |
//! | `home` | where entries live in the end: sled |
//! | `work` | who does what blocks: a thread, or the caller |
//! | `identity` | whose data directory this is, and opening it |
//! | `skipped` | the note of entries that are passed over |

mod contract;
mod files;
pub(crate) mod home;
pub(crate) mod identity;
pub(crate) mod journal;
pub(crate) mod skipped;
mod spare_file;
mod work;

pub(crate) use contract::{Change, Disk, DiskError, Loaded, OldEntries};
pub(crate) use files::{Blob, Files, RealFiles, read_up_to};
pub(crate) use home::{MetaKey, SledDisk};
pub(crate) use work::Work;
