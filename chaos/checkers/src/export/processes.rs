//! Who called. Other checkers know processes that make one call after the other.

use std::collections::BTreeMap;

use crate::history::{ClientId, Micros, Operation, Outcome};

/// Gives each client a process, and another one behind a call that is still open: whose outcome is not known may still
/// take effect.
#[derive(Debug, Default)]
pub(super) struct Processes {
    of: BTreeMap<ClientId, Process>,
    next: u64,
}

#[derive(Debug, Clone, Copy)]
struct Process {
    number: u64,
    /// When its last call was over; `None`: nobody knows whether it ever will be.
    free: Option<Micros>,
}

impl Processes {
    /// The process of a call. To be asked in the order in which calls were invoked.
    pub(super) fn of(&mut self, operation: &Operation) -> u64 {
        let last = self.of.get(&operation.client).copied();
        let again = last.filter(|last| last.free.is_some_and(|free| free < operation.invoked));
        let number = again.map_or(self.next, |process| process.number);
        if again.is_none() {
            self.next += 1;
        }
        let open = matches!(operation.outcome, Outcome::Unknown(_));
        let free = (!open).then_some(operation.completed);
        self.of.insert(operation.client, Process { number, free });
        number
    }
}
