//! All tasks of a job meet at one barrier, again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tonic::Status;

use crate::closed_loop::{self, Plan};
use crate::report::{Report, Setting};
use crate::task::{self, Beating, Task};

/// How long a round may take before the service fails it.
const ROUND_TIMEOUT: Duration = Duration::from_secs(60);
/// Instances of one id are counted up, as in a training loop.
const BARRIER: &str = "bench/step";

/// Measures rounds of a job of `clients` tasks that nobody has registered for yet; `system` is a
/// name for the report. Each task has its own connection, to the `addresses` in turn, and beats
/// beside. A latency is that of one task's call, from its arrival to the passing.
///
/// # Errors
/// The tasks cannot register or leave.
pub async fn run(system: &str, addresses: &[String], clients: usize, plan: Plan) -> anyhow::Result<Report> {
    let tasks = task::register_all(addresses, clients).await?;
    measure(system, addresses, tasks, clients, plan).await
}

/// The same with tasks that share so many streams of calls, to the addresses in turn.
///
/// # Errors
/// The tasks cannot register or leave.
pub async fn run_on(
    streams: usize,
    system: &str,
    addresses: &[String],
    clients: usize,
    plan: Plan,
) -> anyhow::Result<Report> {
    let tasks = task::register_all_on(streams, addresses, clients).await?;
    Ok(measure(system, addresses, tasks, streams, plan).await?.with_streams(streams))
}

async fn measure(
    system: &str,
    addresses: &[String],
    tasks: Vec<Task>,
    connections: usize,
    plan: Plan,
) -> anyhow::Result<Report> {
    let clients = tasks.len();
    let last_round = Arc::new(AtomicI64::new(i64::MAX));
    let members = tasks.into_iter().enumerate().map(|(number, task)| Member {
        decides: number == 0,
        beating: task.keep_alive(),
        task,
        round: 0,
        last_round: Arc::clone(&last_round),
    });
    let (outcome, members) = closed_loop::run(plan, members.collect()).await?;
    task::shut_down_all(members.into_iter().map(Member::into_task).collect()).await?;
    let setting = Setting {
        op: "barrier",
        system,
        clients,
        connections,
        target: if addresses.len() == 1 { "one node" } else { "any" },
        value_bytes: None,
    };
    Ok(Report::new(setting, &outcome).with_rounds())
}

/// A task that calls one barrier id with rising counters.
struct Member {
    /// The member that announces which round is the last. It does so before it arrives there, so
    /// nobody can pass that round, and begin another one, without the announcement.
    decides: bool,
    beating: Beating,
    task: Task,
    round: i64,
    last_round: Arc<AtomicI64>,
}

impl Member {
    fn into_task(self) -> Task {
        drop(self.beating);
        self.task
    }
}

impl closed_loop::Client for Member {
    fn goes_on(&mut self, over: bool) -> bool {
        if over && self.decides {
            self.last_round.fetch_min(self.round, Ordering::SeqCst);
        }
        self.round <= self.last_round.load(Ordering::SeqCst)
    }

    async fn step(&mut self) -> Result<(), Status> {
        // A failed call is repeated with the same counter: the service keeps results by counter.
        self.task.barrier(BARRIER, self.round, ROUND_TIMEOUT).await?;
        self.round += 1;
        Ok(())
    }
}
