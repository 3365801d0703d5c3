//! Flipped bits, lost files, foreign files.

use std::collections::BTreeMap;

use super::machine::{Machine, SMALL};
use super::oracle::{Log, Script};
use crate::base::test_entries::{entries, entry};
use crate::disk::journal::frame::JournalId;
use crate::disk::journal::record::Checkpoint;
use crate::disk::journal::recovery;
use crate::disk::journal::simulated::{Loss, Medium, SimFiles, SimHome};
use crate::disk::journal::state::LogValues;
use crate::disk::{Change, DiskError};

/// A machine that has run and is down: killed after its last group was done, or stopped.
fn stopped(seed: u64, clean: bool) -> Machine {
    let mut machine = Machine::new();
    machine.start().unwrap();
    for step in Script::steps(seed, 40) {
        machine.take(&step).unwrap();
    }
    let next = machine.acked.last().map_or(0, |id| id.index + 1);
    machine.group(&[Change::Append(entries(1000, next..next + 2, 20))]).unwrap();
    machine.rest().unwrap();
    if clean {
        machine.stop().unwrap();
    }
    machine.after_crash(Loss::Nothing)
}

/// Starts on other files than the machine left.
fn start_on(machine: &Machine, files: &BTreeMap<String, Vec<u8>>) -> Result<Log, DiskError> {
    let mut other = machine.after_crash(Loss::Nothing);
    other.files = SimFiles::holding(Medium::default(), files);
    other.start()
}

/// Whether damage was refused; panics if it was neither refused nor harmless.
fn is_refused(machine: &Machine, files: &BTreeMap<String, Vec<u8>>, what: &str) -> bool {
    match start_on(machine, files) {
        Ok(found) => {
            assert!(found == machine.acked, "{what}: another log passes");
            false
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.starts_with("T3101 log-damaged") && text.contains("run `mv "), "{what}: {text}");
            true
        }
    }
}

#[test]
fn a_flipped_bit_in_any_byte_is_harmless_or_refused() {
    let mut refused = 0;
    for (seed, clean) in [(3, false), (5, true)] {
        let machine = stopped(seed, clean);
        let files = machine.files.contents();
        assert!(files.len() > 2, "several segments");
        for (name, bytes) in &files {
            for at in 0..bytes.len() {
                let bit = (at + usize::from(clean) * 5) % 8;
                let mut flipped = files.clone();
                flipped.get_mut(name).unwrap()[at] ^= 1 << bit;
                let what = format!("seed {seed}, {name}, byte {at}, bit {bit}");
                refused += u32::from(is_refused(&machine, &flipped, &what));
            }
        }
    }
    assert!(refused > 500, "only {refused} flips were noticed");
}

/// The one case that cannot be told from a write that was never finished: the last frame of a log
/// whose seal was lost with the power.
#[test]
fn only_the_last_frame_may_go_and_only_without_its_seal() {
    let mut machine = Machine::new();
    machine.start().unwrap();
    let before: Vec<Log> = (0..3)
        .map(|index| {
            let before = machine.acked.clone();
            machine.group(&[Change::Append(vec![entry(1, index, 10)])]).unwrap();
            before
        })
        .collect();
    let unsealed = machine.after_crash(Loss::Everything);
    let files = unsealed.files.contents();
    let mut shortened = 0;
    for (name, bytes) in &files {
        for at in 0..bytes.len() {
            let mut flipped = files.clone();
            flipped.get_mut(name).unwrap()[at] ^= 0x04;
            match start_on(&unsealed, &flipped) {
                Ok(found) if found == unsealed.acked => {}
                Ok(found) => {
                    assert_eq!(found, before[2], "{name}, byte {at}: more than the last frame is gone");
                    shortened += 1;
                }
                Err(error) => assert!(error.to_string().starts_with("T3101 log-damaged"), "{error}"),
            }
        }
    }
    assert!(shortened > 0, "the test does not see what it is about");

    machine.rest().unwrap();
    assert_proven(&machine.after_crash(Loss::Nothing));
    // A start seals what it finds.
    let mut started = unsealed;
    started.start().unwrap();
    assert_proven(&started.after_crash(Loss::Everything));
}

/// No flip passes.
fn assert_proven(machine: &Machine) {
    let files = machine.files.contents();
    for (name, bytes) in &files {
        for at in 0..bytes.len() {
            let mut flipped = files.clone();
            flipped.get_mut(name).unwrap()[at] ^= 0x04;
            is_refused(machine, &flipped, &format!("{name}, byte {at}"));
        }
    }
}

