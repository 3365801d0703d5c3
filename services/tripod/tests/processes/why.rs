//! What `tripod run` tells of a job that fails, with real processes.

use std::io::Write;
use std::time::Duration;

use serde_json::json;
use tokio::runtime::Runtime;
use tokio::task::{AbortHandle, JoinSet};
use tripod_load::task::Task;
use tripod_wait::until_blocking;

use crate::running::Running;
use crate::screen::assert_as_shown;
use crate::support::{Dev, reserve_ports};

const PAGE: &str = include_str!("../../../../docs/clients/jax.md");
/// How the page begins what it shows of a screen.
const BEGIN_ON_PAGE: &str = "    tripod run: task 0 of job `exp7` ";
/// Says where the agent is, and ends in one way or another when a line comes.
const FAILS: &str = "echo $JAX_COORDINATOR_ADDRESS; read line; exit 1";
const IS_KILLED: &str = "echo $JAX_COORDINATOR_ADDRESS; read line; kill -KILL $$";
/// Well below the job's heartbeat timeout.
const BEAT_EVERY: Duration = Duration::from_millis(250);
const BARRIER_TIMEOUT: Duration = Duration::from_secs(60);

/// A task of the job: a program in a `tripod run`, and calls to its agent as its client would make them.
struct Member {
    running: Running,
    task: Task,
    beats: AbortHandle,
}

impl Member {
    /// Lets the program end, and tells its exit code and what `run` says to that.
    fn end(&mut self) -> (Option<i32>, String) {
        self.running.process.stdin.as_mut().expect("piped").write_all(b"\n").expect("the program reads");
        (self.running.exit_code(), self.running.read_stderr())
    }
}

/// Three tasks that have registered and beat.
fn gang(dev: &Dev, runtime: &Runtime) -> Vec<Member> {
    let programs = [FAILS, FAILS, IS_KILLED];
    let start = |(id, program): (usize, &str)| {
        let task = format!("--task-id={id}");
        let flags = ["--job=exp7", "--tasks=3", "--heartbeat-timeout=5", &task];
        let running = Running::start(dev, &flags, program);
        let address = running.line().replace("[::]", "[::1]");
        (running, address)
    };
    let started: Vec<_> = programs.into_iter().enumerate().map(start).collect();
    let addresses: Vec<_> = started.iter().map(|(_, address)| address.clone()).collect();
    let tasks = runtime.block_on(tripod_load::task::register_all(&addresses, programs.len()));
    let members = started.into_iter().zip(tasks.expect("all register"));
    let member = |((running, _), task): ((Running, String), Task)| {
        let mut beating = task.clone();
        let beats = runtime.spawn(async move {
            while beating.heartbeat().await.is_ok() {
                tokio::time::sleep(BEAT_EVERY).await;
            }
        });
        Member { running, task, beats: beats.abort_handle() }
    };
    members.map(member).collect()
}

#[test]
fn a_task_that_is_lost_in_a_barrier_is_told_with_those_who_waited() {
    let ports = reserve_ports();
    let data = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(&ports, data.path(), &[]);
    let runtime = Runtime::new().expect("threads");
    let mut gang = gang(&dev, &runtime);
    let mut waiting = JoinSet::new();
    for member in &gang[..2] {
        let mut task = member.task.clone();
        waiting.spawn_on(
            async move { task.barrier("checkpoint-7", 0, BARRIER_TIMEOUT).await },
            runtime.handle(),
        );
    }
    let shown = || dev.json(&["job", "show", "exp7", "--json"])["barriers"][0].clone();
    until_blocking("two tasks at the barrier", || (shown()["arrived"] == 2).then_some(()));

    let mut lost = gang.pop().expect("three");
    lost.beats.abort();
    let (code, text) = lost.end();
    assert_eq!(code, Some(137));
    let waits = "  barriers   barrier `checkpoint-7` waits for task 2; arrived: 0, 1; open for ";
    assert!(text.contains(waits), "{text}");

    let outcomes = runtime.block_on(async { waiting.join_all().await });
    assert!(outcomes.iter().all(Result::is_err), "{outcomes:?}");
    let barrier = shown();
    assert_eq!((&barrier["arrived_tasks"], &barrier["missing_tasks"]), (&json!([0, 1]), &json!([2])));
    assert_eq!(barrier["failure"]["reason"], "barrier-member-lost");
    for (id, member) in gang.iter_mut().enumerate() {
        let (code, text) = member.end();
        assert_eq!(code, Some(1));
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("machines have names");
        let expected = format!(
            "\
tripod run: task {id} of job `exp7` ended with exit status 1
  ended      task 2 has ended, as `tripod run` saw
             task 2 ran on {}
  in error   tasks 0, 1: no task listens for errors, so all were ended: tasks were silent for too long: 2
  barriers   barrier `checkpoint-7` waited for task 2; arrived: 0, 1
             failed ",
            host.trim()
        );
        assert!(text.starts_with(&expected), "{text}");
        let end = " s ago: task 2 failed (task 2 was silent for longer than the heartbeat timeout)
  next       tripod job show exp7
";
        assert!(text.ends_with(end), "{text}");
        if id == 0 {
            let lines = PAGE.lines().skip_while(|line| !line.starts_with(BEGIN_ON_PAGE));
            let shown: Vec<_> = lines.take_while(|line| !line.is_empty()).map(str::to_owned).collect();
            assert_as_shown("tripod run", &shown, &text);
        }
    }
    dev.end();
}
