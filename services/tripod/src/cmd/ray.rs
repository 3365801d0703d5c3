//! `tripod ray`: the scheduler of a job.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::{Args, Subcommand};
use tripod_client::{Scheduler, wire};

use crate::cli::Global;
use crate::failure::Failure;
use crate::node::DEFAULT_JOB;
use crate::output::{self, Format};
use crate::view::ray::graph;
use crate::view::ray::status::RayStatusView;
use crate::view::ray::tasks::{self, RayTaskView};

const EXAMPLES: &str = "\
A job has a scheduler from the first object store or worker on that registers (`tripod objstore`, `tripod worker`).
Drivers in Python or Rust submit tasks to it, workers execute them, and object stores hold what comes of them.
These commands only look; what they show, and what to do about it, is in docs/runbooks/tasks.md.

Examples:
  tripod ray status                        workers, stores, queues, objects
  tripod ray tasks --state failed          what failed, and how its attempts ended
  tripod ray graph --dot | dot -Tsvg > graph.svg";

/// As many tasks as a node lists.
const TASKS_MAX: u32 = 10_000;

/// What to look at.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum RayCommand {
    /// Show workers, object stores, queues, objects and bytes
    Status {
        #[command(flatten)]
        of: JobArg,
    },
    /// Show tasks, the newest first
    Tasks(TasksArgs),
    /// Show the computation graph: which task made what out of what
    Graph {
        /// Print it for Graphviz: `| dot -Tsvg > graph.svg`; tasks that failed are red
        #[arg(long)]
        dot: bool,
        #[command(flatten)]
        of: JobArg,
    },
}

/// Which job.
#[derive(Debug, Args)]
pub(crate) struct JobArg {
    /// The job whose scheduler it is
    #[arg(long, value_name = "NAME", default_value = DEFAULT_JOB)]
    job: String,
}

/// Flags of `ray tasks`.
#[derive(Debug, Args)]
pub(crate) struct TasksArgs {
    /// Only those in this state
    #[arg(
        long,
        value_parser = ["waiting", "queued", "running", "reported", "done", "failed", "cancelled"],
        hide_possible_values = false
    )]
    state: Option<String>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    of: JobArg,
}

pub(crate) async fn run(command: RayCommand, global: &Global) -> Result<(), Failure> {
    let scheduler = |of: &JobArg| -> Result<Scheduler, Failure> {
        // It only looks, so it needs no session of its own.
        Ok(Scheduler::new(global.client()?, &of.job, 0, Duration::ZERO))
    };
    match command {
        RayCommand::Status { of } => status(&scheduler(&of)?, global.format()).await,
        RayCommand::Tasks(args) => list(&scheduler(&args.of)?, args, global.format()).await,
        RayCommand::Graph { dot, of } => show_graph(&scheduler(&of)?, dot, global.format()).await,
    }
}

async fn status(scheduler: &Scheduler, format: Format) -> Result<(), Failure> {
    let view = RayStatusView::of(scheduler.status().await?);
    match format {
        Format::Json => output::json(&view)?,
        Format::Table => output::line(&view.render())?,
    }
    Ok(())
}

async fn list(scheduler: &Scheduler, args: TasksArgs, format: Format) -> Result<(), Failure> {
    let ask = wire::RayTasksRequest { limit: args.limit, state: args.state.unwrap_or_default() };
    let found: Vec<_> = scheduler.tasks(ask).await?.tasks.into_iter().map(RayTaskView::of).collect();
    match format {
        Format::Json => output::json(&found)?,
        Format::Table => output::line(&tasks::render(&found))?,
    }
    Ok(())
}

async fn show_graph(scheduler: &Scheduler, dot: bool, format: Format) -> Result<(), Failure> {
    let info = scheduler.info().await?;
    let operations =
        graph::operations(&info.reply.computation_graph.unwrap_or_default(), info.base_operation);
    match format {
        _ if dot => output::line(&graph::dot(&operations, &failed(scheduler).await?))?,
        Format::Json => output::json(&operations)?,
        Format::Table => output::line(&graph::list(&operations))?,
    }
    Ok(())
}

/// The tasks that failed, of the newest.
async fn failed(scheduler: &Scheduler) -> Result<BTreeSet<u64>, Failure> {
    let ask = wire::RayTasksRequest { limit: TASKS_MAX, state: "failed".to_owned() };
    Ok(scheduler.tasks(ask).await?.tasks.into_iter().map(|task| task.operationid).collect())
}
