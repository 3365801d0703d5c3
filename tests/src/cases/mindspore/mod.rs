//! Real MindSpore processes whose scheduler is a cluster: of the dynamic cluster, and nodes of the parameter server's.

mod faults;
mod gang;
mod parameter_server;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use self::faults::Scheduler;
use crate::settings::Settings;

/// One test of a release of MindSpore. But for the last, two workers call AllReduce and check each result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Nothing happens to the nodes.
    Undisturbed,
    /// The leader is killed while both workers are connected to another node.
    LeaderKilled,
    /// The node that both workers are connected to is killed and comes back.
    AttachedKilled,
    /// Nothing happens to the nodes, and workers know an agent and no node.
    AgentUndisturbed,
    /// Workers know an agent and no node: the leader is killed, and the node that the agent uses.
    Agent,
    /// MindSpore's launcher starts the workers, beside an agent: the leader is killed, and the node that the agent uses.
    Launcher,
    /// All nodes are killed, and come back ten seconds later.
    Away,
    AgentAway,
    /// Five rounds of the node's death, the leader's and everybody's.
    Rounds,
    AgentRounds,
    /// A worker is killed and started again with the node id that it had.
    Recovery,
    /// Nodes of a parameter server: one more server comes and leaves again, while the leader is killed, and their own node.
    ParameterServer,
}

impl Part {
    /// Roughly what it takes on two cores, in seconds.
    pub(super) fn usual_s(self) -> u32 {
        match self {
            Self::LeaderKilled => 60,
            Self::Recovery | Self::ParameterServer => 90,
            Self::Undisturbed | Self::AgentUndisturbed | Self::AttachedKilled => 110,
            Self::Agent | Self::Launcher | Self::Away | Self::AgentAway => 120,
            Self::Rounds | Self::AgentRounds => 240,
        }
    }

    /// Longer than every limit inside.
    pub(super) fn limit(self) -> Duration {
        Duration::from_secs(match self {
            Self::Rounds | Self::AgentRounds => 1500,
            _ => 900,
        })
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Undisturbed => "undisturbed",
            Self::AgentUndisturbed => "agent undisturbed",
            Self::LeaderKilled => "leader killed",
            Self::AttachedKilled => "attached node killed",
            Self::Agent => "agent",
            Self::Launcher => "msrun",
            Self::Away => "all nodes away",
            Self::AgentAway => "agent all nodes away",
            Self::Rounds => "rounds",
            Self::AgentRounds => "agent rounds",
            Self::Recovery => "recovery",
            Self::ParameterServer => "parameter server",
        })
    }
}

/// Runs it.
pub(super) async fn run(settings: &Settings, release: &str, part: Part, folder: &Path) -> Result<String> {
    let python = settings.mindspore_python(release)?;
    match part {
        Part::Undisturbed => faults::undisturbed(python, folder, Scheduler::Node).await,
        Part::AgentUndisturbed => faults::undisturbed(python, folder, Scheduler::Agent).await,
        Part::LeaderKilled => faults::leader_killed(python, folder).await,
        Part::AttachedKilled => faults::attached_killed(python, folder).await,
        Part::Agent => faults::agent(python, folder).await,
        Part::Launcher => faults::launcher(python, folder).await,
        Part::Away => faults::away(python, folder, Scheduler::Node).await,
        Part::AgentAway => faults::away(python, folder, Scheduler::Agent).await,
        Part::Rounds => faults::rounds(python, folder, Scheduler::Node).await,
        Part::AgentRounds => faults::rounds(python, folder, Scheduler::Agent).await,
        Part::Recovery => faults::recovery(python, folder).await,
        Part::ParameterServer => parameter_server::run(python, folder).await,
    }
}
