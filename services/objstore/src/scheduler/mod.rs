//! What the store says to the scheduler: that it is there, that it lives, and what it has.
//!
//! | module | what |
//! |---|---|
//! | `endpoints` | calls to whichever node answers |
//! | `session` | the stamps that make calls take effect once |
//! | `register` | a new id |
//! | `heartbeat` | being alive |
//! | `reports` | objects that became ready, and those that do not come |

mod endpoints;
mod heartbeat;
mod register;
mod reports;
mod session;

pub(crate) use endpoints::Endpoints;
pub(crate) use heartbeat::beat;
pub(crate) use register::register;
pub(crate) use reports::report;
pub(crate) use session::Session;

/// Why an incarnation of the store ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The scheduler has given this id up: everything is dropped, and the store registers anew.
    Expired,
    /// The scheduler ordered the store to end.
    Die,
}
