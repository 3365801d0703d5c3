//! Tasks of a job, each a program in a `tripod run`, with calls to its agent as its client would make them.

use std::io::Write;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::task::AbortHandle;
use tripod_load::task::Task;

use crate::running::Running;
use crate::support::Dev;

/// Well below every job's heartbeat timeout.
const BEAT_EVERY: Duration = Duration::from_millis(250);

/// A task that has registered and beats.
pub(crate) struct Member {
    pub(crate) running: Running,
    /// What it printed behind the address of its agent.
    pub(crate) said: Vec<String>,
    pub(crate) task: Task,
    pub(crate) beats: AbortHandle,
}

impl Member {
    /// Lets the program end, and tells its exit code and what `run` says to that.
    pub(crate) fn end(&mut self) -> (Option<i32>, String) {
        self.running.process.stdin.as_mut().expect("piped").write_all(b"\n").expect("the program reads");
        self.ended()
    }

    /// Lets the program end with this exit code, and tells what `run` says to that.
    pub(crate) fn running_ends_with(&mut self, code: i32) -> String {
        let line = format!("{code}\n");
        self.running.process.stdin.as_mut().expect("piped").write_all(line.as_bytes()).expect("it reads");
        let (ended, text) = self.ended();
        assert_eq!(ended, Some(code), "{text}");
        text
    }

    /// Its exit code and what `run` says to that.
    pub(crate) fn ended(&mut self) -> (Option<i32>, String) {
        self.beats.abort();
        (self.running.exit_code(), self.running.read_stderr())
    }
}

/// Tasks that have registered and beat. Each program prints where its agent is, and `lines` more.
pub(crate) fn gang(
    dev: &Dev,
    runtime: &Runtime,
    flags: &[&str],
    programs: &[&str],
    lines: usize,
) -> Vec<Member> {
    let tasks = format!("--tasks={}", programs.len());
    let start = |(id, program): (usize, &&str)| {
        let task = format!("--task-id={id}");
        let running = Running::start(dev, &[flags, &[tasks.as_str(), task.as_str()]].concat(), program);
        let address = running.line().replace("[::]", "[::1]");
        let said: Vec<_> = (0..lines).map(|_| running.line()).collect();
        (running, address, said)
    };
    let started: Vec<_> = programs.iter().enumerate().map(start).collect();
    let addresses: Vec<_> = started.iter().map(|(_, address, _)| address.clone()).collect();
    let tasks = runtime.block_on(tripod_load::task::register_all(&addresses, programs.len()));
    let members = started.into_iter().zip(tasks.expect("all register"));
    let member = |((running, _, said), task): ((Running, String, Vec<String>), Task)| {
        let mut beating = task.clone();
        let beats = runtime.spawn(async move {
            while beating.heartbeat().await.is_ok() {
                tokio::time::sleep(BEAT_EVERY).await;
            }
        });
        Member { running, said, task, beats: beats.abort_handle() }
    };
    members.map(member).collect()
}
