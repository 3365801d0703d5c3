//! A program that a test directs: it trains, and waits in each kind of call while the nodes that it is attached
//! to are killed. It reaches the nodes by itself here, and through agents in [`super::agent`].

mod direct;
pub(super) mod faults;
pub(super) mod program;
pub(super) mod stage;

use std::fmt;
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
    const ALL: [Self; 2] = [Self::List, Self::Xds];

    /// Longer than every limit inside, which say better what was late.
    pub(crate) const LIMIT: Duration = Duration::from_secs(600);

    /// Those that run with a release: what it can do, of the newest; of the others, with `--all-clients`.
    pub(crate) fn of(settings: &Settings, release: &str) -> Vec<Self> {
        let is_run = settings.all_clients || settings.is_newest(release);
        // The gRPC of these releases does not know what nodes say.
        let too_old = |target: &Self| *target == Self::Xds && release.starts_with("0.4.");
        Self::ALL.into_iter().filter(|target| is_run && !too_old(target)).collect()
    }
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
pub(super) async fn run(settings: &Settings, release: &str, target: Target) -> Result<String> {
    let folder = settings.results.join(format!("{target}-{release}"));
    let python = settings.python(release)?;
    match target {
        Target::List => direct::with_list(python, &folder).await,
        Target::Xds => direct::with_xds(python, &folder, release).await,
    }
}
