//! What is done to the scheduler's workers and object stores.

use anyhow::Context as _;

use super::{Arena, Begun, Fault, Undo};
use crate::cluster::Seat;

pub(super) fn inject(fault: &Fault, arena: &mut Arena<'_>) -> anyhow::Result<Option<Begun>> {
    let Some(peers) = &mut arena.peers else { return Ok(None) };
    let seat = match fault {
        Fault::KillWorker { chance } => peers.worker(*chance),
        Fault::KillStore { chance } | Fault::KillMachine { chance } => peers.store_without_drivers(*chance),
        _ => anyhow::bail!("{fault} is not done to workers and stores"),
    };
    let Some(seat) = seat else { return Ok(None) };
    let seats = if let Fault::KillMachine { .. } = fault { peers.beside(seat) } else { vec![seat] };
    peers.kill_all(&seats)?;
    Ok(Begun::new(seat.to_string(), Undo::StartPeers(seats)))
}

pub(super) fn start(seats: Vec<Seat>, arena: &mut Arena<'_>) -> anyhow::Result<()> {
    let peers = arena.peers.as_mut().context("there are no workers and stores")?;
    seats.into_iter().try_for_each(|seat| peers.start(seat))
}
