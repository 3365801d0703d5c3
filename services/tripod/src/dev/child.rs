//! One node's process.

use std::io;
use std::process::Stdio;

use tripod_local::files;

use crate::args::memory_flags::MemoryFlags;
use crate::args::state_flags::StateFlags;
use crate::child::{Child, Outputs};
use crate::dev::plan::NodePlan;
use crate::dev::{Config, Data};

/// Starts a node.
pub(crate) fn start(config: &Config, data: &Data, node: &NodePlan) -> io::Result<Child> {
    let stderr = if config.verbose {
        Stdio::inherit()
    } else {
        files::options().create(true).append(true).open(data.log(node.id))?.into()
    };
    Child::start(&arguments(config, data, node), Outputs { stdout: Stdio::null(), stderr })
}

fn arguments(config: &Config, data: &Data, node: &NodePlan) -> Vec<String> {
    let mut arguments = vec![
        "server".to_owned(),
        "--exit-with-parent".to_owned(),
        format!("--node={}", node.id),
        format!("--data={}", data.node(node.id).display()),
        format!("--client={}", node.client),
        format!("--peer={}", node.peer),
        format!("--http={}", node.http),
        format!("--initial={}", config.plan.initial().to_flag()),
        format!("--cluster-id={}", data.cluster_id()),
        format!("--job-ports={}", node.job_ports),
        format!("--mindspore-ports={}", node.mindspore_ports),
        format!("--timing={}", config.timing),
        // A cluster of one machine is for that machine, wherever else a node might find other settings.
        "--ui=http".to_owned(),
        "--insecure=false".to_owned(),
    ];
    arguments.extend(config.tasks.map(|tasks| format!("--tasks={tasks}")));
    arguments.extend(config.dial_allow.iter().map(|allow| format!("--dial-allow={allow}")));
    arguments.extend(config.feature_level_max.map(|level| format!("--feature-level-max={level}")));
    arguments.extend(MemoryFlags::of_share(config.plan.nodes.len()));
    arguments.extend(StateFlags::of_share(config.plan.nodes.len()));
    arguments.extend(config.job.to_flags());
    arguments
}
