//! What `tripod run` tells of a job that fails, with real processes.

use std::time::Duration;

use serde_json::json;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tripod_wait::until_blocking;

use crate::gang::gang;
use crate::screen::assert_as_shown;
use crate::support::{Dev, reserve_ports};

const PAGE: &str = include_str!("../../../../docs/clients/jax.md");
/// How the page begins what it shows of a screen.
const BEGIN_ON_PAGE: &str = "    tripod run: task 0 of job `exp7` ";
/// Says where the agent is, and ends in one way or another when a line comes.
const FAILS: &str = "echo $JAX_COORDINATOR_ADDRESS; read line; exit 1";
const IS_KILLED: &str = "echo $JAX_COORDINATOR_ADDRESS; read line; kill -KILL $$";
const BARRIER_TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn a_task_that_is_lost_in_a_barrier_is_told_with_those_who_waited() {
    let ports = reserve_ports();
    let data = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(&ports, data.path(), &[]);
    let runtime = Runtime::new().expect("threads");
    let flags = ["--job=exp7", "--heartbeat-timeout=5"];
    let mut gang = gang(&dev, &runtime, &flags, &[FAILS, FAILS, IS_KILLED], 0);
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
    let reason = "the process of task 2 was ended by SIGKILL, as whoever started it saw";
    for (id, member) in gang.iter_mut().enumerate() {
        let (code, text) = member.end();
        assert_eq!(code, Some(1));
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("machines have names");
        let expected = format!(
            "\
tripod run: task {id} of job `exp7` ended with exit status 1
  ended      task 2 was ended by SIGKILL, as `tripod run` saw
             task 2 ran on {}
  in error   tasks 0, 1: no task listens for errors, so all were ended: {reason}
  barriers   barrier `checkpoint-7` waited for task 2; arrived: 0, 1
             failed ",
            host.trim()
        );
        assert!(text.starts_with(&expected), "{text}");
        let end = format!(
            " s ago: task 2 failed ({reason})
  the others were told nothing more: this task had failed before its program ended
  next       tripod job show exp7
"
        );
        assert!(text.ends_with(&end), "{text}");
        if id == 0 {
            let lines = PAGE.lines().skip_while(|line| !line.starts_with(BEGIN_ON_PAGE));
            let shown: Vec<_> = lines.take_while(|line| !line.is_empty()).map(str::to_owned).collect();
            assert_as_shown("tripod run", &shown, &text);
        }
    }
    dev.end();
}
