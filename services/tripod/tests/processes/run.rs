//! `tripod run`, with real processes.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;
use std::process::Output;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tripod_wait::until_blocking;

use crate::running::{Running, run};
use crate::support::{Dev, is_alive, kill_by, reserve_ports, stderr};

/// Says where the agent is, and goes on until a line comes.
const WAITS: &str = "echo $JAX_COORDINATOR_ADDRESS; read line";
/// A job of one task.
const ALONE: &[&str] = &["--job=alone", "--tasks=1", "--task-id=0"];

fn output(dev: &Dev, flags: &[&str]) -> Output {
    run(dev, flags).output().expect("runs")
}

/// The environment that a program printed.
fn environment(output: &Output) -> BTreeMap<String, String> {
    assert!(output.status.success(), "{}", stderr(output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter_map(|line| line.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect()
}

/// Looks at one cluster, as what a run does depends on its job only.
#[test]
fn a_run_is_its_program_with_an_agent_beside_it() {
    let ports = reserve_ports();
    let data = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(&ports, data.path(), &[]);
    a_program_is_told_where_it_belongs(&dev);
    a_program_of_mindspore_is_told_that_its_agent_is_its_scheduler(&dev);
    the_exit_status_is_the_programs_and_a_failure_is_explained(&dev);
    signals_reach_the_program_and_not_the_agent(&dev);
    a_killed_agent_is_started_again_at_the_same_place(&dev);
    an_agent_ends_with_a_run_that_is_killed(&dev);
    a_program_that_failed_is_begun_again_and_none_that_was_asked_to_end(&dev);
    a_run_that_cannot_be_meant_starts_nothing(&dev);
    dev.end();
}

fn a_program_of_mindspore_is_told_that_its_agent_is_its_scheduler(dev: &Dev) {
    let flags = ["--job=ms", "--members=worker:2,ps:1", "--task-id=2", "--mindspore", "--", "env"];
    let output = run(dev, &flags).env("MS_WORKER_NUM", "8").env("MS_SCHED_HOST", "10.0.0.1").output();
    let output = output.expect("runs");
    let told = environment(&output);
    let rest = ["MS_SCHED_HOST", "MS_ROLE", "MS_WORKER_NUM", "MS_SERVER_NUM", "MS_NODE_ID"];
    assert_eq!(rest.map(|name| told[name].as_str()), ["127.0.0.1", "MS_PSERVER", "8", "1", "2"]);
    assert_ne!(told["MS_SCHED_PORT"].parse::<u16>().expect("a port"), 0);
    assert_ne!(told["JAX_COORDINATOR_ADDRESS"], format!("127.0.0.1:{}", told["MS_SCHED_PORT"]));
    let notes = stderr(&output);
    assert!(notes.contains("MS_WORKER_NUM stays 8, as it was given; by the job it would be 2"), "{notes}");
    assert!(notes.contains("MS_SCHED_HOST is 127.0.0.1, where the agent is, and not 10.0.0.1"), "{notes}");
    let mut scheduler = run(dev, &["--job=ms", "--task-id=0", "--mindspore", "--", "env"]);
    let refused = scheduler.env("MS_ROLE", "MS_SCHED").output().expect("runs");
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("the job is the scheduler"), "{}", stderr(&refused));
}

fn a_program_is_told_where_it_belongs(dev: &Dev) {
    let told = environment(&output(dev, &["--job=t", "--tasks=3", "--task-id=1", "--", "env"]));
    let port = told["JAX_COORDINATOR_ADDRESS"].strip_prefix("127.0.0.1:").expect("on this machine");
    assert_ne!(port.parse::<u16>().expect("a port"), 0);
    let rest = ["JAX_COORDINATOR_BIND_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "GRPC_FAIL_FAST"];
    assert_eq!(rest.map(|name| told[name].as_str()), ["127.0.0.1:0", "3", "1", "false"]);
    assert_eq!(dev.json(&["job", "show", "t", "--json"])["tasks"], 3);

    // The job knows its size, and what the user said of waiting calls is kept.
    let kept = run(dev, &["--job=t", "--task-id=2", "--", "env"]).env("GRPC_FAIL_FAST", "true").output();
    let kept = environment(&kept.expect("runs"));
    assert_eq!((kept["JAX_NUM_PROCESSES"].as_str(), kept["GRPC_FAIL_FAST"].as_str()), ("3", "true"));

    let slurm =
        [("SLURM_JOB_ID", "77"), ("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "1"), ("SLURM_NTASKS", "2")];
    let told = environment(&run(dev, &["--", "env"]).envs(slurm).output().expect("runs"));
    assert_eq!((told["JAX_NUM_PROCESSES"].as_str(), told["JAX_PROCESS_ID"].as_str()), ("2", "1"));
    assert_eq!(dev.json(&["job", "show", "slurm-77.0", "--json"])["tasks"], 2);

    let tf = json!({ "cluster": { "worker": ["a:1", "b:1"] }, "task": { "type": "worker", "index": 1 } });
    let told = run(dev, &["--job=tf", "--", "env"]).env("TF_CONFIG", tf.to_string()).output().expect("runs");
    let told = environment(&told);
    let config: Value = serde_json::from_str(&told["TF_CONFIG"]).expect("JSON");
    assert_eq!(config["cluster"]["ps"], json!([told["JAX_COORDINATOR_ADDRESS"]]));
    assert_eq!((&config["cluster"]["worker"], &config["task"]), (&tf["cluster"]["worker"], &tf["task"]));
    let tf = json!({
        "cluster": { "chief": ["a:1"], "worker": ["b:1", "c:1"] },
        "task": { "type": "worker", "index": 1 },
    });
    let told = run(dev, &["--job=groups", "--", "env"]).env("TF_CONFIG", tf.to_string()).output();
    assert_eq!(environment(&told.expect("runs"))["JAX_PROCESS_ID"], "2");
    let members = json!([{ "name": "chief", "tasks": 1 }, { "name": "worker", "tasks": 2 }]);
    assert_eq!(dev.json(&["job", "show", "groups", "--json"])["members"], members);
}

fn the_exit_status_is_the_programs_and_a_failure_is_explained(dev: &Dev) {
    let ends = |program: &str| {
        let ended = output(dev, &["--job=ends", "--tasks=2", "--task-id=0", "--", "sh", "-c", program]);
        (ended.status.code(), stderr(&ended))
    };
    assert_eq!(ends("exit 0"), (Some(0), String::new()));
    let expected = "\
tripod run: task 0 of job `ends` ended with exit status 7
  never came tasks 0, 1
  the others were told nothing: this task had not registered, and they wait for it
  next       tripod job show ends
";
    assert_eq!(ends("exit 7"), (Some(7), expected.to_owned()));
    let (code, text) = ends("kill -ABRT $$");
    assert_eq!(code, Some(134));
    assert!(
        text.starts_with("tripod run: task 0 of job `ends` was ended by SIGABRT (exit status 134)\n"),
        "{text}"
    );
}

fn signals_reach_the_program_and_not_the_agent(dev: &Dev) {
    let program = "trap 'echo one' USR1; trap 'echo hup' HUP; trap 'exit 5' TERM; echo ready; \
                   while :; do sleep 0.05; done";
    let mut running = Running::start(dev, ALONE, program);
    assert_eq!(running.line(), "ready");
    let agent = running.agent().expect("there is one");
    for (signal, said) in [(Signal::SIGUSR1, "one"), (Signal::SIGHUP, "hup")] {
        running.signal(signal);
        assert_eq!(running.line(), said);
    }
    assert_eq!(running.agent(), Some(agent), "it was told nothing");
    running.signal(Signal::SIGTERM);
    assert_eq!(running.exit_code(), Some(5));
    assert!(!is_alive(agent), "it ends with its program");
    assert_eq!(running.read_stderr(), "", "an end that was asked for needs no explanation");

    let program = "trap 'echo stubborn' INT; echo ready; while :; do sleep 0.05; done";
    let mut running = Running::start(dev, ALONE, program);
    assert_eq!(running.line(), "ready");
    running.signal(Signal::SIGINT);
    assert_eq!(running.line(), "stubborn");
    running.signal(Signal::SIGINT);
    assert_eq!(running.exit_code(), Some(137));
}

fn a_killed_agent_is_started_again_at_the_same_place(dev: &Dev) {
    let mut running = Running::start(dev, ALONE, WAITS);
    let address = running.line().replace("[::]", "[::1]");
    TcpStream::connect(&address).expect("the agent listens");
    for _ in 0..2 {
        let killed = running.agent().expect("there is one");
        kill_by(killed);
        until_blocking("another agent", || running.agent().filter(|agent| *agent != killed));
        until_blocking("it to listen", || TcpStream::connect(&address).ok());
    }
    let last = running.agent().expect("there is one");
    let input = running.process.stdin.as_mut().expect("piped");
    input.write_all(b"\n").expect("the program reads");
    assert_eq!(running.exit_code(), Some(0));
    assert!(!is_alive(last));
    assert_eq!(running.read_stderr().matches("is started again").count(), 2);
}

fn an_agent_ends_with_a_run_that_is_killed(dev: &Dev) {
    let running = Running::start(dev, ALONE, WAITS);
    running.line();
    let agent = running.agent().expect("there is one");
    kill_by(running.process.id());
    until_blocking("the agent's end", || (!is_alive(agent)).then_some(()));
    drop(running);
}

fn a_program_that_failed_is_begun_again_and_none_that_was_asked_to_end(dev: &Dev) {
    let folder = tempfile::tempdir().expect("a directory");
    let mark = folder.path().join("mark");
    let program = format!("echo begun; [ -e {0} ] && exit 0; touch {0}; exit 3", mark.display());
    let again = ["--job=again", "--tasks=1", "--task-id=0", "--recoverable", "--restarts=2"];
    let ended = output(dev, &[&again[..], &["--", "sh", "-c", &program]].concat());
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "begun\nbegun\n");
    let told = "tripod run: task 0 of job `again` ended with exit status 3; it is begun again in 1 s (restart 1 of 2)\n";
    assert_eq!((ended.status.code(), stderr(&ended).as_str()), (Some(0), told));

    let mut running = Running::start(dev, &again, "echo ready; exec sleep 600");
    assert_eq!(running.line(), "ready");
    running.signal(Signal::SIGTERM);
    assert_eq!(running.exit_code(), Some(143));
    assert_eq!(running.read_stderr(), "");
}

fn a_run_that_cannot_be_meant_starts_nothing(dev: &Dev) {
    dev.text(&["job", "create", "four", "--tasks", "4"]);
    let cases: [(&[&str], i32, &str); 9] = [
        (&["--job=new", "--task-id=0"], 2, "PROGRAM"),
        (&["--job=new", "--task-id=0", "--", "echo"], 2, "how many tasks has job `new`?"),
        (&["--job=new", "--tasks=1", "--", "echo"], 2, "which task is this? Give --task-id 0 to 0"),
        (&["--tasks=1", "--task-id=0", "--", "echo"], 2, "which job is this? Give --job NAME"),
        (&["--job=four", "--task-id=4", "--", "echo"], 2, "there is no task 4 in job `four`, which has 4"),
        (&["--job=four", "--tasks=3", "--task-id=0", "--", "echo"], 1, "job `four` has 4 tasks, not 3"),
        (&["--job=No", "--tasks=3", "--task-id=0", "--", "echo"], 1, "`No` is no job name"),
        (&["--job=new", "--tasks=1", "--task-id=0", "--", "/no/such"], 1, "cannot start `/no/such`: "),
        (
            &["--job=new", "--tasks=1", "--task-id=0", "--cluster=127.0.0.1:9", "--timeout=1", "--", "echo"],
            3,
            "no node could answer",
        ),
    ];
    for (flags, code, expected) in cases {
        let refused = output(dev, flags);
        let text = stderr(&refused);
        assert_eq!(refused.status.code(), Some(code), "{flags:?}: {text}");
        assert!(text.contains(expected), "{flags:?}: {text}");
        assert!(refused.stdout.is_empty(), "{flags:?} ran something");
    }
    let twice =
        json!({ "cluster": { "ps": ["a:1"], "worker": ["b:1"] }, "task": { "type": "worker", "index": 0 } });
    let refused = run(dev, &["--job=twice", "--", "echo"]).env("TF_CONFIG", twice.to_string()).output();
    let refused = refused.expect("runs");
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("with --tf-job"), "{}", stderr(&refused));
}
