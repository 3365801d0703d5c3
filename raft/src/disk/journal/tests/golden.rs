//! A journal with every kind of command, as a build of each level wrote it.

use std::collections::BTreeMap;

use openraft::EntryPayload;
use tripod_state::Envelope;

use super::machine::Machine;
use crate::base::codec;
use crate::base::test_entries::id;
use crate::base::types::{Entry, LogCommand, Vote};
use crate::disk::Change;
use crate::disk::journal::simulated::{Loss, Medium, SimFiles};
use crate::golden::{check_file, clusters, commands, commands_of_level_10, schedulers};

/// The name of the first segment.
const SEGMENT: &str = "0000000000000001.segment";

fn entries(samples: &[commands::Sample]) -> Vec<Entry> {
    let numbered = (0..).zip(samples);
    let entry = |(index, (_, envelope)): (u64, &commands::Sample)| {
        let payload = codec::encode(envelope).into();
        let command = LogCommand { now_ms: 1_700_000_000_000 + index, payload };
        Entry { log_id: id(2, index), payload: EntryPayload::Normal(command) }
    };
    numbered.map(entry).collect()
}

/// A node that has these commands in its journal, and nothing in its home.
fn machine(samples: &[commands::Sample]) -> Machine {
    let mut machine = Machine::new();
    machine.start().unwrap();
    machine.group(&[Change::Vote(Vote::new(2, 1)), Change::Append(entries(samples))]).unwrap();
    machine
}

fn check(name: &str, samples: &[commands::Sample]) {
    let mut written = machine(samples).files.contents();
    let golden = check_file(name, &written[SEGMENT]);
    let mut old = machine(samples).after_crash(Loss::Nothing);
    written.insert(SEGMENT.to_owned(), golden);
    old.files = SimFiles::holding(Medium::default(), &BTreeMap::from_iter(written));
    let found = old.start().unwrap();
    assert_eq!(found.entries.len(), samples.len());
    for ((name, envelope), entry) in samples.iter().zip(found.entries.values()) {
        let EntryPayload::Normal(command) = &entry.payload else { panic!("{name} is {entry:?}") };
        assert_eq!(&codec::decode::<Envelope>(&command.payload).unwrap(), envelope, "{name}");
    }
}

#[test]
fn a_journal_of_level_10_is_read_and_written() {
    check("level10/journal.segment", &commands_of_level_10());
}

#[test]
fn a_journal_of_level_9_is_read_and_written() {
    check("level9/journal.segment", &clusters::commands());
}

#[test]
fn a_journal_of_level_8_is_read_and_written() {
    check("level8/journal.segment", &commands::level_8());
}

#[test]
fn a_journal_of_level_7_is_read_and_written() {
    check("level7/journal.segment", &commands::level_7());
}

#[test]
fn a_journal_of_level_6_is_read_and_written() {
    check("level6/journal.segment", &commands::level_6());
}

#[test]
fn a_journal_of_level_5_is_read_and_written() {
    check("level5/journal.segment", &commands::level_5());
}

#[test]
fn a_journal_of_level_3_is_read_and_written() {
    check("level3/journal.segment", &schedulers::commands());
}

#[test]
fn a_journal_of_level_2_is_read_and_written() {
    check("level2/journal.segment", &commands::level_2());
}

#[test]
fn a_journal_of_level_1_is_read_and_written() {
    check("level1/journal.segment", &commands::level_1());
}
