use std::sync::OnceLock;

use parking_lot::Mutex;
use tempfile::TempDir;
use tripod_state::ids::ServiceIncarnation;
use tripod_state::{Command, job};

use super::*;
use crate::base::codec;
use crate::base::types::LogCommand;
use crate::test_support::quiet_hooks;

fn creates_a_job(index: u64) -> Entry {
    let command = Command::Job(job::Command::Create {
        name: format!("job-{index}"),
        spec: job::Spec::of_tasks(1),
        service: ServiceIncarnation(index),
    });
    let payload = codec::encode(&Envelope { stamp: None, command }).into();
    let leader = openraft::impls::leader_id_adv::LeaderId { term: 1, node_id: 1 };
    Entry {
        log_id: LogId::new(leader, index),
        payload: EntryPayload::Normal(LogCommand { now_ms: index, payload }),
    }
}

/// Whoever labels a digest reads the index before and after the state. Between the end of an apply
/// and the telling of its effects the two must not differ already.
#[tokio::test]
async fn the_applied_index_is_that_of_the_state_also_while_effects_are_told() {
    let directory = TempDir::new().unwrap();
    let snapshots = SnapshotStore::open_directory(&directory.path().join("snapshots")).unwrap();
    let machine = Arc::new(OnceLock::<StateMachine>::new());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (watched, told) = (machine.clone(), seen.clone());
    let effects = move |_: &[Effect]| {
        let machine = watched.get().expect("set before the first entry");
        let published = machine.applied().borrow().map_or(0, |id| id.index);
        told.lock().push((published, machine.applied_index(), machine.read(|state| state.jobs().len())));
    };
    let hooks = Hooks { effects: Arc::new(effects), ..quiet_hooks() };
    let mut applying = StateMachine::new(snapshots, "test".into(), hooks, Failure::new());
    assert!(machine.set(applying.clone()).is_ok());
    for index in 1..=2 {
        let entry = futures::stream::iter([Ok((creates_a_job(index), None))]);
        applying.apply(entry).await.unwrap();
    }
    assert_eq!(*seen.lock(), [(0, 1, 1), (1, 2, 2)]);
    assert_eq!(applying.applied().borrow().unwrap().index, 2);
}
