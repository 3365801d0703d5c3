//! The tests, by name.

mod agent;
mod conformance;
mod directed;
mod killed_task;
mod program;
mod python_cluster;
mod raw;
mod scripts;
mod tensorflow;
mod unix_socket;

use std::fmt;
use std::time::Duration;

use anyhow::{Result, bail};
use tripod_tests::jobs::Poll;

use crate::settings::Settings;
use program::Fault;
use raw::Dialect;

/// One test.
pub(crate) enum Case {
    /// The comparison of outcomes finds what it must find.
    Comparison,
    /// The scripts and these tests do not give each other's ports away.
    ReservedPorts,
    /// Every API scenario with that release gives upstream's outcome.
    Conformance { release: String },
    /// The Python package can be installed from the checkout.
    PythonInstall,
    /// It does what its tests say.
    PythonPackage,
    /// The same, with drivers and workers at a real cluster.
    PythonCluster,
    /// Every raw call of that dialect gives upstream's answer.
    Raw { dialect: Dialect },
    /// A killed task ends the others with an error that names it.
    KilledTask { release: String, poll: Poll },
    /// A client reaches a node through a unix socket.
    UnixSocket { release: String },
    /// A whole program finishes although nodes are killed.
    Program { release: String, fault: Fault },
    /// A program that is directed through every fault finishes without an agent.
    Directed { release: String, target: directed::Target },
    /// Clients behind agents.
    Agent { release: String, part: agent::Part },
    /// Processes of TensorFlow instead of jaxlib.
    TensorFlow { release: String, part: tensorflow::Part },
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Comparison => write!(f, "comparison"),
            Self::ReservedPorts => write!(f, "reserved ports"),
            Self::PythonPackage => write!(f, "python package"),
            Self::PythonInstall => write!(f, "python install"),
            Self::PythonCluster => write!(f, "python cluster"),
            Self::Conformance { release } => write!(f, "conformance {release}"),
            Self::Raw { dialect } => write!(f, "raw calls {}", dialect.name),
            Self::KilledTask { release, poll: Poll::Hold } => write!(f, "killed task {release} poll hold"),
            Self::KilledTask { release, poll: Poll::Release } => {
                write!(f, "killed task {release} poll release")
            }
            Self::UnixSocket { release } => write!(f, "unix socket {release}"),
            Self::Program { release, fault } => write!(f, "program {release} {fault}"),
            Self::Directed { release, target } => write!(f, "{target} program {release}"),
            Self::Agent { release, part } => write!(f, "agent {part} {release}"),
            Self::TensorFlow { release, part } => write!(f, "tensorflow {release} {part}"),
        }
    }
}

/// The cases that share a cluster, and those that need one each; only those that the filter picks.
pub(crate) fn all(settings: &Settings) -> (Vec<Case>, Vec<Case>) {
    let mut together = vec![Case::Comparison, Case::ReservedPorts, Case::PythonPackage, Case::PythonInstall];
    let mut alone = vec![Case::PythonCluster];
    let given = |dialect: &Dialect| settings.releases.iter().any(|release| release == dialect.release);
    together.extend(Dialect::ALL.into_iter().filter(given).map(|dialect| Case::Raw { dialect }));
    for (position, release) in settings.releases.iter().enumerate() {
        together.push(Case::Conformance { release: release.clone() });
        for poll in [Poll::Release, Poll::Hold] {
            together.push(Case::KilledTask { release: release.clone(), poll });
        }
        together.push(Case::UnixSocket { release: release.clone() });
        if position == 0 || settings.all_clients {
            alone.extend(Fault::ALL.map(|fault| Case::Program { release: release.clone(), fault }));
        }
    }
    for release in settings.releases.iter().chain(&settings.more_releases) {
        let targets = directed::Target::of(settings, release);
        alone.extend(targets.into_iter().map(|target| Case::Directed { release: release.clone(), target }));
        let parts = agent::Part::of(settings, release);
        alone.extend(parts.into_iter().map(|part| Case::Agent { release: release.clone(), part }));
    }
    for release in settings.tensorflow.keys() {
        for part in tensorflow::Part::ALL {
            let place = if part.is_alone() { &mut alone } else { &mut together };
            place.push(Case::TensorFlow { release: release.clone(), part });
        }
    }
    let picked = |case: &Case| settings.filter.as_ref().is_none_or(|text| case.to_string().contains(text));
    together.retain(picked);
    alone.retain(picked);
    (together, alone)
}

impl Case {
    /// Runs it; `endpoints` are those of the shared cluster. The answer is a remark for the report.
    pub(crate) async fn run_bounded(&self, settings: &Settings, endpoints: &[String]) -> Result<String> {
        let limit = self.limit();
        match tokio::time::timeout(limit, self.run(settings, endpoints)).await {
            Ok(outcome) => outcome,
            Err(_) => bail!("not finished within {limit:?}"),
        }
    }

    /// Longer than every limit inside, which say better what was late.
    fn limit(&self) -> Duration {
        match self {
            Self::Comparison | Self::ReservedPorts => Duration::from_secs(60),
            Self::PythonPackage | Self::PythonInstall => scripts::PACKAGE_LIMIT,
            Self::PythonCluster => python_cluster::LIMIT,
            Self::Conformance { .. } => Duration::from_secs(900),
            Self::Raw { .. } => Duration::from_secs(400),
            Self::KilledTask { .. } | Self::UnixSocket { .. } => Duration::from_secs(180),
            Self::Program { .. } => Duration::from_secs(400),
            Self::Directed { .. } => directed::Target::LIMIT,
            Self::Agent { part, .. } => part.limit(),
            Self::TensorFlow { .. } => Duration::from_secs(3000),
        }
    }

    async fn run(&self, settings: &Settings, endpoints: &[String]) -> Result<String> {
        match self {
            Self::Comparison => scripts::comparison(settings).await,
            Self::ReservedPorts => scripts::reserved_ports(settings).await,
            Self::PythonPackage => scripts::python_package(settings).await,
            Self::PythonInstall => scripts::python_install(settings).await,
            Self::PythonCluster => python_cluster::run(settings).await,
            Self::Conformance { release } => conformance::run(settings, release, endpoints).await,
            Self::Raw { dialect } => raw::run(settings, *dialect, endpoints).await,
            Self::KilledTask { release, poll } => killed_task::run(settings, release, *poll, endpoints).await,
            Self::UnixSocket { release } => unix_socket::run(settings, release).await,
            Self::Program { release, fault } => program::run(settings, release, *fault).await,
            Self::Directed { release, target } => directed::run(settings, release, *target).await,
            Self::Agent { release, part } => agent::run(settings, release, *part).await,
            Self::TensorFlow { release, part } => tensorflow::run(settings, release, *part, endpoints).await,
        }
    }
}
