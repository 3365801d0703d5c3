//! Every fault in one run of the program: no call may fail.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use super::stage::Stage;
use super::training::{Manners, Wait};

/// How often every node is killed and started again.
const ROUNDS: u32 = 5;

/// Runs it; the remark tells the longest call of each fault.
pub(super) async fn run(python: &Path, folder: &Path, legacy: bool) -> Result<String> {
    let mut stage = Stage::set(python, folder, |nodes| Manners { legacy, ..Manners::of(nodes) }).await?;
    let mut remarks = Vec::new();
    for wait in [Wait::Idle, Wait::Get, Wait::Barrier] {
        let longest_ms = killed_in(&mut stage, wait).await.with_context(|| format!("in {}", wait.name()))?;
        remarks.push(format!("{} {longest_ms}", wait.name()));
    }
    let longest_ms = killed_in_turn(&mut stage).await?;
    remarks.push(format!("{ROUNDS} rounds {longest_ms}"));
    remarks.push(format!("{} until the end", killed_in_leave(&mut stage).await.context("in leave")?));
    let devices = &stage.training.introduction()?["devices"];
    Ok(format!("no call failed with {devices} devices; longest in ms: {}", remarks.join(", ")))
}

/// The processes wait, all agents lose their node, and the wait ends before the cluster is whole again.
async fn killed_in(stage: &mut Stage, wait: Wait) -> Result<u64> {
    stage.training.wait(wait).await?;
    let mark = stage.training.mark();
    let last = kill_attached(stage).await?;
    stage.training.end_wait(wait)?;
    stage.training.go_on().await?;
    let longest_ms = stage.training.longest_ms_since(&mark);
    stage.bring_back(last).await?;
    Ok(longest_ms)
}

/// Kills every node that an agent is attached to. All but the last one run again, so that there is a
/// majority at any time; the last one stays dead and is the answer.
async fn kill_attached(stage: &mut Stage) -> Result<u64> {
    let mut victims = stage.attached()?;
    let last = victims.pop_last().context("no agent is connected to any node")?;
    for victim in victims {
        stage.cluster.kill(victim)?;
        stage.leave(victim).await?;
        stage.bring_back(victim).await?;
    }
    stage.cluster.kill(last)?;
    Ok(last)
}

/// One node after the other is killed, and started again when the program has gone on without it.
async fn killed_in_turn(stage: &mut Stage) -> Result<u64> {
    let mark = stage.training.mark();
    for round in 0..ROUNDS {
        for victim in stage.cluster.ids() {
            let fault = || format!("round {round}: node {victim}");
            stage.cluster.kill(victim)?;
            stage.training.go_on().await.with_context(fault)?;
            stage.bring_back(victim).await.with_context(fault)?;
        }
    }
    Ok(stage.training.longest_ms_since(&mark))
}

/// The same while the other processes wait for process 0 inside `ShutdownTask`; how long it took all of
/// them to end.
async fn killed_in_leave(stage: &mut Stage) -> Result<u64> {
    stage.training.wait(Wait::Leave).await?;
    kill_attached(stage).await?;
    let begin = Instant::now();
    stage.training.finish().await?;
    ensure!(
        stage.training.agents.iter().all(|agent| !agent.output().contains("panicked")),
        "an agent panicked"
    );
    Ok(u64::try_from(begin.elapsed().as_millis())?)
}
