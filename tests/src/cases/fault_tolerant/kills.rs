//! Three processes: every one is killed, process 0 more than once, and two at a time.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::program::{PATIENCE, Program, Setup};
use crate::cases::Given;

/// Who is killed, one round after the other.
const ROUNDS: [&[usize]; 5] = [&[0], &[2], &[0], &[1], &[0, 2]];

/// Kills and looks.
pub(super) async fn run(given: Given<'_>, python: &Path, release: &str) -> Result<String> {
    let Given { folder, endpoints, .. } = given;
    let (job, pause) = (&*format!("fault-tolerant-{release}"), Duration::from_millis(50));
    let setup = Setup { python, folder, endpoints, job, tasks: 3, pause, patience: PATIENCE };
    let mut program = Program::start(setup).await?;
    let mut slowest = 0.0_f64;
    for (round, victims) in ROUNDS.iter().enumerate() {
        let took = program.lose(victims).await.with_context(|| format!("round {round}"))?;
        slowest = slowest.max(took);
    }
    let steps = program.end().await?;
    Ok(format!("{steps} steps; the others went on within {slowest:.1} s of a death"))
}
