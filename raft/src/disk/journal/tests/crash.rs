//! A crash at every operation of random sequences, with several patterns of what is lost.

use super::machine::Machine;
use super::oracle::{Log, Script, Step};
use crate::base::test_entries::entry;
use crate::base::types::Vote;
use crate::disk::Change;
use crate::disk::journal::simulated::Loss;

const STEPS: usize = 22;

/// Takes the steps until the machine crashes, or to the end.
fn drive(machine: &mut Machine, steps: &[Step]) {
    if machine.start().is_err() {
        return;
    }
    for step in steps {
        if machine.take(step).is_err() {
            return;
        }
    }
}

/// Starts a crashed machine, twice, and goes on; panics if the log is none that may be found.
fn recover(mut machine: Machine, what: &str) {
    let allowed = machine.acked.prefixes(&machine.pending);
    let found = machine.start().unwrap_or_else(|error| panic!("{what}: refused: {error}"));
    assert!(allowed.contains(&found), "{what}: found\n{found:#?}\nacknowledged\n{:#?}", machine.acked);
    let vote = |log: &Log| log.values.vote;
    assert!(vote(&found) >= vote(&machine.acked), "{what}: the vote went back");

    // A start changes nothing, whether or not the one before it came to an end.
    for loss in [Loss::Nothing, Loss::Everything] {
        let again = machine.after_crash(loss).start();
        assert_eq!(again.unwrap_or_else(|error| panic!("{what}: refused at last: {error}")), found, "{what}");
    }
    machine.acked = found;
    machine.pending.clear();
    go_on(&mut machine, what);
}

/// Uses the log and stops in order: what was found must be good to build on.
fn go_on(machine: &mut Machine, what: &str) {
    let term = 1000;
    for _ in 0..4 {
        let next = machine.acked.last().map_or(0, |id| id.index + 1);
        let entries = vec![entry(term, next, 300), entry(term, next + 1, 300)];
        let last = entries[1].log_id;
        machine.group(&[Change::Append(entries)]).unwrap();
        machine.group(&[Change::Committed(last), Change::Vote(Vote::new(term, 1))]).unwrap();
        // What the system kept over the end of the process may still be lost.
        let found = machine.after_crash(Loss::Everything).start();
        let found = found.unwrap_or_else(|error| panic!("{what}, power lost later: refused: {error}"));
        assert!(found == machine.acked, "{what}, power lost later: found\n{found:#?}\n{:#?}", machine.acked);
        machine.rest().unwrap();
    }
    machine.take(&Step::Reopen).unwrap();
}

/// Starts a machine whose process has crashed, and lets the power go soon after.
fn crash_again(mut machine: Machine, at: u64, what: &str) {
    machine.medium.crash_at(at);
    if let Ok(found) = machine.start() {
        machine.acked = found;
        machine.pending.clear();
        for _ in 0..6 {
            let next = machine.acked.last().map_or(0, |id| id.index + 1);
            let entries = vec![entry(500, next, 300), entry(500, next + 1, 300)];
            let last = entries[1].log_id;
            if machine.group(&[Change::Append(entries), Change::Committed(last)]).is_err() {
                break;
            }
        }
    }
    for loss in [Loss::Everything, Loss::Some(at)] {
        recover(machine.after_crash(loss), &format!("{what}, again at {at}, {loss:?}"));
    }
}

fn crash_everywhere(seed: u64) -> u64 {
    let steps = Script::steps(seed, STEPS);
    let mut whole = Machine::new();
    drive(&mut whole, &steps);
    let operations = whole.medium.count();
    for at in 1..=operations {
        let mut machine = Machine::new();
        machine.medium.crash_at(at);
        drive(&mut machine, &steps);
        crash_again(machine.after_crash(Loss::Nothing), 1 + at % 17, &format!("seed {seed}, crash at {at}"));
        for loss in [Loss::Nothing, Loss::Everything, Loss::Some(at), Loss::Some(at + 7919)] {
            recover(machine.after_crash(loss), &format!("seed {seed}, crash at {at}, {loss:?}"));
        }
    }
    operations
}

#[test]
fn a_crash_at_any_operation_loses_nothing_that_was_acknowledged() {
    let seeds = std::env::var("TRIPOD_CRASH_SEEDS").map_or(6, |seeds| seeds.parse().unwrap());
    let operations: u64 = (0..seeds).map(crash_everywhere).sum();
    println!("{operations} crash points, 4 patterns of loss each");
    assert!(operations > seeds * 40, "{operations} operations are too few to mean anything");
}

#[test]
fn a_running_journal_reads_what_was_acknowledged() {
    let mut moved = 0;
    for seed in 0..60 {
        let mut machine = Machine::new();
        machine.start().unwrap();
        for step in Script::steps(seed, 60) {
            machine.take(&step).unwrap();
            let known = machine.acked.prefixes(&machine.pending);
            let committed = known.iter().filter_map(|log| log.values.committed).map(|id| id.index).max();
            assert!(machine.home.last_index() <= committed, "seed {seed}: the home has what may be cut off");
            if machine.pending.is_empty() {
                let expected: Vec<_> = machine.acked.entries.values().cloned().collect();
                assert_eq!(machine.readable(), expected, "seed {seed}, after {step:?}");
            }
        }
        moved += machine.home.len();
    }
    assert!(moved > 100, "only {moved} entries were moved to the home");
}
