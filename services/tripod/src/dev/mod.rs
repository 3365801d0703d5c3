//! A whole cluster on this machine: one process a node, of this same executable.

mod child;
mod data;
mod plan;
mod ready;
mod report;
mod supervise;

use std::path::PathBuf;

pub(crate) use data::Data;
pub(crate) use plan::Plan;
use tripod_dial::Allow;

use crate::args::job_flags::JobFlags;
use crate::args::timing::Pace;
use crate::failure::Failure;
use crate::node::Stop;
use crate::output::Format;

/// What a cluster is started with.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) plan: Plan,
    /// Absent: a temporary directory that is removed at the end.
    pub(crate) data: Option<PathBuf>,
    pub(crate) tasks: Option<u32>,
    pub(crate) job: JobFlags,
    pub(crate) timing: Pace,
    /// Start nodes again that ended.
    pub(crate) restart: bool,
    /// The nodes' logs go to standard error and not to files.
    pub(crate) verbose: bool,
    /// Absent: what is released.
    pub(crate) dial_allow: Option<Allow>,
    pub(crate) feature_level_max: Option<u32>,
    pub(crate) exit_with_parent: bool,
    pub(crate) format: Format,
}

/// Runs the cluster until it is told to stop, or no node is left.
pub(crate) async fn run(config: Config) -> Result<(), Failure> {
    let stop = Stop::listen(config.exit_with_parent)?;
    config.plan.check_ports()?;
    let data = Data::open(config.data.clone(), &config.plan)?;
    supervise::run(&config, &data, stop).await
}
