//! What becomes of a task whose program ends below `tripod run` without leaving its job, with real processes. The job's
//! heartbeat timeout is the default of 100 s: who is told the reason has not waited for it.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tonic::Status;
use tripod_load::task::Task;
use tripod_wait::until_blocking;

use crate::gang::{Member, gang};
use crate::running::Running;
use crate::support::{Dev, kill_by, reserve_ports, send, stderr};

/// Says where the agent is and which process it is, and goes on until a line comes.
const WAITS: &str =
    "echo $JAX_COORDINATOR_ADDRESS; echo $$; echo 'loading shard 2 of 8' >&2; read line; exit $line";
const BARRIER_TIMEOUT: Duration = Duration::from_secs(600);
/// How each of them begins that tells of the end of task 2.
const TASK_2: &str = "the process of task 2 ";

#[test]
fn the_others_are_told_at_once_how_a_program_below_run_ended() {
    let ports = reserve_ports();
    let data = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(&ports, data.path(), &[]);
    let runtime = Runtime::new().expect("threads");
    v6_of_a_killed_program_all_learn_the_signal_and_the_last_line(&dev, &runtime);
    v17_what_went_wrong_goes_into_a_bundle_and_is_told_after_the_job_is_gone(&dev);
    a_program_that_ends_with_0_and_has_not_left_is_missed_at_once(&dev, &runtime);
    v7_a_program_that_is_stopped_below_run_is_named(&dev, &runtime);
    of_a_killed_run_its_agent_says_that_it_is_no_more(&dev, &runtime);
    with_report_exit_off_nobody_is_told(&dev, &runtime);
    v1_v15_who_registers_is_shown_as_that_and_who_died_meanwhile_as_ended(&dev, &runtime);
    dev.end();
}

/// Tasks 0 and 1 wait at a barrier for task 2.
fn waiting(dev: &Dev, runtime: &Runtime, job: &str, flags: &[&str]) -> (Vec<Member>, Vec<Told>) {
    let job_flag = format!("--job={job}");
    let flags = [&[job_flag.as_str(), "--tail"][..], flags].concat();
    let gang = gang(dev, runtime, &flags, &[WAITS; 3], 1);
    let arrive = |task: &Task| {
        let mut task = task.clone();
        runtime.spawn(async move { task.barrier("checkpoint-7", 0, BARRIER_TIMEOUT).await })
    };
    let told = gang[..2].iter().map(|member| arrive(&member.task)).collect();
    until_blocking("two tasks at the barrier", || {
        (show(dev, job)["barriers"][0]["arrived"] == 2).then_some(())
    });
    (gang, told)
}

type Told = JoinHandle<Result<(), Status>>;

fn show(dev: &Dev, job: &str) -> Value {
    dev.json(&["job", "show", job, "--json"])
}

/// What those who waited at the barrier were told.
fn told(runtime: &Runtime, waiting: Vec<Told>) -> Vec<String> {
    let all = waiting.into_iter().map(|one| runtime.block_on(one).expect("no panic"));
    all.map(|outcome| outcome.expect_err("task 2 does not come").message().to_owned()).collect()
}

fn states(shown: &Value) -> Vec<String> {
    let tasks = shown["task_states"].as_array().expect("tasks");
    tasks.iter().map(|task| task["state"].as_str().expect("a word").to_owned()).collect()
}

fn v6_of_a_killed_program_all_learn_the_signal_and_the_last_line(dev: &Dev, runtime: &Runtime) {
    let (mut gang, waiting) = waiting(dev, runtime, "killed", &[]);
    let mut killed = gang.pop().expect("three");
    kill_by(killed.said[0].parse().expect("a process id"));
    let reason = format!(
        "{TASK_2}was ended by SIGKILL, as whoever started it saw; its last line: loading shard 2 of 8"
    );
    for text in told(runtime, waiting) {
        assert!(text.contains(&reason), "{text}");
    }
    let (code, text) = killed.ended();
    assert_eq!(code, Some(137));
    for line in [
        "tripod run: task 2 of job `killed` was ended by SIGKILL (exit status 137)\n",
        "  last line  loading shard 2 of 8\n",
        "  barriers   barrier `checkpoint-7` waits for task 2; arrived: 0, 1; ",
        &format!("  the others were told at once: {reason}\n"),
    ] {
        assert!(text.contains(line), "{line}\nis not in\n{text}");
    }
    let shown = show(dev, "killed");
    assert_eq!(states(&shown), ["error", "error", "ended"]);
    let own = &shown["task_states"][2];
    assert_eq!((&own["reason"], &own["end"]["signal"]), (&"task-ended".into(), &9.into()));
    assert_eq!(own["end"]["tail"], "loading shard 2 of 8\n");
    // The heartbeats of the others say it, too.
    let refused = runtime.block_on(gang[0].task.heartbeat()).expect_err("the job has failed");
    assert!(refused.message().contains(&reason), "{refused}");
    // Their programs end because of that, and are not taken for the cause.
    gang[0].running_ends_with(3);
    let shown = show(dev, "killed");
    assert_eq!(states(&shown), ["error", "error", "ended"]);
    assert_eq!(shown["task_states"][0]["end"]["exit_code"], 3);
}

