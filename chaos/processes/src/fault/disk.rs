//! What is done to disks and clocks of running nodes, through the library that is loaded into them, and to the
//! power of nodes that have disks of their own.

use std::time::Duration;

use anyhow::Context as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::time::Instant;
use tripod_wait::scaled;

use super::storage::{Controls, Mercy, Shim};
use super::{Arena, Begun, Fault, Undo};

/// Errors of the kernel that faults make up: input/output error, and no space left.
const EIO: i32 = 5;
const ENOSPC: i32 = 28;
/// How long a node whose flush has failed may take to end by itself, on a machine of usual speed.
const END_PATIENCE: Duration = Duration::from_secs(15);
const LOOK_PAUSE: Duration = Duration::from_millis(50);

pub(super) async fn inject(fault: &Fault, arena: &mut Arena<'_>) -> anyhow::Result<Option<Begun>> {
    let shim = arena.shim.context("the nodes run without the library that makes disks fail")?;
    let target = match fault {
        Fault::PowerCutAll { chance } => {
            let nodes = arena.cluster.running();
            cut(shim, arena, &nodes, *chance)?;
            return Ok(Begun::new("all nodes", Undo::Start(nodes)));
        }
        Fault::PowerCut { target, .. }
        | Fault::SlowDisk { target, .. }
        | Fault::StallDisk(target)
        | Fault::FailFlush { target, .. }
        | Fault::FullDisk(target)
        | Fault::ClockJump { target, .. } => *target,
        _ => anyhow::bail!("{fault} is not done to disks or clocks"),
    };
    let Some(node) = arena.resolve(target).await else { return Ok(None) };
    let controls = shim.node(node)?;
    match fault {
        Fault::PowerCut { chance, .. } => {
            cut(shim, arena, &[node], *chance)?;
            return Ok(Begun::new(format!("node {node}"), Undo::Start(vec![node])));
        }
        Fault::SlowDisk { delay_ms, .. } => controls.delay_syncs(Duration::from_millis(*delay_ms))?,
        Fault::StallDisk(_) => controls.stall_syncs(true)?,
        Fault::FailFlush { passes, .. } => {
            arena.may_end.insert(node);
            controls.fail_syncs(EIO, *passes)?;
        }
        Fault::FullDisk(_) => {
            arena.may_end.insert(node);
            controls.fail_writes(ENOSPC)?;
        }
        Fault::ClockJump { shift_ms, .. } => controls.shift_wall_clock(*shift_ms)?,
        _ => {}
    }
    let failed_before = controls.counts()?.syncs_failed;
    Ok(Begun::new(format!("node {node}"), Undo::HealDisk { node, failed_before }))
}

/// Takes the power from nodes and from the file systems that are their own.
pub(super) async fn cut_power(fault: &Fault, arena: &mut Arena<'_>) -> anyhow::Result<Option<Begun>> {
    let disks = arena.disks.context("the nodes have no disks of their own")?;
    let (nodes, name) = match fault {
        Fault::DiskCutAll => (arena.cluster.running(), "all nodes".to_owned()),
        Fault::DiskCut(target) => {
            let Some(node) = arena.resolve(*target).await else { return Ok(None) };
            (vec![node], format!("node {node}"))
        }
        _ => anyhow::bail!("{fault} takes no power"),
    };
    disks.cut(arena.cluster, &nodes)?;
    Ok(Begun::new(name, Undo::Start(nodes)))
}

/// Ends what was made up. A node whose flush has failed must have ended by itself by then, and with a code; it
/// is started again.
pub(super) async fn heal(node: u64, failed_before: u64, arena: &mut Arena<'_>) -> anyhow::Result<()> {
    let controls =
        arena.shim.context("the nodes run without the library that makes disks fail")?.node(node)?;
    if controls.counts()?.syncs_failed > failed_before {
        must_end(node, controls, arena).await?;
    }
    controls.heal()?;
    arena.look_for_the_dead()?;
    arena.may_end.remove(&node);
    if !arena.cluster.running().contains(&node) {
        arena.cluster.restart(node)?;
    }
    Ok(())
}

async fn must_end(node: u64, controls: &Controls, arena: &mut Arena<'_>) -> anyhow::Result<()> {
    let patience = scaled(END_PATIENCE);
    let deadline = Instant::now() + patience;
    loop {
        arena.look_for_the_dead()?;
        if !arena.cluster.running().contains(&node) {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let failed = controls.counts()?.syncs_failed;
            arena.misconduct.push(format!(
                "node {node} still runs {patience:?} after {failed} of its flushes have failed"
            ));
            return Ok(());
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}

/// The nodes' processes end, and of what they have not flushed as much is lost as chance says.
fn cut(shim: &Shim, arena: &mut Arena<'_>, nodes: &[u64], chance: u64) -> anyhow::Result<()> {
    let mut random = StdRng::seed_from_u64(chance);
    let mercy = Mercy::draw(&mut random);
    let taken = shim.cut(arena.cluster, nodes, mercy, &mut random)?;
    let lost: usize = taken.iter().map(|taken| taken.writes).sum();
    arena.unflushed_writes += lost;
    Ok(())
}
