//! Where a run took place: the class of machine, without its name.

use serde::{Deserialize, Serialize};

/// What figures of different runs must not be compared without.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Processors that the run could use.
    pub cores: usize,
    /// The kernel's release number, such as `6.8.0`; empty if nobody knows.
    pub kernel: String,
}

impl Machine {
    /// The machine that this program runs on.
    #[must_use]
    pub fn here() -> Self {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            // What follows the number names the builder, not the class.
            kernel: release.split('-').next().unwrap_or_default().trim().to_owned(),
        }
    }
}
