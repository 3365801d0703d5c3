//! The rows of failures in which the engine matters, over the wire: fixed scenarios with scripted peers, played once
//! undisturbed and then with the leading node killed after every step. All rows, with the leader killed within steps
//! too, are in `state/tests/ray_model/rows`.
//!
//! Peers are given up when the scenario says so and not by their silence, which `liveness` is about.

mod bounds;
mod lineage;
mod play;
mod stores;
mod workers;

use std::time::Duration;

use tripod_ray::Patience;

use crate::support::Kind;

/// Stores are asked often, and lost reports are noticed soon.
fn attentive() -> Kind {
    let patience = Patience { reconcile_every: Duration::from_millis(600), ..Patience::default() };
    Kind { patience, ..Kind::default() }
}
