//! What had to happen within which time.

use serde::{Deserialize, Serialize};

use crate::history::Micros;

/// A bound of a run: whoever is later breaks a promise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// What must have happened, in words.
    pub what: String,
    /// Within which time, in microseconds of the run's clock.
    pub within_us: Micros,
}
