//! Jobs that take as much memory as they may.

use tripod_raft::{Handle, ProposeError, StateLimits};
use tripod_state::ids::{BarrierCounter, JobId, ServiceIncarnation, TaskId};
use tripod_state::{Answer, Command, Envelope, Reply, Scope, State, barrier, job, kv};

use crate::common::{Cluster, assert_same_states, level_raised, once, propose, put};

const MIB: u64 = 1 << 20;

/// A job of two tasks.
async fn create(node: &Handle, name: &str) -> Scope {
    let create = job::Command::Create {
        name: name.to_owned(),
        spec: job::Spec::of_tasks(2),
        service: ServiceIncarnation(7),
    };
    let applied = propose(node, &Command::Job(create)).await;
    node.wait_applied(applied.index).await.unwrap();
    let job: JobId = node.read(|state| state.job_named(name)).unwrap();
    Scope { job, service: None }
}

fn arrive(scope: Scope, barrier: &str, task: i32) -> Command {
    Command::Barrier(barrier::Command::Arrive {
        scope,
        barrier: barrier.to_owned(),
        counter: BarrierCounter(0),
        timeout_ms: 3_600_000,
        tasks: Vec::new(),
        task: TaskId(task),
    })
}

/// One attempt.
async fn ask(node: &Handle, command: Command) -> Result<Reply, ProposeError> {
    node.propose(Envelope { stamp: None, command }).await.map(|applied| applied.reply)
}

/// Opens barriers with names of 4 KiB, and then with short ones, until one is refused. Tells how many with long names
/// were not, and the refusal.
async fn fill(node: &Handle, scope: Scope) -> (u64, ProposeError) {
    let (long, _) = open_all(node, scope, 4_096).await;
    let (_, refusal) = open_all(node, scope, 8).await;
    (long, refusal)
}

async fn open_all(node: &Handle, scope: Scope, name_bytes: usize) -> (u64, ProposeError) {
    let mut opened = 0;
    loop {
        match ask(node, arrive(scope, &format!("{opened:0name_bytes$}"), 0)).await {
            Ok(reply) => assert!(matches!(reply, Ok(Answer::Waiting(_))), "{reply:?}"),
            Err(refusal) => return (opened, refusal),
        }
        opened += 1;
    }
}

#[test]
fn a_full_job_begins_nothing_ends_what_is_under_way_and_is_nobody_elses_trouble() {
    once(async || {
        let memory = StateLimits { job_bytes: 16 * MIB, state_bytes: 1_024 * MIB };
        let cluster = Cluster::start_with(3, |options| options.state = memory).await;
        level_raised(&cluster).await;
        let leader = cluster.leader().await;
        let (node, follower) = (cluster.node(leader), cluster.node(cluster.follower().await));
        let (full, other) = (create(node, "full").await, create(node, "other").await);
        assert!(ask(node, put(full, "large", &vec![7; 4 << 20])).await.unwrap().is_ok());
        assert!(ask(node, arrive(full, "gang", 0)).await.unwrap().is_ok());

        let (opened, refusal) = fill(node, full).await;
        let ProposeError::JobFull(text) = &refusal else { panic!("{refusal:?}") };
        for part in ["T2211 job-full", "`full`", "of the 16 MiB", "--job-memory-mib", "tripod kv delete"] {
            assert!(text.contains(part), "{text}");
        }
        // The model has a few kilobytes for each of them, and 10 MiB were left.
        assert!((1_000..2_560).contains(&opened), "{opened} were opened");
        let taken = node.read(|state| state.bytes_of(full.job)).unwrap();
        assert!((13 * MIB..=14 * MIB).contains(&taken), "{taken}");

        // Whoever asks another node is told the same, and nothing was appended.
        let again = ask(follower, arrive(full, "one more", 0)).await;
        assert!(matches!(&again, Err(ProposeError::JobFull(_))), "{again:?}");
        assert!(ask(node, put(other, "key", b"value")).await.unwrap().is_ok());
        let passed = ask(follower, arrive(full, "gang", 1)).await.unwrap();
        assert_eq!(passed, Ok(Answer::BarrierPassed { counter: BarrierCounter(0) }));

        let delete = Command::Kv(kv::Command::Delete { scope: full, key: "large".to_owned() });
        assert!(ask(follower, delete).await.unwrap().is_ok());
        let admitted = ask(node, arrive(full, "one more", 0)).await.unwrap();
        assert!(matches!(admitted, Ok(Answer::Waiting(_))), "{admitted:?}");
        assert_same_states(&[cluster.node(1), cluster.node(2), cluster.node(3)]).await;
        cluster.stop().await;
    });
}

#[test]
fn all_jobs_together_have_a_limit_and_the_refusal_names_the_largest() {
    once(async || {
        let memory = StateLimits { job_bytes: 64 * MIB, state_bytes: 16 * MIB };
        let cluster = Cluster::start_with(1, |options| options.state = memory).await;
        let node = cluster.node(cluster.leader().await);
        let (small, large) = (create(node, "small").await, create(node, "large").await);
        assert!(ask(node, arrive(small, "gang", 0)).await.unwrap().is_ok());
        let (_, refusal) = fill(node, large).await;
        let ProposeError::StateFull(text) = &refusal else { panic!("{refusal:?}") };
        for part in
            ["T2212 state-full", "(largest jobs: `large` 14 MiB, `small` 1 MiB)", "--state-memory-mib"]
        {
            assert!(text.contains(part), "{text}");
        }
        let create = job::Command::Create {
            name: "third".to_owned(),
            spec: job::Spec::of_tasks(1),
            service: ServiceIncarnation(7),
        };
        let refused = ask(node, Command::Job(create.clone())).await;
        assert!(matches!(&refused, Err(ProposeError::StateFull(_))), "{refused:?}");
        let passed = ask(node, arrive(small, "gang", 1)).await.unwrap();
        assert!(matches!(passed, Ok(Answer::BarrierPassed { .. })), "{passed:?}");

        assert!(
            ask(node, Command::Job(job::Command::Delete { name: "large".to_owned() })).await.unwrap().is_ok()
        );
        assert!(node.read(State::bytes) < MIB, "{}", node.read(State::bytes));
        assert!(ask(node, Command::Job(create)).await.unwrap().is_ok());
        cluster.stop().await;
    });
}
