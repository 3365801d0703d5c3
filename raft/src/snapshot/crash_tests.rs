//! A snapshot that a node found at its start is there at the next one, whatever ended the lives between.

use std::sync::Arc;

use super::tests::{header, state};
use super::*;
use crate::base::types::LogId;
use crate::disk::Work;
use crate::disk::journal::{Loss, Medium, SimFiles};

/// Opens the store as a node's next life does.
fn open(files: &SimFiles) -> SnapshotStore {
    SnapshotStore::open(Arc::new(files.clone()), Work::Threads).unwrap()
}

fn reach(store: &SnapshotStore) -> Option<LogId> {
    store.current().and_then(|current| current.meta.last_log_id)
}

/// What a disk holds after a snapshot was made durable and a second one was interrupted at that operation. Tells
/// also whether there was such an operation.
fn interrupted(operation: u64) -> (SimFiles, bool) {
    let files = SimFiles::new(Medium::default(), "sim/snapshots");
    let state = state(3);
    open(&files).write(&header(&state, 199), &state).unwrap();
    let medium = Medium::default();
    medium.crash_at(operation);
    let files = files.after_crash(medium, Loss::Nothing);
    let whole = SnapshotStore::open(Arc::new(files.clone()), Work::Threads)
        .and_then(|store| store.write(&header(&state, 299), &state))
        .is_ok();
    (files, !whole)
}

/// The log is let go behind the snapshot that is found. If a life ended between the rename of the file and the sync
/// of its directory, the next one finds it by a name that a power cut takes back.
#[test]
fn a_snapshot_that_was_found_outlives_a_power_cut() {
    let (mut operation, mut found_newer) = (1, 0);
    loop {
        let (files, was_interrupted) = interrupted(operation);
        let second = files.after_crash(Medium::default(), Loss::Nothing);
        let found = reach(&open(&second));
        assert!(found.is_some(), "operation {operation} took the older snapshot");
        found_newer += u64::from(found.is_some_and(|last| last.index == 299));
        for loss in [Loss::Everything, Loss::Some(operation), Loss::Some(operation + 1000)] {
            let third = second.after_crash(Medium::default(), loss);
            assert!(
                reach(&open(&third)) >= found,
                "{loss:?} after operation {operation} takes {found:?} back"
            );
        }
        if !was_interrupted {
            break;
        }
        operation += 1;
    }
    assert!(operation > 5 && found_newer > 1, "{operation} operations, {found_newer} with the newer one");
}
