//! Replication (to be written).

mod handle;
mod options;

pub use handle::{Applied, AskHandler, Handle, Hooks, Leadership, MemberStatus, ProposeError, Role, StartError, Status};
pub use options::{InitialMember, Options, Timing};
