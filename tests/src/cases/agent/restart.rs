//! Agents end and are started again at the same place, under clients that wait for them.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use super::agents::{self, Setup};
use crate::cases::directed::program::Wait;

/// Each agent is told to stop while the program trains.
pub(super) async fn planned(python: &Path, folder: &Path) -> Result<String> {
    let setup = Setup { wait_for_agents: true, ..Setup::default() };
    let mut stage = agents::stage(python, folder, &setup).await?;
    let mark = stage.program.mark();
    let mut slowest_ms = 0;
    for task in 0..stage.way.all.len() {
        let agent = &mut stage.way.all[task];
        let begin = Instant::now();
        let status = agent.terminate().await?;
        ensure!(status.success(), "the agent of task {task} ended with {status}");
        slowest_ms = slowest_ms.max(begin.elapsed().as_millis());
        agent.restart().await?;
        stage.program.go_on().await.with_context(|| format!("without the agent of task {task}"))?;
    }
    let longest_ms = stage.program.longest_ms_since(&mark);
    stage.program.finish().await?;
    Ok(format!("no call failed; longest call {longest_ms} ms, slowest stop {slowest_ms} ms"))
}

/// All agents are killed: while the processes idle, which nobody may notice, and while they wait for a
/// key, which may cut that call.
pub(super) async fn killed(python: &Path, folder: &Path) -> Result<String> {
    let setup = Setup { release_polls: true, wait_for_agents: true, ..Setup::default() };
    let mut stage = agents::stage(python, folder, &setup).await?;
    for wait in [Wait::Idle, Wait::Get] {
        stage.program.wait(wait).await?;
        for agent in &mut stage.way.all {
            agent.kill()?;
        }
        for agent in &mut stage.way.all {
            agent.restart().await?;
        }
        stage.program.end_wait(wait)?;
        stage.program.go_on().await.with_context(|| format!("agents killed in {}", wait.name()))?;
        let cut: usize = stage.program.cut_calls().iter().sum();
        ensure!(cut == 0 || wait == Wait::Get, "{cut} calls were cut and none was under way");
    }
    let cut: usize = stage.program.cut_calls().iter().sum();
    stage.program.finish().await?;
    Ok(format!("nobody died; {cut} calls were cut"))
}
