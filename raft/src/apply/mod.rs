//! The state machine, and what is remembered as entries are applied. Knows no leader and no peer, nor who compares
//! states, changes members or raises the level: those look here.
//!
//! | module | what |
//! |---|---|
//! | `state_machine` | apply, snapshot, replace |
//! | `glance` | what can be known of the state without its lock |
//! | `engine` | names for openraft over this state machine |
//! | `hooks` | what the layer above is told |
//! | `fork` | a state as it was at one index, and when there is one |
//! | `levels` | what the log has meant for the levels of this node |
//! | `pin` | that it is to support no more than a level, remembered in the data directory |
//! | `cluster_configuration` | who the members are, as the membership entry lists them |
//! | `met` | everybody whom the log has named |

pub(crate) mod cluster_configuration;
pub(crate) mod engine;
pub(crate) mod fork;
mod glance;
pub(crate) mod hooks;
pub(crate) mod levels;
pub(crate) mod met;
pub(crate) mod pin;
pub(crate) mod state_machine;
