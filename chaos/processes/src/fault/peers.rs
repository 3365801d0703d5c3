//! What is done to the scheduler's workers and object stores.

use anyhow::Context as _;

use super::{Arena, Begun, Fault, Undo};
use crate::cluster::Seat;

pub(super) fn inject(fault: &Fault, arena: &mut Arena<'_>) -> anyhow::Result<Option<Begun>> {
    let Some(peers) = &mut arena.peers else { return Ok(None) };
    let seat = match fault {
        Fault::KillWorker { chance } => peers.worker(*chance),
        Fault::KillStore { chance } => peers.store_without_drivers(*chance),
        _ => anyhow::bail!("{fault} is not done to workers and stores"),
    };
    let Some(seat) = seat else { return Ok(None) };
    peers.kill(seat)?;
    Ok(Begun::new(seat.to_string(), Undo::StartPeer(seat)))
}

pub(super) fn start(seat: Seat, arena: &mut Arena<'_>) -> anyhow::Result<()> {
    arena.peers.as_mut().context("there are no workers and stores")?.start(seat)
}
