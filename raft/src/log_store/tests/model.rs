//! The store against a plain vector, over random changes and restarts.

use proptest::prelude::*;

use super::*;

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
        2 => (1..30_usize).prop_map(|gone| Step::Purge { gone }),
        1 => (1..50_u64).prop_map(|by| Step::Jump { by }),
        2 => Just(Step::Restart),
    ]
}

/// Small enough that most entries are read from disk.
const TAIL_BYTES: usize = 20_000;

fn open_small(directory: &Path) -> LogStore {
    let disk = SledDisk::open(&directory.join("log")).unwrap();
    LogStore::open_bounded(disk, Failure::new(), TAIL_BYTES).unwrap()
}

async fn take(step: Step, store: &mut LogStore, model: &mut Model, directory: &Path) {
    match step {
        Step::Append { count, bytes } => {
            let new = entries(model.term, model.next()..model.next() + count, bytes);
            append(store, new.clone()).await;
            model.entries.extend(new);
        }
        Step::Truncate { cut } => {
            model.entries.truncate(model.entries.len().saturating_sub(cut));
            model.term += 1;
            store.truncate_after(model.last()).await.unwrap();
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
            *store = open_small(directory);
        }
    }
}

async fn run(steps: Vec<Step>) {
    let directory = TempDir::new().unwrap();
    let mut store = open_small(directory.path());
    let mut model = Model { term: 1, ..Model::default() };
    for step in steps.into_iter().chain([Step::Restart]) {
        let what = format!("{step:?}");
        take(step, &mut store, &mut model, directory.path()).await;
        let state = store.get_log_state().await.unwrap();
        assert_eq!(state.last_purged_log_id, model.purged, "after {what}");
        assert_eq!(state.last_log_id, model.last(), "after {what}");
        assert!(all(&mut store).await == model.entries, "other entries after {what}");
    }
    store.close();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_store_holds_what_the_model_holds(steps in proptest::collection::vec(step(), 1..25)) {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap().block_on(run(steps));
    }
}
