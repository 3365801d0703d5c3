//! What happens to the program: nodes die while it waits, and while it trains.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use super::program::Wait;
use super::stage::{Stage, Way};

/// How often every node is killed and started again.
const ROUNDS: u32 = 5;

/// Every fault but that of the end; the remarks tell the longest call of each.
pub(crate) async fn all<W: Way>(stage: &mut Stage<W>) -> Result<Vec<String>> {
    let mut remarks = Vec::new();
    for wait in [Wait::Idle, Wait::Get, Wait::Barrier] {
        let longest_ms = killed_in(stage, wait).await.with_context(|| format!("in {}", wait.name()))?;
        remarks.push(format!("{} {longest_ms}", wait.name()));
    }
    let longest_ms = killed_in_turn(stage).await?;
    remarks.push(format!("{ROUNDS} rounds {longest_ms}"));
    Ok(remarks)
}

/// The processes wait, all lose their node, and the wait ends before the cluster is whole again.
async fn killed_in<W: Way>(stage: &mut Stage<W>, wait: Wait) -> Result<u64> {
    stage.program.wait(wait).await?;
    let mark = stage.program.mark();
    let last = kill_attached(stage).await?;
    ensure!(stage.lost().iter().all(|count| *count > 0), "not everybody was attached: {:?}", stage.lost());
    stage.program.end_wait(wait)?;
    stage.program.go_on().await?;
    stage.check_cuts(wait != Wait::Idle)?;
    let longest_ms = stage.program.longest_ms_since(&mark);
    stage.bring_back(last).await?;
    Ok(longest_ms)
}

/// Kills every node that somebody is attached to. All but the last one run again, so that there is a
/// majority at any time; the last one stays dead and is the answer.
pub(crate) async fn kill_attached<W: Way>(stage: &mut Stage<W>) -> Result<u64> {
    let mut victims = stage.attached()?;
    let (last, _) = victims.pop_last().context("nobody is connected to any node")?;
    for victim in victims.into_keys() {
        stage.kill(victim)?;
        stage.bring_back(victim).await?;
    }
    stage.kill(last)?;
    Ok(last)
}

/// One node after the other is killed, and started again when the program has gone on without it.
async fn killed_in_turn<W: Way>(stage: &mut Stage<W>) -> Result<u64> {
    let mark = stage.program.mark();
    for round in 0..ROUNDS {
        for victim in stage.cluster.ids() {
            let fault = || format!("round {round}: node {victim}");
            stage.kill(victim)?;
            stage.program.go_on().await.with_context(fault)?;
            stage.check_cuts(true).with_context(fault)?;
            stage.bring_back(victim).await.with_context(fault)?;
        }
    }
    Ok(stage.program.longest_ms_since(&mark))
}

/// The attached nodes are killed while the other processes wait for process 0 inside `ShutdownTask`; how long
/// it took all of them to end, in milliseconds.
pub(crate) async fn killed_in_shutdown<W: Way>(stage: &mut Stage<W>) -> Result<u64> {
    stage.program.wait(Wait::Leave).await?;
    kill_attached(stage).await?;
    let begin = Instant::now();
    stage.program.finish().await?;
    Ok(u64::try_from(begin.elapsed().as_millis())?)
}
