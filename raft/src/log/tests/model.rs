//! The store against a plain vector, over random changes and restarts.

use proptest::prelude::*;

use super::*;
use crate::disk::journal;

#[derive(Debug, Clone)]
enum Step {
    Append {
        count: u64,
        bytes: usize,
    },
    /// Cuts this many entries off the end, and goes on in a new term.
    Truncate {
        cut: usize,
    },
    /// Learns that all but this many entries are committed. They are not cut off any more.
    Commit {
        open: usize,
    },
    /// Forgets this many entries at the beginning.
    Purge {
        gone: usize,
    },
    /// Purges everything and goes on this far behind the end, as a snapshot does.
    Jump {
        by: u64,
    },
    Restart,
}

/// What the store should hold.
#[derive(Default)]
struct Model {
    entries: Vec<Entry>,
    purged: Option<LogId>,
    committed: Option<LogId>,
    term: u64,
}

impl Model {
    fn last(&self) -> Option<LogId> {
        self.entries.last().map(|entry| entry.log_id).or(self.purged)
    }

    fn next(&self) -> u64 {
        self.last().map_or(0, |id| id.index + 1)
    }
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = prop_oneof![Just(10_usize), Just(700), Just(9_000), Just(70_000)];
    prop_oneof![
        6 => (1..40_u64, bytes).prop_map(|(count, bytes)| Step::Append { count, bytes }),
        2 => (1..30_usize).prop_map(|cut| Step::Truncate { cut }),
        2 => (0..30_usize).prop_map(|open| Step::Commit { open }),
        2 => (1..30_usize).prop_map(|gone| Step::Purge { gone }),
        1 => (1..50_u64).prop_map(|by| Step::Jump { by }),
        2 => Just(Step::Restart),
    ]
}

/// Small enough that most entries are read from disk.
const TAIL_BYTES: usize = 20_000;

type Open = fn(&Path) -> LogStore;

fn open_sled(directory: &Path) -> LogStore {
    let disk = SledDisk::open(&directory.join("log")).unwrap();
    LogStore::open_bounded(disk, Failure::new(), TAIL_BYTES).unwrap()
}

fn open_journal(directory: &Path) -> LogStore {
    let (sled, failure) = (SledDisk::open(&directory.join("log")).unwrap(), Failure::new());
    let disk = journal::open_small(&directory.join("journal"), sled, failure.clone()).unwrap();
    LogStore::open_bounded(disk, failure, TAIL_BYTES).unwrap()
}

async fn take(step: Step, store: &mut LogStore, model: &mut Model, (open, directory): (Open, &Path)) {
    match step {
        Step::Append { count, bytes } => {
            let new = entries(model.term, model.next()..model.next() + count, bytes);
            append(store, new.clone()).await;
            model.entries.extend(new);
        }
        Step::Truncate { cut } => {
            let settled = model.entries.partition_point(|entry| Some(entry.log_id) <= model.committed);
            model.entries.truncate(model.entries.len().saturating_sub(cut).max(settled));
            model.term += 1;
            store.truncate_after(model.last()).await.unwrap();
        }
        Step::Commit { open } => {
            let upto = model.entries.len().saturating_sub(open + 1);
            let Some(entry) = model.entries.get(upto) else { return };
            model.committed = model.committed.max(Some(entry.log_id));
            store.save_committed(model.committed).await.unwrap();
        }
        Step::Purge { gone } => {
            let gone = gone.min(model.entries.len());
            let Some(last) = model.entries.drain(..gone).next_back() else { return };
            model.purged = Some(last.log_id);
            store.purge(last.log_id).await.unwrap();
        }
        Step::Jump { by } => {
            let purged = id(model.term, model.next() + by);
            model.entries.clear();
            model.purged = Some(purged);
            store.purge(purged).await.unwrap();
        }
        Step::Restart => {
            store.close();
            *store = open(directory);
        }
    }
}

async fn run(steps: Vec<Step>, open: Open) {
    let directory = TempDir::new().unwrap();
    let mut store = open(directory.path());
    let mut model = Model { term: 1, ..Model::default() };
    for step in steps.into_iter().chain([Step::Restart]) {
        let what = format!("{step:?}");
        take(step, &mut store, &mut model, (open, directory.path())).await;
        let state = store.get_log_state().await.unwrap();
        assert_eq!(state.last_purged_log_id, model.purged, "after {what}");
        assert_eq!(state.last_log_id, model.last(), "after {what}");
        assert!(all(&mut store).await == model.entries, "other entries after {what}");
    }
    store.close();
}

fn drive(steps: Vec<Step>, open: Open) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    runtime.block_on(run(steps, open));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_store_holds_what_the_model_holds(steps in proptest::collection::vec(step(), 1..25)) {
        drive(steps, open_sled);
    }

    #[test]
    fn the_journalled_store_holds_what_the_model_holds(steps in proptest::collection::vec(step(), 1..40)) {
        drive(steps, open_journal);
    }
}
