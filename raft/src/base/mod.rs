//! The words that everything here is said in. Knows no disk, no node and no peer.
//!
//! | module | what |
//! |---|---|
//! | `types`, `runtime`, `codec` | what openraft must know of us; every byte we encode |
//! | `options`, `local_identity` | what a node is started with, and which it is |
//! | `names` | which certificate belongs to which node |
//! | `error`, `failure` | why something did not come through, a node did not start, or cannot go on |
//! | `advice` | what an operator is told who must give up a node's data |
//! | `command` | which encoded commands can be read back |
//! | `chance`, `clock` | every random number, seeded in a simulation; the time of day |
//! | `observer` | who looks on |
//! | `stages` | how long a write takes, stage by stage |

pub(crate) mod advice;
pub(crate) mod chance;
pub(crate) mod clock;
pub(crate) mod codec;
pub(crate) mod command;
pub(crate) mod error;
pub(crate) mod failure;
pub(crate) mod local_identity;
pub(crate) mod names;
pub(crate) mod observer;
pub(crate) mod options;
pub(crate) mod runtime;
pub(crate) mod stages;
#[cfg(test)]
pub(crate) mod test_entries;
pub(crate) mod types;
