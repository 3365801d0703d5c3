//! What everybody holds of the room for sessions.

use imbl::OrdMap;

use crate::fault::Fault;
use crate::limits::{
    ADDRESS_SESSION_BYTES_MAX, ADDRESS_SESSIONS_MAX, CLIENT_SESSION_BYTES_MAX, CLIENT_SESSIONS_MAX, within,
};
use crate::session::Owner;

/// Sessions and bytes of remembered replies by owner. Derived from the sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Owners {
    held: OrdMap<Owner, Usage>,
    by_clients: Usage,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Usage {
    sessions: u64,
    bytes: u64,
}

impl Owners {
    /// Whether one more may be opened. Nodes always have room: what they have is bounded by closing their oldest.
    pub(super) fn check_session(&self, owner: Owner) -> Result<(), Fault> {
        if let Owner::Client(_) = owner {
            within("sessions of clients", self.by_clients.sessions + 1, CLIENT_SESSIONS_MAX)?;
            within("sessions of clients at one address", self.sessions_of(owner) + 1, ADDRESS_SESSIONS_MAX)?;
        }
        Ok(())
    }

    /// Whether a command more may be executed whose reply is to be remembered.
    pub(super) fn check_bytes(&self, owner: Owner) -> Result<(), Fault> {
        if let Owner::Client(_) = owner {
            let held = self.held.get(&owner).map_or(0, |held| held.bytes);
            within("bytes of remembered replies", self.by_clients.bytes, CLIENT_SESSION_BYTES_MAX)?;
            within("bytes of remembered replies at one address", held, ADDRESS_SESSION_BYTES_MAX)?;
        }
        Ok(())
    }

    pub(super) fn sessions_of(&self, owner: Owner) -> u64 {
        self.held.get(&owner).map_or(0, |held| held.sessions)
    }

    /// One more session, which holds so many bytes.
    pub(super) fn add(&mut self, owner: Owner, bytes: u64) {
        self.change(owner, |held| {
            held.sessions += 1;
            held.bytes += bytes;
        });
    }

    /// One session less, which held so many bytes.
    pub(super) fn take(&mut self, owner: Owner, bytes: u64) {
        self.change(owner, |held| {
            held.sessions -= 1;
            held.bytes -= bytes;
        });
    }

    /// What a session of theirs holds has become another amount.
    pub(super) fn change_bytes(&mut self, owner: Owner, from: u64, to: u64) {
        self.change(owner, |held| held.bytes = held.bytes + to - from);
    }

    fn change(&mut self, owner: Owner, change: impl Fn(&mut Usage)) {
        let held = self.held.entry(owner).or_default();
        change(held);
        let is_gone = held.sessions == 0;
        if is_gone {
            self.held.remove(&owner);
        }
        if let Owner::Client(_) = owner {
            change(&mut self.by_clients);
        }
    }
}
