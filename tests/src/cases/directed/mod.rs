//! A program that a test directs: it trains, and waits in each kind of call while the nodes that it is attached
//! to are killed. It reaches the nodes by itself here, and through agents in [`super::agent`].

mod direct;
pub(super) mod faults;
pub(super) mod program;
pub(super) mod stage;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::settings::Settings;

/// How a client finds the nodes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// The nodes' addresses: calls that a node's death cuts are repeated by the program.
    List,
    /// The cluster tells the addresses, and a retry policy with them: no call fails.
    Xds,
}

impl Target {
    /// Longer than every limit inside, which say better what was late.
    pub(crate) const LIMIT: Duration = Duration::from_secs(600);
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::List => "list",
            Self::Xds => "xds",
        })
    }
}

/// Runs the program with every fault.
pub(super) async fn run(settings: &Settings, release: &str, target: Target, folder: &Path) -> Result<String> {
    let python = settings.python(release)?;
    match target {
        Target::List => direct::with_list(python, folder).await,
        Target::Xds => direct::with_xds(python, folder, release).await,
    }
}
