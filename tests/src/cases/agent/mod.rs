//! Clients behind agents: nobody notices what happens to the cluster.

mod agents;
mod bad_input;
mod operator;
mod outage;
mod program;
mod restart;
pub(super) mod swallow;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::settings::Settings;

/// One test of a release of jax behind agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Nodes are killed while the program waits in every kind of call.
    Program,
    /// The same in the protocol that releases up to 0.4.13 can be told to speak.
    ProgramLegacy,
    /// The whole cluster is away for longer than the heartbeat timeout.
    Outage,
    /// The attached node is stopped for longer than the heartbeat timeout.
    FrozenNode,
    /// The way to the attached node swallows everything for as long.
    SilentNetwork,
    /// An operator looks after the cluster: members come and go, and more.
    Operator,
    /// The nodes are upgraded to the next feature level and taken back.
    Upgrade,
    /// Each agent is told to stop and started again.
    Restart,
    /// All agents are killed and started again.
    Kill,
    /// What agents refuse, and how.
    BadInput,
}

impl Part {
    /// Longer than every limit inside, which say better what was late.
    pub(crate) fn limit(self) -> Duration {
        Duration::from_secs(match self {
            Self::Program | Self::ProgramLegacy | Self::Operator | Self::Upgrade => 600,
            _ => 300,
        })
    }

    /// Roughly what it takes on two cores, in seconds.
    pub(super) fn usual_s(self) -> u32 {
        match self {
            Self::Program | Self::ProgramLegacy => 35,
            Self::Operator | Self::Upgrade => 31,
            _ => 25,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Program => "program",
            Self::ProgramLegacy => "program legacy",
            Self::Outage => "outage",
            Self::FrozenNode => "frozen node",
            Self::SilentNetwork => "silent network",
            Self::Operator => "operator",
            Self::Upgrade => "upgrade",
            Self::Restart => "restart",
            Self::Kill => "kill",
            Self::BadInput => "bad input",
        })
    }
}

/// Runs it.
pub(super) async fn run(settings: &Settings, release: &str, part: Part, folder: &Path) -> Result<String> {
    let python = settings.python(release)?;
    match part {
        Part::Program => program::run(python, folder, false).await,
        Part::ProgramLegacy => program::run(python, folder, true).await,
        Part::Outage => outage::whole_cluster(python, folder).await,
        Part::FrozenNode => outage::frozen_node(python, folder).await,
        Part::SilentNetwork => outage::silent_network(python, folder).await,
        Part::Operator => operator::run(python, folder).await,
        Part::Upgrade => operator::upgrade(python, folder).await,
        Part::Restart => restart::planned(python, folder).await,
        Part::Kill => restart::killed(python, folder).await,
        Part::BadInput => bad_input::run(python, folder).await,
    }
}
