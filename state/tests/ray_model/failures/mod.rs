//! A world of drivers, workers and stores that do what they are told, die, repeat themselves and come late.
//!
//! There is no model of what must come out: there are laws. After every command the books add up, no task has two
//! current attempts, and none is begun more often than it may be. When the faults stop and everybody has done what he
//! was told, every object is there, or failed for a reason, or is gone; when the drivers have left too, nothing is
//! referred to and no store holds anything.

mod client;
mod fault;
mod laws;
mod messenger;
mod settle;
mod worker;
mod world;

use crate::failures::world::World;
use crate::generate::Choice;
use crate::search::search;

/// Steps of such a world cost more than those of a comparison.
const SHARE: u64 = 5;

#[test]
fn whatever_dies_or_repeats_itself_the_laws_hold() {
    search(SHARE, |choices| {
        let mut world = World::started();
        for choice in choices {
            world.step(*choice);
        }
        world.settle();
        world.leave();
        Ok(())
    });
}

/// Faults that do not happen prove nothing.
#[test]
fn the_random_worlds_reach_everything() {
    let mut told = String::new();
    for seed in 0..1_000 {
        let mut world = World::started();
        for choice in crate::generate::history(seed) {
            world.step(choice);
        }
        world.settle();
        told.push_str(&world.told.join("\n"));
    }
    for wanted in [
        "attempt: Attempt(2)",
        "attempt: Attempt(3)",
        "from: Coordinator",
        "NotifyAlias",
        "Deallocate",
        "to nobody",
        "child: Some(TaskCall",
        "present: true",
        "WorkerExpired",
        "GiveBack",
        "Undelivered",
        " loses ",
        " forgets to fetch ",
        "why: Absent",
        "why: Unfinished",
        "asked again",
        "is Failed(PutObject)",
        "is Failed(RetriesExhausted)",
        "is Failed(DependencyFailed",
    ] {
        let times = told.matches(wanted).count();
        assert!(times >= 3, "{wanted} was seen {times} times");
    }
}

impl World {
    fn step(&mut self, choice: Choice) {
        self.numbers = crate::generate::Numbers(choice.seed);
        match choice.what % 100 {
            0..3 => self.new_store(),
            3..10 => self.new_worker(),
            10..13 => self.new_driver(),
            13..31 => self.client_calls(),
            31..45 => self.messages(),
            45..65 => self.work(),
            65..74 => self.fetch(),
            74..84 => self.plan(),
            84..87 => self.repeat(),
            87..89 => self.machine.now_ms += [1, 900, 2_500, 30_000][self.numbers.below(4)],
            89 => self.snapshot(),
            _ => self.fault(),
        }
    }
}
