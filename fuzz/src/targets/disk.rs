//! What a node reads of disks, and of files that somebody brings.

use std::path::PathBuf;

use tripod_raft::InitialMember;
use tripod_raft::backup::{self, Plan};
use tripod_raft::fuzzing::{self, RECORD_KINDS};
use tripod_state::ids::{LogIndex, NodeId, Term, TimeMs};
use tripod_state::restore::Jobs;
use tripod_state::{ApplyContext, Envelope, State, level};

use crate::node::{self, BEGINS};
use crate::source::Source;
use crate::target::Target;
use crate::value::Drawn;
use crate::{mutate, pieces};

/// Bodies of frames whose checksums are right. An odd first byte: the last piece stands behind the frames.
pub(crate) const JOURNAL: Target = Target {
    name: "journal",
    what: "frames and records of the journal",
    generate: generate_journal,
    run: run_journal,
};

/// Bodies of frames of records whose checksums are right.
pub(crate) const SNAPSHOT: Target = Target {
    name: "snapshot",
    what: "records of a snapshot, as a leader sends one",
    generate: generate_snapshot,
    run: run_snapshot,
};

/// Whole files, which are verified and restored.
pub(crate) const BACKUP: Target =
    Target { name: "backup", what: "backup files", generate: generate_backup, run: run_backup };

fn generate_journal(source: &mut Source) -> Vec<u8> {
    let mut bodies = Vec::new();
    for frame in 0..1 + source.below(4) {
        let mut body = Vec::new();
        if frame == 0 {
            record(source, 1, &mut body);
        }
        for _ in 0..source.below(4) {
            let kind = 1 + u8::try_from(source.below(usize::from(RECORD_KINDS))).expect("few kinds");
            record(source, kind, &mut body);
        }
        if source.one_in(6) {
            mutate::mutate(source, &mut body);
        }
        bodies.push(body);
    }
    let with_rest = source.one_in(4);
    if with_rest {
        bodies.push(source.bytes(200));
    }
    pieces::join(u8::from(with_rest), &bodies)
}

fn record(source: &mut Source, kind: u8, body: &mut Vec<u8>) {
    let mut content = Vec::new();
    let many = if kind == 2 { source.below(4) } else { 1 };
    for _ in 0..many {
        let Some(encoded) = fuzzing::journal_record(kind, Drawn::new(source)) else { return };
        if kind == 2 {
            content.extend_from_slice(&length(&encoded));
        }
        content.extend(encoded);
    }
    body.push(kind);
    body.extend_from_slice(&length(&content));
    body.extend(content);
}

fn length(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).expect("small").to_le_bytes()
}

fn run_journal(input: &[u8]) {
    let (with_rest, mut bodies) = pieces::split(input);
    let rest = if with_rest % 2 == 1 { bodies.pop() } else { None };
    fuzzing::open_journal(&bodies, rest.unwrap_or_default());
}

/// A state with something in it.
fn state(source: &mut Source) -> State {
    let mut state = State::default();
    let level = tripod_state::ids::FeatureLevel(1 + u32::try_from(source.below(5)).expect("small"));
    let drawn = (0..source.below(30)).filter_map(|_| {
        use serde::Deserialize as _;
        Envelope::deserialize(Drawn::new(source)).ok().map(|envelope| envelope.command)
    });
    let commands = node::beginning(level.min(level::NEWEST)).into_iter().chain(drawn.collect::<Vec<_>>());
    for (index, command) in (1..).zip(commands) {
        if command.needs_at(state.level()) > level::NEWEST {
            continue;
        }
        let context =
            ApplyContext { index: LogIndex(index), term: Term(1), now_ms: TimeMs(BEGINS.0 + index) };
        drop(state.apply(&context, Envelope { stamp: None, command }));
    }
    state
}

fn generate_snapshot(source: &mut Source) -> Vec<u8> {
    let mut records = fuzzing::record_frames(&state(source));
    for _ in 0..source.below(4) {
        let at = source.below(records.len());
        match source.below(5) {
            0 => drop(records.remove(at)),
            1 => {
                let again = records[at].clone();
                records.insert(at, again);
            }
            2 => {
                if let Some(drawn) = fuzzing::snapshot_record(Drawn::new(source)) {
                    records[at] = drawn;
                }
            }
            3 => {
                let other = source.below(records.len());
                records.swap(at, other);
            }
            _ => {
                // The length before the record stays right.
                let mut record = records[at].split_off(4);
                mutate::mutate(source, &mut record);
                records[at] = [&length(&record)[..], &record].concat();
            }
        }
        if records.is_empty() {
            break;
        }
    }
    pieces::join(0, &records)
}

fn run_snapshot(input: &[u8]) {
    let (_, records) = pieces::split(input);
    let _: bool = fuzzing::read_snapshot(&records);
}

fn generate_backup(source: &mut Source) -> Vec<u8> {
    let state = state(source);
    loop {
        if let Some(mut file) = fuzzing::backup(Drawn::new(source), &state) {
            if source.one_in(3) {
                mutate::mutate(source, &mut file);
            }
            return file;
        }
    }
}

/// What can be verified can be restored, or says why not.
fn run_backup(input: &[u8]) {
    // In memory, where there is such a place: what is restored is durable, and a disk is not the subject.
    let memory = PathBuf::from("/dev/shm");
    let place = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let folder = tempfile::Builder::new().prefix("tripod-fuzz-").tempdir_in(place).expect("a directory");
    let file = folder.path().join("backup");
    std::fs::write(&file, input).expect("a small file");
    if backup::verify(&file).is_err() {
        return;
    }
    let plan = Plan {
        file,
        node: NodeId(1),
        data: folder.path().join("data"),
        members: vec![InitialMember { node: NodeId(1), peer: "10.0.0.1:7800".into() }],
        name: "again".into(),
        jobs: if input.len().is_multiple_of(2) { Jobs::Kept } else { Jobs::Ended },
    };
    drop(backup::restore(&plan));
}
