//! Files that are whole come back; files that are not are refused.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;
use tripod_state::State;
use tripod_state::ids::{LogIndex, ServiceIncarnation, Term, TimeMs};
use tripod_state::{ApplyContext, Command, Envelope, Scope, job, kv};

use super::*;
use crate::base::types::{LogId, Membership};

/// A job with `keys` keys of 1,000 bytes.
pub(super) fn state(keys: u64) -> State {
    let mut state = State::default();
    let create = Command::Job(job::Command::Create {
        name: "job".into(),
        spec: job::Spec::of_tasks(1),
        service: ServiceIncarnation(7),
    });
    apply(&mut state, 1, create);
    let scope = Scope { job: state.job_named("job").unwrap(), service: None };
    for key in 0..keys {
        let insert = kv::Command::Insert {
            scope,
            key: format!("key-{key}"),
            value: vec![1; 1000].into(),
            overwrite: true,
        };
        apply(&mut state, key + 2, Command::Kv(insert));
    }
    state
}

fn apply(state: &mut State, index: u64, command: Command) {
    let context = ApplyContext { index: LogIndex(index), term: Term(1), now_ms: TimeMs(index) };
    let outcome = state.apply(&context, Envelope { stamp: None, command });
    assert!(outcome.reply.is_ok(), "{:?}", outcome.reply);
}

pub(super) fn header(state: &State, index: u64) -> Header {
    let leader = openraft::impls::leader_id_adv::LeaderId { term: 3, node_id: 1 };
    Header {
        cluster_id: "test".into(),
        last_log_id: Some(LogId::new(leader, index)),
        membership: Membership::default(),
        digest: state.digest(),
        form: Form::of(state),
    }
}

fn store(directory: &TempDir) -> SnapshotStore {
    SnapshotStore::open_directory(&directory.path().join("snapshots")).unwrap()
}

fn path(directory: &TempDir, file: &SnapshotFile) -> PathBuf {
    directory.path().join("snapshots").join(&file.name)
}

#[test]
fn a_snapshot_of_several_frames_comes_back() {
    let directory = TempDir::new().unwrap();
    let state = state(3000);
    let store = store(&directory);
    let file = store.write(&header(&state, 9), &state).unwrap().snapshot;
    assert!(fs::metadata(path(&directory, &file)).unwrap().len() > 2 * FRAME_BYTES as u64);
    let (found, back) = file.read().unwrap();
    assert_eq!(found, header(&state, 9));
    assert_eq!(back, state);
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let directory = TempDir::new().unwrap();
    let state = state(3);
    let store = store(&directory);
    let file = store.write(&header(&state, 9), &state).unwrap().snapshot;
    let path = path(&directory, &file);
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(file.verify().is_err(), "cut at {length} of {}", whole.len());
        assert!(file.read().is_err(), "cut at {length} of {}", whole.len());
    }
    fs::write(&path, [whole.as_slice(), b"x"].concat()).unwrap();
    assert!(file.verify().is_err());
    assert!(file.read().is_err());
}

#[test]
fn a_flipped_bit_anywhere_is_refused() {
    let directory = TempDir::new().unwrap();
    let state = state(3);
    let store = store(&directory);
    let file = store.write(&header(&state, 9), &state).unwrap().snapshot;
    let path = path(&directory, &file);
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        fs::write(&path, &flipped).unwrap();
        assert!(file.verify().is_err(), "byte {at} of {}", whole.len());
        assert!(file.read().is_err(), "byte {at} of {}", whole.len());
    }
}

#[test]
fn a_state_that_is_not_the_header_s_is_refused() {
    let directory = TempDir::new().unwrap();
    let state = state(3);
    let wrong = Header { digest: state.digest() ^ 1, ..header(&state, 9) };
    let store = store(&directory);
    let file = store.write(&wrong, &state).unwrap().snapshot;
    assert!(file.read().unwrap_err().to_string().contains("digest"));
}

#[test]
fn a_snapshot_that_was_long_in_the_making_does_not_replace_a_later_one() {
    let directory = TempDir::new().unwrap();
    let (state, store) = (state(1), store(&directory));
    store.write(&header(&state, 20), &state).unwrap();
    store.write(&header(&state, 10), &state).unwrap();
    assert_eq!(store.current().unwrap().meta.last_log_id.unwrap().index, 20);
}

#[test]
fn the_newest_whole_file_is_current_and_two_are_kept() {
    let directory = TempDir::new().unwrap();
    let state = state(1);
    let first = store(&directory);
    for index in [8, 9, 10] {
        first.write(&header(&state, index), &state).unwrap();
    }
    let snapshots = directory.path().join("snapshots");
    assert_eq!(fs::read_dir(&snapshots).unwrap().count(), 2);
    let newest = first.current().unwrap();
    assert_eq!(newest.meta.last_log_id.unwrap().index, 10);
    fs::write(path(&directory, &newest.snapshot), b"damaged").unwrap();
    fs::write(snapshots.join("x.tmp"), b"unfinished").unwrap();
    fs::write(snapshots.join("x.part"), b"unfinished").unwrap();

    let again = store(&directory);
    assert_eq!(again.current().unwrap().meta.last_log_id.unwrap().index, 9);
    assert_eq!(fs::read_dir(&snapshots).unwrap().count(), 2);
}
