//! What is done to processes.

use std::time::Duration;

use tripod_client::Client;

use super::{Arena, Begun, Fault, Undo};

/// How long handing over leadership may take.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) async fn inject(fault: &Fault, arena: &mut Arena<'_>) -> anyhow::Result<Option<Begun>> {
    match fault {
        Fault::KillAll => {
            let running = arena.cluster.running();
            arena.cluster.kill_all()?;
            Ok(Begun::new("all nodes", Undo::Start(running)))
        }
        Fault::Kill(target) => {
            let Some(node) = arena.resolve(*target).await else { return Ok(None) };
            arena.cluster.kill(node)?;
            Ok(Begun::new(name(node), Undo::Start(vec![node])))
        }
        Fault::Pause(target) => {
            let Some(node) = arena.resolve(*target).await else { return Ok(None) };
            arena.cluster.pause(node)?;
            Ok(Begun::new(name(node), Undo::Resume(node)))
        }
        Fault::Terminate(target) => {
            let Some(node) = arena.resolve(*target).await else { return Ok(None) };
            terminate(node, arena).await?;
            Ok(Begun::new(name(node), Undo::Start(vec![node])))
        }
        Fault::Upgrade(target) => {
            let target = arena.resolve(*target).await;
            let Some(node) = arena.builds.as_ref().and_then(|builds| builds.next(target)) else {
                return Ok(None);
            };
            upgrade(node, arena).await?;
            Ok(Begun::new(name(node), Undo::Start(vec![node])))
        }
        Fault::TransferLeadership => {
            let Some(leader) = arena.leader().await else { return Ok(None) };
            // That nobody takes over within the time is allowed while other faults are about.
            let _ = Client::transfer_leader(&arena.cluster.endpoint(leader), None, TRANSFER_TIMEOUT).await;
            Ok(Begun::new(name(leader), Undo::Nothing))
        }
        _ => anyhow::bail!("{fault} is not done to processes"),
    }
}

/// Ends a node. At its next start it is the newer build.
async fn upgrade(node: u64, arena: &mut Arena<'_>) -> anyhow::Result<()> {
    terminate(node, arena).await?;
    if let Some(builds) = &mut arena.builds {
        arena.cluster.run_as(node, builds.upgraded(node));
    }
    Ok(())
}

/// Upgrades the nodes that no fault has, one after the other.
///
/// # Errors
/// The harness failed.
pub async fn upgrade_the_rest(arena: &mut Arena<'_>) -> anyhow::Result<()> {
    while let Some(node) = arena.builds.as_ref().and_then(|builds| builds.next(None)) {
        arena.cluster.wait_until_ready().await?;
        upgrade(node, arena).await?;
        arena.cluster.restart(node)?;
    }
    Ok(())
}

/// A node that is told to end must do so by itself, well, and soon.
async fn terminate(node: u64, arena: &mut Arena<'_>) -> anyhow::Result<()> {
    match arena.cluster.terminate(node).await {
        Ok(status) if status.success() => {}
        Ok(status) => arena.misconduct.push(format!("node {node} was told to end and did so with {status}")),
        Err(late) => {
            arena.misconduct.push(format!("node {node} was told to end and did not: {late:#}"));
            arena.cluster.kill(node)?;
        }
    }
    Ok(())
}

fn name(node: u64) -> String {
    format!("node {node}")
}
