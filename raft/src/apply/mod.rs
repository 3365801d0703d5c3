//! The state machine, and what is remembered as entries are applied. Knows no leader and no peer.
//!
//! | module | what |
//! |---|---|
//! | `engine` | names for openraft over this state machine |
//! | `hooks` | what the layer above is told |

pub(crate) mod engine;
pub(crate) mod hooks;
