//! A disk that is full for a while.

use super::machine::Machine;
use crate::base::test_entries::entries;
use crate::base::types::Vote;
use crate::disk::Change;
use crate::disk::journal::simulated::Loss;

/// Appends and commits three entries.
fn grow(machine: &mut Machine) {
    let next = machine.acked.last().map_or(0, |id| id.index + 1);
    let new = entries(1, next..next + 3, 100);
    let committed = new[2].log_id;
    machine.group(&[Change::Append(new), Change::Committed(committed)]).unwrap();
}

#[test]
fn a_full_disk_is_said_early_and_votes_and_purges_go_on() {
    let mut machine = Machine::new();
    machine.start().unwrap();
    grow(&mut machine);
    machine.files.set_room(Some(0));
    let space = machine.space();
    let mut groups = 0;
    while !space.is_low() {
        grow(&mut machine);
        machine.rest().unwrap();
        groups += 1;
        assert!(groups < 100, "the disk is full, and nobody says so");
    }
    // A whole segment is left at this moment.
    for term in 2..6 {
        machine.group(&[Change::Vote(Vote::new(term, 1))]).unwrap();
    }
    let last = machine.acked.last().unwrap();
    machine.group(&[Change::Purge(last)]).unwrap();
    machine.group(&[Change::Vote(Vote::new(7, 1))]).unwrap();
    machine.rest().unwrap();
    machine.rest().unwrap();
    assert!(!space.is_low(), "a purge gives files back");
    for _ in 0..3 {
        grow(&mut machine);
    }

    machine.files.set_room(None);
    machine.stop().unwrap();
    let found = machine.start().unwrap();
    assert_eq!(found, machine.acked);
}

#[test]
fn it_clears_by_itself_when_there_is_room_again() {
    let mut machine = Machine::new();
    machine.start().unwrap();
    machine.files.set_room(Some(0));
    let space = machine.space();
    while !space.is_low() {
        grow(&mut machine);
        machine.rest().unwrap();
    }
    machine.files.set_room(None);
    machine.rest().unwrap();
    machine.rest().unwrap();
    assert!(!space.is_low());
}

#[test]
fn a_log_that_grows_on_a_full_disk_fails_and_loses_nothing() {
    let mut machine = Machine::new();
    machine.start().unwrap();
    grow(&mut machine);
    machine.files.set_room(Some(0));
    let refusal = loop {
        let next = machine.acked.last().map_or(0, |id| id.index + 1);
        match machine.group(&[Change::Append(entries(1, next..next + 3, 100))]) {
            Ok(()) => assert!(next < 1000, "nothing is written to a full disk"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(refusal.starts_with("T3102 log-io") && refusal.contains("free space"), "{refusal}");
    machine.files.set_room(None);
    let mut again = machine.after_crash(Loss::Everything);
    assert_eq!(again.start().unwrap(), machine.acked);
}
