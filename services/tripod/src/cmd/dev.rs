//! `tripod dev`: a whole cluster on this machine.

use std::path::PathBuf;

use clap::Args;
use tripod_dial::Allow;

use crate::args::job_flags::JobFlags;
use crate::args::timing::Pace;
use crate::cli::Global;
use crate::dev::{self, Plan};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Node i (from 0) uses client port PORT+i, peer port PORT+100+i, http port PORT+200+i, and the job ports
PORT+300+100*i to PORT+399+100*i, all on 127.0.0.1. Nodes of MindSpore find the first ten jobs at PORT+10+10*i to
PORT+19+10*i.

Examples:
  tripod dev --tasks 3                     three nodes, for a JAX program of three processes
  tripod dev --data ./cluster              the same cluster again at the next start
  tripod dev --nodes 1 --json              one node, one line of JSON for each event
  tripod dev --port 9000                   elsewhere; others are told by --endpoints or TRIPOD_ENDPOINTS

For tasks and objects, start `tripod objstore` and then workers (`tripod worker`, or in Python
`python -m tripod_ray.worker`) in other terminals; `tripod ray status` shows them.

Kill nodes with `kill -9 PID` and see what happens; --restart brings them back.";

/// Flags of `dev`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DevArgs {
    /// How many nodes; an odd number, as an even one tolerates no more failures than one less
    #[arg(long, value_name = "N", default_value_t = 3)]
    nodes: u16,

    /// Client port of the first node
    #[arg(long, value_name = "PORT", default_value_t = 7700)]
    port: u16,

    /// Keep the cluster in this directory [default: a temporary one, removed at the end]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Number of tasks of job `default`, which lives on the client ports [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    tasks: Option<u32>,

    #[command(flatten)]
    job: JobFlags,

    /// Networks that the nodes also connect to when a client names an address there; see `tripod server --help`
    #[arg(long, value_name = "NETWORK,...")]
    dial_allow: Option<Allow>,

    /// How fast a dead leader is replaced
    #[arg(long, value_enum, value_name = "PACE", default_value_t)]
    timing: Pace,

    /// Start nodes again that ended
    #[arg(long)]
    restart: bool,

    /// Print the nodes' logs here instead of writing them to DIR/node-N/log
    #[arg(long)]
    verbose: bool,

    /// Have the nodes behave as builds that support no feature level above this one; for tests of upgrades
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u32).range(1..))]
    feature_level_max: Option<u32>,

    /// End gracefully when standard input ends, that is, when the process that started this one does
    #[arg(long)]
    exit_with_parent: bool,
}

/// Runs the cluster until it is told to stop.
pub(crate) async fn run(args: DevArgs, global: &Global) -> Result<(), Failure> {
    dev::run(dev::Config {
        plan: Plan::new(args.nodes, args.port)?,
        data: args.data,
        tasks: args.job.tasks(args.tasks)?,
        job: args.job,
        timing: args.timing,
        dial_allow: args.dial_allow,
        restart: args.restart,
        verbose: args.verbose,
        feature_level_max: args.feature_level_max,
        exit_with_parent: args.exit_with_parent,
        format: global.format(),
    })
    .await
}
