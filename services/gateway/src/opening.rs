//! How sessions are opened.

use rand::RngExt as _;
use tripod_raft::Chance;
use tripod_state::ids::SessionId;
use tripod_state::level::Rule;
use tripod_state::session::{Command, Owner};

use crate::backend::{Replica, look};

/// How large the id of a session is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdWidth {
    /// 127 random bits.
    Wide,
    /// 64 of them, for clients of builds whose messages have no room for more.
    Narrow,
}

/// Whether the level in force has sessions that belong to somebody.
pub(crate) fn is_owned(backend: &dyn Replica) -> bool {
    look(backend, |state| Rule::OwnedSessions.holds_at(state.level()))
}

/// The command that opens a session at the level in force, with an id that nobody can guess as soon as that allows it.
/// Each call draws another one.
pub(crate) fn command(backend: &dyn Replica, owner: Owner, width: IdWidth) -> Command {
    if !is_owned(backend) {
        return Command::Open;
    }
    let bits: u128 = match width {
        IdWidth::Wide => Chance.random(),
        IdWidth::Narrow => u128::from(Chance.random::<u64>()),
    };
    let id = match owner {
        Owner::Node(_) => SessionId::of_node(bits),
        Owner::Client(_) => SessionId::of_client(bits),
    };
    Command::OpenFor { id, owner }
}
