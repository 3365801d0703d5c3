//! Runs cases: some together, because they mostly sleep, the others one by one.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use tokio::task::JoinSet;
use tripod_tests::dev::Dev;

use crate::cases::Case;
use crate::settings::Settings;

/// How the cases ended.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: Vec<String>,
}

impl Tally {
    fn note(&mut self, name: String, seconds: f64, outcome: Result<String>) {
        match outcome {
            Ok(remark) => {
                println!("ok      {name} ({seconds:.1} s) {remark}");
                self.passed += 1;
            }
            Err(error) => {
                println!("FAILED  {name} ({seconds:.1} s)\n{error:#}");
                self.failed.push(name);
            }
        }
    }
}

/// Runs `together` at the same time against one cluster of `tripod dev`, then `alone` in order, each
/// with a cluster of its own.
pub(crate) async fn run(settings: &Arc<Settings>, together: Vec<Case>, alone: Vec<Case>) -> Tally {
    let mut tally = Tally::default();
    if !together.is_empty() {
        match shared_cluster(settings).await {
            Ok(dev) => {
                run_together(settings, &dev, together, &mut tally).await;
                let begin = Instant::now();
                let stopped = stop(dev).await.map(|()| "no process is left".to_owned());
                tally.note("dev ends with its nodes".to_owned(), begin.elapsed().as_secs_f64(), stopped);
            }
            Err(error) => tally.note("tripod dev starts".to_owned(), 0.0, Err(error)),
        }
    }
    for case in alone {
        let begin = Instant::now();
        let outcome = case.run_bounded(settings, &[]).await;
        tally.note(case.to_string(), begin.elapsed().as_secs_f64(), outcome);
    }
    tally
}

async fn shared_cluster(settings: &Settings) -> Result<Dev> {
    let folder = settings.results.join("dev");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    Dev::start(&folder, &[]).await
}

async fn run_together(settings: &Arc<Settings>, dev: &Dev, cases: Vec<Case>, tally: &mut Tally) {
    let mut running = JoinSet::new();
    for case in cases {
        let (settings, endpoints) = (Arc::clone(settings), dev.endpoints());
        running.spawn(async move {
            let begin = Instant::now();
            let outcome = case.run_bounded(&settings, &endpoints).await;
            (case.to_string(), begin.elapsed().as_secs_f64(), outcome)
        });
    }
    while let Some(ended) = running.join_next().await {
        match ended {
            Ok((name, seconds, outcome)) => tally.note(name, seconds, outcome),
            Err(panic) => tally.note("a case".to_owned(), 0.0, Err(panic.into())),
        }
    }
}

async fn stop(dev: Dev) -> Result<()> {
    dev.stop().await
}