#[test]
fn a_lost_or_shortened_file_is_noticed() {
    let machine = stopped(3, true);
    let files = machine.files.contents();
    let mut refused = 0;
    for name in files.keys() {
        let mut lost = files.clone();
        lost.remove(name);
        refused += u32::from(is_refused(&machine, &lost, &format!("without {name}")));
        for bytes in [0, 1, 200, 511, 513, files[name].len() - 1] {
            let mut shortened = files.clone();
            shortened.get_mut(name).unwrap().truncate(bytes);
            let noticed = is_refused(&machine, &shortened, &format!("{name} of {bytes} bytes"));
            assert!(noticed || bytes as u64 >= SMALL.segment_bytes, "{name} of {bytes} bytes");
        }
    }
    assert!(refused >= 2, "{refused}");
    let refusal = start_on(&machine, &BTreeMap::new()).unwrap_err().to_string();
    assert!(refusal.starts_with("T3101 log-damaged"), "{refusal}");
}

/// One flipped bit in the last record of sled's file makes sled drop it, and that record may be the journal's id.
#[test]
fn a_home_that_forgot_its_journal_gets_no_new_one() {
    let mut young = Machine::new();
    young.start().unwrap();
    young.group(&[Change::Append(entries(1, 0..1, 10))]).unwrap();
    for machine in [&young, &stopped(3, true), &stopped(5, false)] {
        let mut forgetful = machine.after_crash(Loss::Nothing);
        forgetful.home = SimHome::new(forgetful.medium.clone());
        let refusal = forgetful.start().unwrap_err().to_string();
        assert!(refusal.starts_with("T3101 log-damaged") && refusal.contains("has lost"), "{refusal}");
    }
    // What an interrupted creation leaves is another matter: nothing was ever in that journal.
    let mut interrupted = Machine::new();
    let checkpoint = Checkpoint { through: None, moved: None, oldest: recovery::FIRST_SEGMENT };
    let nothing = LogValues { vote: None, committed: None, purged: None, last: None, checkpoint };
    recovery::create(&interrupted.files, JournalId(9), nothing, SMALL).unwrap();
    assert_eq!(interrupted.start().unwrap(), Log::default());
}

/// Every file of it is whole, and it ends as a journal ends; but votes and entries are missing.
#[test]
fn a_journal_of_an_older_state_is_refused() {
    let mut machine = Machine::new();
    machine.start().unwrap();
    machine.group(&[Change::Append(entries(1, 0..3, 100))]).unwrap();
    machine.rest().unwrap();
    let older = machine.files.contents();
    let mut next = 3;
    while machine.home.len() == 0 {
        let new = entries(1, next..next + 5, 100);
        let committed = new[4].log_id;
        machine.group(&[Change::Append(new), Change::Committed(committed)]).unwrap();
        next += 5;
    }
    machine.stop().unwrap();
    let newer = machine.files.contents();
    let mut mixed = newer.clone();
    mixed.extend(older.clone().into_iter().filter(|(name, _)| newer.contains_key(name)));
    is_refused(&machine, &mixed, "a mix of two states");
    assert!(is_refused(&machine, &older, "the older state"));
}

#[test]
fn a_home_that_holds_less_or_something_else_than_promised_is_refused() {
    let mut machine = Machine::new();
    machine.start().unwrap();
    for next in (0..60).step_by(3) {
        let new = entries(1, next..next + 3, 100);
        let committed = new[2].log_id;
        machine.group(&[Change::Append(new), Change::Committed(committed)]).unwrap();
    }
    machine.stop().unwrap();
    let held = machine.home.len() as u64;
    assert!(held > 10, "{held} entries were moved");

    let mut altered = machine.after_crash(Loss::Nothing);
    altered.home.alter(held - 2, entry(1, held - 2, 7));
    let refusal = altered.start().unwrap_err().to_string();
    assert!(refusal.starts_with("T3101 log-damaged") && refusal.contains("not what was moved"), "{refusal}");

    let mut shorter = machine.after_crash(Loss::Nothing);
    for _ in 0..held {
        shorter.home.forget_last();
        let refusal = shorter.start().unwrap_err().to_string();
        assert!(refusal.starts_with("T3101 log-damaged") && refusal.contains("is missing"), "{refusal}");
    }
}
