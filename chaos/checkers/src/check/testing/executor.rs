//! Concurrent clients in front of a model: every call takes effect at one moment, or is lost on the way.

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::history::{Call, ClientId, Header, History, Micros, Operation, OperationId, Outcome};

/// How the clients of a model behave.
#[derive(Debug, Clone, Copy)]
pub(in crate::check) struct Executor {
    pub(in crate::check) seed: u64,
    pub(in crate::check) clients: u32,
    pub(in crate::check) calls_per_client: u32,
    /// Of a hundred calls, how many end with an unknown outcome.
    pub(in crate::check) unknown_percent: u32,
}

/// One call, before anybody knows what it asks.
#[derive(Debug, Clone, Copy)]
pub(in crate::check) struct Slot {
    pub(in crate::check) client: ClientId,
    pub(in crate::check) invoked: Micros,
    pub(in crate::check) completed: Micros,
    /// Whether it takes effect; else the model must not change.
    pub(in crate::check) effective: bool,
    fate: Fate,
    moment: Micros,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    Failed,
    Lost,
}

impl Executor {
    pub(in crate::check) fn new(seed: u64) -> Self {
        Self { seed, clients: 6, calls_per_client: 40, unknown_percent: 10 }
    }

    pub(in crate::check) fn random(&self) -> SmallRng {
        SmallRng::seed_from_u64(self.seed)
    }

    /// Runs the clients. `act` is called for each slot in the order in which the calls take effect; it
    /// chooses the call, changes its model if the slot is effective, and tells the answer.
    pub(in crate::check) fn run(
        &self,
        mut act: impl FnMut(&mut SmallRng, Slot) -> (Call, Outcome),
    ) -> History {
        let mut random = self.random();
        let mut slots: Vec<Slot> =
            (0..self.clients).flat_map(|client| self.client(&mut random, client)).collect();
        slots.sort_by_key(|slot| (slot.moment, slot.invoked, slot.client));
        let mut operations: Vec<Operation> = Vec::with_capacity(slots.len());
        for slot in slots {
            let (call, answer) = act(&mut random, slot);
            let outcome = match slot.fate {
                Fate::Answered => answer,
                Fate::Failed => Outcome::Fail("refused at once".into()),
                Fate::Lost => Outcome::Unknown("no answer".into()),
            };
            operations.push(Operation {
                id: OperationId(0),
                client: slot.client,
                node: None,
                call,
                invoked: slot.invoked,
                completed: slot.completed,
                attempts: 1,
                outcome,
            });
        }
        operations.sort_by_key(|operation| (operation.invoked, operation.client));
        for (id, operation) in (0..).zip(&mut operations) {
            operation.id = OperationId(id);
        }
        let header = Header { scenario: "model".into(), seed: self.seed };
        History { header, operations, ..History::default() }
    }

    /// The calls of one client, one after the other.
    fn client(&self, random: &mut SmallRng, client: u32) -> Vec<Slot> {
        let mut now = random.random_range(0..1_000_u64);
        let mut slots = Vec::new();
        for _ in 0..self.calls_per_client {
            // Odd pauses, so that some calls overlap and others do not.
            let invoked = now + random.random_range(1..800);
            let mut moment = invoked + random.random_range(1..600);
            let mut completed = moment + random.random_range(1..600);
            let (mut fate, mut effective) = (Fate::Answered, true);
            match random.random_range(0..100) {
                roll if roll < self.unknown_percent => {
                    fate = Fate::Lost;
                    effective = random.random_bool(0.5);
                    completed = invoked + random.random_range(300..900);
                    // Long after the client gave up, as often as before.
                    moment = invoked + random.random_range(1..30_000);
                }
                roll if roll < self.unknown_percent + self.unknown_percent / 3 => {
                    (fate, effective) = (Fate::Failed, false);
                }
                _ => {}
            }
            now = completed;
            slots.push(Slot {
                client: ClientId(client),
                invoked: Micros(invoked),
                completed: Micros(completed),
                effective,
                fate,
                moment: Micros(moment),
            });
        }
        slots
    }
}
