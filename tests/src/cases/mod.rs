//! The tests, by name.

pub(crate) mod agent;
mod conformance;
pub(crate) mod directed;
pub(crate) mod fault_tolerant;
mod heartbeats;
mod killed_task;
mod leader;
mod mars;
pub(crate) mod mindspore;
pub(crate) mod program;
mod python_cluster;
pub(crate) mod raw;
mod scripts;
pub(crate) mod tensorflow;
mod unix_socket;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use tripod_processes::cluster::ClusterOptions;
use tripod_tests::dev::Dev;
use tripod_tests::jobs::Poll;
use tripod_tests::wait::scaled;

use crate::logs;
use crate::settings::Settings;
use program::Fault;
use raw::Dialect;

/// One test.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Case {
    /// The comparison of outcomes finds what it must find.
    Comparison,
    /// The scripts and these tests do not give each other's ports away.
    ReservedPorts,
    /// The Python package can be installed from the checkout.
    PythonInstall,
    /// It does what its tests say.
    PythonPackage,
    /// The same, with drivers and workers at a real cluster.
    PythonCluster,
    /// The package `tripod`, which starts clusters of its own.
    PythonTripod,
    /// Every API scenario with that release gives upstream's outcome.
    Conformance { release: &'static str },
    /// Every raw call of that dialect gives upstream's answer.
    Raw { dialect: Dialect },
    /// A killed task ends the others with an error that names it.
    KilledTask { release: &'static str, poll: Poll },
    /// Programs and jobs that do not agree on when a task is lost.
    Heartbeats { release: &'static str },
    /// Every process of a program is killed and comes back.
    FaultTolerant { release: &'static str, part: fault_tolerant::Part },
    /// A client reaches a node through a unix socket.
    UnixSocket { release: &'static str },
    /// `tripod dev`, which serves all the tests that share a cluster, ends with its nodes.
    DevEnds,
    /// A whole program finishes although nodes are killed.
    Program { release: &'static str, fault: Fault },
    /// A program that is directed through every fault finishes without an agent.
    Directed { release: &'static str, target: directed::Target },
    /// Clients behind agents.
    Agent { release: &'static str, part: agent::Part },
    /// Processes of TensorFlow instead of jaxlib.
    TensorFlow { release: &'static str, part: tensorflow::Part },
    /// Programs of Mars, with an interpreter that has that release.
    Mars { release: &'static str },
    /// Processes of MindSpore.
    MindSpore { release: &'static str, part: mindspore::Part },
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Comparison => write!(f, "comparison"),
            Self::ReservedPorts => write!(f, "reserved ports"),
            Self::PythonPackage => write!(f, "python package"),
            Self::PythonInstall => write!(f, "python install"),
            Self::PythonCluster => write!(f, "python cluster"),
            Self::PythonTripod => write!(f, "python tripod"),
            Self::Conformance { release } => write!(f, "conformance {release}"),
            Self::Raw { dialect } => write!(f, "raw calls {}", dialect.name),
            Self::KilledTask { release, poll: Poll::Hold } => write!(f, "killed task {release} poll hold"),
            Self::KilledTask { release, poll: Poll::Release } => {
                write!(f, "killed task {release} poll release")
            }
            Self::Heartbeats { release } => write!(f, "heartbeats {release}"),
            Self::FaultTolerant { release, part } => write!(f, "{part} {release}"),
            Self::UnixSocket { release } => write!(f, "unix socket {release}"),
            Self::DevEnds => write!(f, "dev ends with its nodes"),
            Self::Program { release, fault } => write!(f, "program {release} {fault}"),
            Self::Directed { release, target } => write!(f, "{target} program {release}"),
            Self::Agent { release, part } => write!(f, "agent {part} {release}"),
            Self::TensorFlow { release, part } => write!(f, "tensorflow {release} {part}"),
            Self::Mars { release } => write!(f, "mars demonstrations {release}"),
            Self::MindSpore { release, part } => write!(f, "mindspore {release} {part}"),
        }
    }
}

/// What a test on the shared cluster is given.
#[derive(Debug, Clone, Copy)]
struct Given<'a> {
    settings: &'a Settings,
    /// The test's own.
    folder: &'a Path,
    /// Of the shared cluster; none, if the test has one of its own.
    endpoints: &'a [String],
}

/// A cluster's nodes with their data and logs in the folder of a test.
fn nodes_in(folder: &Path) -> Result<ClusterOptions> {
    Ok(ClusterOptions { data: Some(folder.join(logs::CLUSTER)), ..ClusterOptions::tripod()? })
}

impl Case {
    /// Tests of our scripts and of the Python package.
    pub(crate) const SCRIPTS: [Self; 6] = [
        Self::Comparison,
        Self::ReservedPorts,
        Self::PythonPackage,
        Self::PythonInstall,
        Self::PythonCluster,
        Self::PythonTripod,
    ];

    /// Whether it runs on the cluster that several tests share, as it leaves the nodes alone.
    pub(crate) fn shares(&self) -> bool {
        match self {
            Self::Comparison
            | Self::ReservedPorts
            | Self::PythonPackage
            | Self::PythonInstall
            | Self::PythonTripod
            | Self::Conformance { .. }
            | Self::Raw { .. }
            | Self::KilledTask { .. }
            | Self::Heartbeats { .. }
            | Self::UnixSocket { .. }
            | Self::DevEnds => true,
            Self::PythonCluster
            | Self::Program { .. }
            | Self::Directed { .. }
            | Self::Agent { .. }
            | Self::Mars { .. }
            | Self::MindSpore { .. } => false,
            Self::FaultTolerant { part, .. } => *part != fault_tolerant::Part::Rounds,
            Self::TensorFlow { part, .. } => !part.disturbs(),
        }
    }

    /// Roughly what it takes on two cores, in seconds, by kind: those that take longest begin first.
    pub(crate) fn usual_s(&self) -> u32 {
        match self {
            Self::Comparison | Self::ReservedPorts | Self::DevEnds => 1,
            Self::UnixSocket { .. } => 8,
            Self::KilledTask { .. } => 18,
            Self::PythonTripod => 10,
            Self::PythonInstall => 22,
            Self::Raw { .. } => 35,
            Self::PythonPackage => 70,
            Self::Conformance { .. } => 135,
            Self::PythonCluster => 130,
            Self::Heartbeats { .. } => 180,
            Self::FaultTolerant { part, .. } => part.usual_s(),
            Self::Program { .. } => 20,
            Self::Directed { .. } => 35,
            Self::Agent { part, .. } => part.usual_s(),
            Self::TensorFlow { part, .. } => part.usual_s(),
            Self::Mars { .. } => 60,
            Self::MindSpore { part, .. } => part.usual_s(),
        }
    }

    /// The name of its folder among the results.
    pub(crate) fn folder(&self) -> String {
        match self {
            Self::PythonCluster => "python-package-at-a-cluster".to_owned(),
            _ => self.to_string().replace(' ', "-"),
        }
    }

    /// Runs it; `endpoints` are those of the shared cluster. The answer is a remark for the report.
    pub(crate) async fn run_bounded(
        &self,
        settings: &Settings,
        folder: &Path,
        endpoints: &[String],
    ) -> Result<String> {
        let limit = scaled(self.limit());
        match tokio::time::timeout(limit, self.run(Given { settings, folder, endpoints })).await {
            Ok(outcome) => outcome,
            Err(_) => bail!("not finished within {limit:?}"),
        }
    }

    /// Longer than every limit inside, which say better what was late.
    fn limit(&self) -> Duration {
        match self {
            Self::Comparison | Self::ReservedPorts => Duration::from_secs(60),
            Self::PythonPackage | Self::PythonInstall | Self::PythonTripod => scripts::PACKAGE_LIMIT,
            Self::PythonCluster => python_cluster::LIMIT,
            Self::Conformance { .. } => Duration::from_secs(900),
            Self::Raw { .. } => Duration::from_secs(400),
            Self::Heartbeats { .. } => Duration::from_secs(600),
            Self::FaultTolerant { part, .. } => part.limit(),
            Self::KilledTask { .. } | Self::UnixSocket { .. } | Self::DevEnds => Duration::from_secs(180),
            Self::Program { .. } => Duration::from_secs(400),
            Self::Directed { .. } => directed::Target::LIMIT,
            Self::Agent { part, .. } => part.limit(),
            Self::TensorFlow { .. } => Duration::from_secs(3000),
            Self::Mars { .. } => mars::LIMIT,
            Self::MindSpore { part, .. } => part.limit(),
        }
    }

    async fn run(&self, given: Given<'_>) -> Result<String> {
        let Given { settings, folder, endpoints } = given;
        match *self {
            Self::Comparison => scripts::comparison(settings, folder).await,
            Self::ReservedPorts => scripts::reserved_ports(settings, folder).await,
            Self::PythonPackage => scripts::python_package(settings, folder).await,
            Self::PythonInstall => scripts::python_install(settings, folder).await,
            Self::PythonCluster => python_cluster::run(settings).await,
            Self::PythonTripod => scripts::python_tripod(settings, folder).await,
            Self::Conformance { release } => conformance::run(given, release).await,
            Self::Raw { dialect } => raw::run(given, dialect).await,
            Self::KilledTask { release, poll } => killed_task::run(given, release, poll).await,
            Self::Heartbeats { release } => heartbeats::run(given, release).await,
            Self::FaultTolerant { release, part } => fault_tolerant::run(given, release, part).await,
            Self::UnixSocket { release } => unix_socket::run(settings, release, folder).await,
            Self::DevEnds => ends(Dev::start(folder, &[]).await?).await,
            Self::Program { release, fault } => program::run(settings, release, fault, folder).await,
            Self::Directed { release, target } => directed::run(settings, release, target, folder).await,
            Self::Agent { release, part } => agent::run(settings, release, part, folder).await,
            Self::TensorFlow { release, part } => {
                tensorflow::run(settings, release, part, folder, endpoints).await
            }
            Self::Mars { release } => mars::run(settings, release, folder).await,
            Self::MindSpore { release, part } => mindspore::run(settings, release, part, folder).await,
        }
    }
}

/// Ends `tripod dev`, which must leave no process behind.
pub(crate) async fn ends(dev: Dev) -> Result<String> {
    dev.stop().await?;
    Ok("no process is left".to_owned())
}