fn v17_what_went_wrong_goes_into_a_bundle_and_is_told_after_the_job_is_gone(dev: &Dev) {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("killed.json");
    let path = file.to_str().expect("a path");
    let bundled = dev.run(&["diagnose", "killed", "--bundle", path, "--timeout=20"]);
    assert_eq!(bundled.status.code(), Some(1), "{}", stderr(&bundled));
    let bundle: Value = serde_json::from_slice(&std::fs::read(&file).expect("it was written")).expect("JSON");
    let length = |list: &Value| list.as_array().map_or(0, Vec::len);
    assert_eq!((length(&bundle["nodes"]), length(&bundle["job"]["task_states"])), (3, 3), "{bundle}");
    assert!(bundle["diagnosis"]["findings"].is_array() && length(&bundle["job_events"]["events"]) > 2);
    for node in bundle["nodes"].as_array().expect("a list") {
        assert!(length(&node["events"]["events"]) > 0, "each has heard of a leader: {node}");
    }
    dev.text(&["job", "delete", "killed", "--yes"]);
    let past = dev.run(&["diagnose", "killed", "--at", "1m", "--timeout=20"]);
    assert_eq!(past.status.code(), Some(1), "{}", stderr(&past));
    let said = String::from_utf8(past.stdout).expect("UTF-8");
    let first = said.lines().next().unwrap_or_default();
    assert!(first.starts_with("the first cause: "), "{said}");
    // Others end of it within the same second, which are told in one line with it.
    let alone = first.contains("the process of task 2 was ended by SIGKILL");
    let with_others = first.contains("processes (task ") && first.contains("2) was ended by SIGKILL");
    assert!(alone || with_others, "{said}");
}

fn a_program_that_ends_with_0_and_has_not_left_is_missed_at_once(dev: &Dev, runtime: &Runtime) {
    let (mut gang, waiting) = waiting(dev, runtime, "quits", &["--report-exit=status"]);
    let text = gang[2].running_ends_with(0);
    assert_eq!(text, "loading shard 2 of 8\n", "an end that went well needs no explanation");
    for text in told(runtime, waiting) {
        let reason =
            format!("{TASK_2}ended with exit code 0 and has not left its job, as whoever started it saw");
        assert!(text.contains(&reason) && !text.contains("shard"), "{text}");
    }
}

fn v7_a_program_that_is_stopped_below_run_is_named(dev: &Dev, runtime: &Runtime) {
    let (mut gang, waiting) = waiting(dev, runtime, "stopped", &[]);
    let pid: u32 = gang[2].said[0].parse().expect("a process id");
    until_blocking("where its process is", || {
        (show(dev, "stopped")["task_states"][2]["origin"]["pid"] == pid).then_some(())
    });
    let found = || {
        let output = dev.run(&["diagnose", "stopped", "--json", "--after=0.1", "--timeout=20"]);
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        json["findings"].as_array().expect("a list").iter().find(|found| found["code"] == "T7107").cloned()
    };
    send(pid, Signal::SIGSTOP);
    let frozen = until_blocking("T7107", &found);
    assert_eq!((&frozen["tasks"], &frozen["sure"]), (&serde_json::json!([2]), &"certain".into()));
    send(pid, Signal::SIGCONT);
    until_blocking("nothing more of that", || found().is_none().then_some(()));
    gang[2].running_ends_with(3);
    assert_eq!(told(runtime, waiting).len(), 2);
}

fn of_a_killed_run_its_agent_says_that_it_is_no_more(dev: &Dev, runtime: &Runtime) {
    let (gang, waiting) = waiting(dev, runtime, "run-killed", &[]);
    kill_by(gang[2].running.process.id());
    for text in told(runtime, waiting) {
        let reason = format!("{TASK_2}lost its launcher, which ended before it, as whoever started it saw");
        assert!(text.contains(&reason), "{text}");
    }
    assert_eq!(states(&show(dev, "run-killed"))[2], "ended");
}

fn with_report_exit_off_nobody_is_told(dev: &Dev, runtime: &Runtime) {
    let (mut gang, _waiting) = waiting(dev, runtime, "silent", &["--report-exit=off"]);
    let text = gang[2].running_ends_with(3);
    let told = "  the others were told nothing, by --report-exit off: they miss it when it has been silent for too long\n";
    assert!(text.contains(told), "{text}");
    assert_eq!(states(&show(dev, "silent")), ["connected"; 3]);
}

fn v1_v15_who_registers_is_shown_as_that_and_who_died_meanwhile_as_ended(dev: &Dev, runtime: &Runtime) {
    let start = |id: i32| {
        let task = format!("--task-id={id}");
        let running = Running::start(dev, &["--job=begins", "--tasks=3", &task], WAITS);
        let (address, pid) = (running.line().replace("[::]", "[::1]"), running.line());
        let registers = runtime.spawn(async move { Task::register(&address, id).await.map(|_| ()) });
        (running, pid, registers)
    };
    let all: Vec<_> = (0..2).map(start).collect();
    let is = |expected: &[&str]| {
        let what = format!("{expected:?}");
        until_blocking(&what, || (states(&show(dev, "begins")) == expected).then_some(()));
    };
    is(&["registering", "registering", "never-came"]);
    kill_by(all[1].1.parse().expect("a process id"));
    is(&["registering", "ended", "never-came"]);
    let barrier = show(dev, "begins")["barriers"][0].clone();
    assert_eq!(
        (&barrier["kind"], &barrier["arrived_tasks"]),
        (&"registration".into(), &serde_json::json!([0]))
    );
    for (running, _, registers) in all {
        registers.abort();
        drop(running);
    }
}
