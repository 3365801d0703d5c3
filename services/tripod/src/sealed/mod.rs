//! Backups that only some can read: files of age, sealed for recipients (X25519), whose identities no node and no
//! command that saves needs to have.
//!
//! A sealed backup is a plain file of age, so whoever has an identity can also open it without this program. Nothing
//! here is kept in memory but a chunk of 64 KiB, however long a backup is.
//!
//! What is written can be read by its recipients alone, and yet is read again before it gets its name: it is sealed
//! for one recipient more, whose identity lives in this process until the file was verified and nowhere else.
//!
//! | module | what |
//! |---|---|
//! | `recipient` | for whom, as it is written on a command line |
//! | `identities` | the file of the identities that open a backup |
//! | `sink` | a backup while it is written, as it is or sealed |
//! | `opened` | the content of a sealed backup |
//! | `outer` | length and hash of a file as it lies there, which anybody can compare |

mod identities;
mod opened;
mod outer;
mod recipient;
mod sink;
#[cfg(test)]
mod tests;

pub(crate) use identities::Identities;
pub(crate) use opened::{is_sealed, open, unreadable};
pub(crate) use outer::Outer;
pub(crate) use recipient::{Recipient, check_number};
pub(crate) use sink::Sink;
