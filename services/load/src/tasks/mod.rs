//! Tasks of a job's scheduler without anybody who executes them: what the coordinator alone can do.
//!
//! One process plays a store, workers that say at once that they are done, and drivers that submit tasks in batches
//! and wait for them. All references are counted and given up as real processes do, so that the number of live
//! objects stays the same however long it runs.
//!
//! | module | what |
//! |---|---|
//! | `process` | a worker, a driver or the store: its scheduler and its heartbeats |
//! | `peer` | what the scheduler calls at workers and the store |
//! | `worker`, `driver` | the loops |

mod driver;
mod peer;
mod process;
mod worker;

use std::sync::Arc;

use anyhow::Context as _;
use tokio::task::JoinSet;

use crate::closed_loop::{self, Plan};
use crate::report::{Report, Setting};
use driver::Driver;
use peer::StoreObjects;
use process::Process;

/// The function that all tasks call.
const FUNCTION: &str = "bench.noop";
/// Calls that a task makes in its life: submit, result ready, two reference counts given up, and its end.
const CALLS: f64 = 5.0;

/// What is played.
#[derive(Debug, Clone)]
pub struct Options {
    pub endpoints: Vec<String>,
    pub job: String,
    pub drivers: usize,
    pub workers: usize,
    /// Tasks that a driver submits at once and then waits for.
    pub batch: usize,
    /// Tasks that a worker may be given at a time.
    pub slots: u32,
    pub plan: Plan,
}

/// Measures batches of tasks, from their submission until all are done.
///
/// # Errors
/// The cluster cannot be reached, or does not serve a scheduler.
pub async fn run(options: &Options) -> anyhow::Result<Report> {
    let mut parts = JoinSet::new();
    let held = Arc::new(StoreObjects::default());
    let (endpoints, job) = (&options.endpoints, &options.job);
    let (store, address) = process::store(endpoints, job, &held, &mut parts).await?;
    let mut done = Vec::with_capacity(options.drivers);
    let mut drivers = Vec::with_capacity(options.drivers);
    for _ in 0..options.drivers {
        let process = Process::worker(endpoints, job, &address, None, &mut parts).await?.0;
        let (driver, finished) = Driver::new(process, options.batch);
        drivers.push(driver);
        done.push(finished);
    }
    let done = Arc::new(driver::Board::new(done));
    for _ in 0..options.workers {
        let (process, listens) =
            Process::worker(endpoints, job, &address, Some(options.slots), &mut parts).await?;
        worker::start(process, &listens, store, &held, &done, &mut parts).await?;
    }
    let (outcome, drivers) = closed_loop::run(options.plan, drivers).await?;
    for driver in drivers {
        driver.leave().await.context("a driver cannot leave")?;
    }
    parts.abort_all();
    let setting = Setting {
        op: "tasks",
        system: "tripod",
        clients: options.drivers,
        connections: options.drivers + options.workers + 1,
        target: "any",
        value_bytes: None,
    };
    let calls = options.batch as f64 * CALLS;
    Ok(Report::new(setting, &outcome).with_tasks(options.batch, calls))
}
