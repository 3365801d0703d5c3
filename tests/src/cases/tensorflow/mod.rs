//! Real TensorFlow processes whose coordinator is a cluster.

mod faults;
mod job;
mod parameter_server;
mod scenarios;
mod training;

use std::fmt;
use std::path::Path;

use anyhow::Result;

use crate::settings::Settings;

/// One test of a release of TensorFlow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Every scenario gives the outcome of TensorFlow's own service.
    Scenarios,
    /// The same, while in each of them the leader is killed.
    ScenariosLeaderKilled,
    /// A training with `MultiWorkerMirroredStrategy` finishes although the leader is killed.
    Training,
    /// Every scenario with an agent beside each worker, while the leader is killed.
    AgentScenarios,
    /// The training as programs of `tripod run`, while the leader is killed.
    AgentTraining,
    /// A training with `ParameterServerStrategy`, which takes the coordinator for a worker, too.
    ParameterServer,
}

impl Part {
    /// Whether it disturbs its cluster, which then must be its own.
    pub(super) fn disturbs(self) -> bool {
        !matches!(self, Self::Scenarios | Self::ParameterServer)
    }

    /// Roughly what it takes on two cores, in seconds.
    pub(super) fn usual_s(self) -> u32 {
        match self {
            Self::ScenariosLeaderKilled | Self::AgentScenarios => 240,
            Self::Scenarios => 150,
            Self::Training | Self::AgentTraining => 60,
            Self::ParameterServer => 30,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scenarios => "scenarios",
            Self::ScenariosLeaderKilled => "scenarios leader killed",
            Self::Training => "training leader killed",
            Self::AgentScenarios => "agent scenarios",
            Self::AgentTraining => "agent training",
            Self::ParameterServer => "parameter server",
        })
    }
}

/// Runs it; `endpoints` are those of the shared cluster.
pub(super) async fn run(
    settings: &Settings,
    release: &str,
    part: Part,
    folder: &Path,
    endpoints: &[String],
) -> Result<String> {
    let python = settings.tensorflow_python(release)?;
    match part {
        Part::Scenarios => scenarios::undisturbed(python, release, folder, endpoints).await,
        Part::ScenariosLeaderKilled => scenarios::leader_killed(python, release, folder).await,
        Part::Training => training::leader_killed(python, folder).await,
        Part::AgentScenarios => scenarios::behind_agents(python, release, folder).await,
        Part::AgentTraining => training::behind_agents(python, folder).await,
        Part::ParameterServer => parameter_server::run(python, release, folder, endpoints).await,
    }
}
