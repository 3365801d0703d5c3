//! A whole JAX program of three processes: it finishes although nodes are killed.

mod cut_off;
mod faults;
mod training;

use std::fmt;
use std::path::Path;

use anyhow::Result;

use crate::settings::Settings;

/// What happens to the cluster while the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// The leader is killed while no client is attached to it.
    Leader,
    /// The node that all clients are attached to is killed.
    Attached,
    /// All nodes are killed at once and started again.
    All,
    /// Each node is told to stop and started again, one after the other.
    Restart,
    /// The node that all clients are attached to is cut off from the other nodes.
    CutOff,
}

impl Fault {
    pub(crate) const ALL: [Self; 6] =
        [Self::None, Self::Leader, Self::Attached, Self::All, Self::Restart, Self::CutOff];
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "undisturbed",
            Self::Leader => "leader killed",
            Self::Attached => "attached node killed",
            Self::All => "all nodes killed",
            Self::Restart => "rolling restart",
            Self::CutOff => "attached node cut off",
        })
    }
}

/// Runs the program with that fault; the remark tells how many calls were cut.
pub(super) async fn run(settings: &Settings, release: &str, fault: Fault, folder: &Path) -> Result<String> {
    let python = settings.python(release)?;
    match fault {
        Fault::None => faults::undisturbed(python, folder).await,
        Fault::Leader => faults::leader_killed(python, folder).await,
        Fault::Attached => faults::attached_killed(python, folder).await,
        Fault::All => faults::all_killed(python, folder).await,
        Fault::Restart => faults::restarted_in_turn(python, folder).await,
        Fault::CutOff => cut_off::run(python, folder).await,
    }
}
