//! How many tasks that do nothing a cluster executes a second, and how long one takes.
//!
//! ```text
//! tripod dev & tripod objstore & tripod worker & tripod worker &
//! cargo run --release -p tripod-worker --example noop_tasks -- 127.0.0.1:7700,127.0.0.1:7701,127.0.0.1:7702 10000 500
//! ```
//!
//! The numbers are tasks that are submitted at once, and tasks that are submitted one after the other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tripod_worker::{Config, Driver, ObjectRef, Task};

const TASKS: usize = 10_000;
/// Calls of the driver under way at a time while it submits.
const SUBMITTING: usize = 1_000;
const ALONE: usize = 500;
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = |place| std::env::args().nth(place);
    let endpoints = argument(1).unwrap_or("127.0.0.1:7700".to_owned());
    let endpoints = endpoints.split(',').map(str::to_owned).collect();
    let tasks: usize = argument(2).map_or(Ok(TASKS), |text| text.parse())?;
    let alone: usize = argument(3).map_or(Ok(ALONE), |text| text.parse())?;
    let driver = Arc::new(Driver::begin(&Config::local(endpoints)).await?);

    let begun = Instant::now();
    let mut objects = Vec::with_capacity(tasks);
    while objects.len() < tasks {
        let mut submitting = JoinSet::new();
        for _ in 0..SUBMITTING {
            let driver = Arc::clone(&driver);
            submitting.spawn(async move { driver.submit(&Task::of("tripod.noop")).await });
        }
        while let Some(submitted) = submitting.join_next().await {
            objects.extend(submitted??);
        }
    }
    let submitted = begun.elapsed();
    all_done(&driver, &objects).await?;
    let rate = tasks as f64 / begun.elapsed().as_secs_f64();
    println!("{tasks} tasks: {rate:.0} a second; submitted in {submitted:.2?}");
    drop(objects);

    if alone == 0 {
        return Ok(());
    }
    let mut times = Vec::with_capacity(alone);
    for _ in 0..alone {
        let begun = Instant::now();
        let object = driver.submit(&Task::of("tripod.noop")).await?.pop().ok_or("no result")?;
        driver.get::<()>(&object).await?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    println!("one after the other: p50 {:.2?}, p99 {:.2?}", times[alone / 2], times[alone * 99 / 100]);
    Ok(())
}

async fn all_done(driver: &Driver, objects: &[ObjectRef]) -> Result<(), Box<dyn std::error::Error>> {
    let done = driver.wait(objects, 0, PATIENCE).await?;
    let missing = done.iter().filter(|done| !**done).count();
    if missing > 0 { Err(format!("{missing} tasks are not done").into()) } else { Ok(()) }
}
