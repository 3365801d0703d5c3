//! What is done to the scheduler's peers.

use std::cell::RefCell;
use std::collections::BTreeMap;

use rand::RngExt as _;

use super::life::{Life, Reins, Rough, begin};
use crate::client::{Client, Phase};
use crate::witness::now;

/// Whose place a process takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Seat {
    Store(u16),
    Worker(usize),
    Driver(usize),
}

/// Holds the reins of all processes.
pub(super) struct Harm {
    rough: Rough,
    reins: RefCell<BTreeMap<Seat, Reins>>,
}

impl Harm {
    pub(super) fn new(rough: &Rough) -> Self {
        Self { rough: rough.clone(), reins: RefCell::default() }
    }

    /// A process begins.
    pub(super) fn begin(&self, seat: Seat, seed: u64) -> Life {
        let (life, reins) = begin(seed, &self.rough);
        self.reins.borrow_mut().insert(seat, reins);
        life
    }

    /// Does harm while faults are injected, and undoes it; never ends. Processes die only if they are to.
    pub(super) async fn run(&self, mut client: Client, deadly: bool) {
        self.rough.set(true);
        while client.phase() == Phase::Faults {
            client.pause(1500).await;
            if !deadly || client.phase() != Phase::Faults {
                continue;
            }
            let Some(seat) = self.any(&mut client) else { continue };
            let pause = client.dice.random_ratio(1, 3).then(|| client.dice.random_range(500..7000));
            match pause {
                Some(paused_ms) => {
                    client.witness.note(now(), "harm", format_args!("{seat:?} stands still {paused_ms} ms"));
                    client.witness.count("peers that stood still");
                    self.set_paused(seat, true);
                    client.pause(paused_ms).await;
                    self.set_paused(seat, false);
                }
                None => {
                    client.witness.note(now(), "harm", format_args!("{seat:?} is killed"));
                    client.witness.count("peers that were killed");
                    if let Some(reins) = self.reins.borrow_mut().get_mut(&seat) {
                        reins.kill();
                    }
                }
            }
        }
        self.rough.set(false);
        std::future::pending::<()>().await;
    }

    fn set_paused(&self, seat: Seat, paused: bool) {
        if let Some(reins) = self.reins.borrow().get(&seat) {
            reins.set_paused(paused);
        }
    }

    /// Mostly workers.
    fn any(&self, client: &mut Client) -> Option<Seat> {
        let workers_only = client.dice.random_ratio(1, 2);
        let reins = self.reins.borrow();
        let suits = |seat: &&Seat| !workers_only || matches!(seat, Seat::Worker(_));
        let seats: Vec<Seat> = reins.keys().filter(suits).copied().collect();
        (!seats.is_empty()).then(|| seats[client.dice.random_range(0..seats.len())])
    }
}
