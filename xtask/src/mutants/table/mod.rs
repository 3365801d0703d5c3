//! The rows. Each is a mistake that compiles and that a reader could overlook, at a rule that must stay true; `INV-n`
//! is in ARCHITECTURE.md. What the `planted` features of the binary and of the simulation break is not repeated here.

mod clusters;
mod fairness;
mod liveness;
mod log;
mod mars;
mod members;
mod scheduler;
mod state;
mod tls;

use super::row::Mutant;

/// All of them.
pub(super) fn all() -> impl Iterator<Item = &'static Mutant> {
    [
        log::ROWS,
        state::ROWS,
        liveness::ROWS,
        fairness::ROWS,
        members::ROWS,
        scheduler::ROWS,
        clusters::ROWS,
        mars::ROWS,
        tls::ROWS,
    ]
    .into_iter()
    .flatten()
}
