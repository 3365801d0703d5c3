//! Agents end and are started again at the same place, under clients that wait for them.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use super::stage::Stage;
use super::training::{Manners, Wait};

/// Each agent is told to stop while the program trains.
pub(super) async fn planned(python: &Path, folder: &Path) -> Result<String> {
    let patient = |nodes| Manners { wait_for_agents: true, ..Manners::of(nodes) };
    let mut stage = Stage::set(python, folder, patient).await?;
    let mark = stage.training.mark();
    let mut slowest_ms = 0;
    for task in 0..stage.training.agents.len() {
        let agent = &mut stage.training.agents[task];
        let begin = Instant::now();
        let status = agent.terminate().await?;
        ensure!(status.success(), "the agent of task {task} ended with {status}");
        slowest_ms = slowest_ms.max(begin.elapsed().as_millis());
        agent.restart().await?;
        stage.training.go_on().await.with_context(|| format!("without the agent of task {task}"))?;
    }
    let longest_ms = stage.training.longest_ms_since(&mark);
    stage.training.finish().await?;
    Ok(format!("no call failed; longest call {longest_ms} ms, slowest stop {slowest_ms} ms"))
}

/// All agents are killed: while the processes idle, which nobody may notice, and while they wait for a
/// key, which may cut that call.
pub(super) async fn killed(python: &Path, folder: &Path) -> Result<String> {
    let patient = |nodes| Manners { release_polls: true, wait_for_agents: true, ..Manners::of(nodes) };
    let mut stage = Stage::set(python, folder, patient).await?;
    for wait in [Wait::Idle, Wait::Get] {
        stage.training.wait(wait).await?;
        for agent in &mut stage.training.agents {
            agent.kill()?;
        }
        for agent in &mut stage.training.agents {
            agent.restart().await?;
        }
        stage.training.end_wait(wait)?;
        stage.training.go_on().await.with_context(|| format!("agents killed in {}", wait.name()))?;
        let cut = stage.training.cut_calls();
        ensure!(cut == 0 || wait == Wait::Get, "{cut} calls were cut and none was under way");
    }
    let cut = stage.training.cut_calls();
    stage.training.finish().await?;
    Ok(format!("nobody died; {cut} calls were cut"))
}
