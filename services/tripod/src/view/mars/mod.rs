//! Sessions, graphs and metas of Mars, as people and scripts see them.

pub(crate) mod dot;
pub(crate) mod graph;
pub(crate) mod metas;
pub(crate) mod sessions;

use tripod_client::mars_wire::{Extents, GraphState};

/// A graph's state in words.
pub(crate) fn state_word(state: GraphState) -> &'static str {
    match state {
        GraphState::Unspecified => "unknown",
        GraphState::Unscheduled => "unscheduled",
        GraphState::Preparing => "preparing",
        GraphState::Running => "running",
        GraphState::Succeeded => "succeeded",
        GraphState::Failed => "failed",
        GraphState::Cancelling => "cancelling",
        GraphState::Cancelled => "cancelled",
    }
}

/// Extents as people write a shape; `?`: only execution tells.
fn shape(extents: Option<&Extents>) -> String {
    let extents = extents.map(|shape| shape.extents.as_slice()).unwrap_or_default();
    let shown = extents.iter().map(|extent| if *extent < 0 { "?".to_owned() } else { extent.to_string() });
    format!("[{}]", shown.collect::<Vec<_>>().join(", "))
}

/// A time in milliseconds since the Unix epoch.
fn in_ms(time: Option<prost_types::Timestamp>) -> Option<u64> {
    let time = time?;
    let (seconds, nanos) = (u64::try_from(time.seconds).ok()?, u64::try_from(time.nanos).ok()?);
    Some(seconds.saturating_mul(1_000).saturating_add(nanos / 1_000_000))
}
