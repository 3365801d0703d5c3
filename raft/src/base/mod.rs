//! The words that everything here is said in. Knows no disk, no node and no peer.
//!
//! | module | what |
//! |---|---|
//! | `clock` | the time of day |
//! | `observer` | who looks on |
//! | `error` | why something did not come through, or a node did not start |
//! | `advice` | what an operator is told who must give up a node's data |
//! | `command` | which encoded commands can be read back |

pub(crate) mod advice;
pub(crate) mod clock;
pub(crate) mod command;
pub(crate) mod error;
pub(crate) mod observer;
#[cfg(test)]
pub(crate) mod test_entries;
