//! Journals that released formats wrote. The files are never edited: a program must read them for ever.

use std::collections::BTreeMap;

use super::machine::Machine;
use super::oracle::Log;
use crate::base::test_entries::{entries, entry, id};
use crate::base::types::Vote;
use crate::disk::Change;
use crate::disk::journal::simulated::{Loss, Medium, SimFiles};

const V1: [(&str, &[u8]); 2] = [
    ("0000000000000001.segment", include_bytes!("compat/v1/0000000000000001.segment")),
    ("0000000000000002.segment", include_bytes!("compat/v1/0000000000000002.segment")),
];

/// A node on which everything has happened that a journal tells.
fn machine() -> Machine {
    let mut machine = Machine::new();
    machine.start().unwrap();
    machine.group(&[Change::Vote(Vote::new(1, 1)), Change::Append(entries(1, 0..6, 30))]).unwrap();
    machine.group(&[Change::Committed(id(1, 2)), Change::TruncateAfter(Some(id(1, 4)))]).unwrap();
    machine.group(&[Change::Purge(id(1, 1)), Change::Append(vec![entry(2, 5, 800)])]).unwrap();
    machine.group(&[Change::Append(entries(2, 6..8, 400)), Change::Vote(Vote::new(3, 1))]).unwrap();
    machine.stop().unwrap();
    machine
}

#[test]
fn a_journal_of_version_1_is_read() {
    let expected: Log = machine().acked;
    let mut old = machine().after_crash(Loss::Nothing);
    let files: BTreeMap<String, Vec<u8>> =
        V1.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
    old.files = SimFiles::holding(Medium::default(), &files);
    assert_eq!(old.start().unwrap(), expected);
}

/// A change of the format must be meant: it needs a new version, and the old one stays readable.
#[test]
fn version_1_is_written() {
    let written = machine().files.contents();
    for (name, bytes) in V1 {
        assert!(written[name] == bytes, "{name} is written differently");
    }
}
