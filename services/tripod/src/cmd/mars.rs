//! `tripod mars`: sessions, graphs and chunks of a job.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use tripod_client::{Client, Mars, MarsGraphKind, Scheduler};

use crate::cli::Global;
use crate::failure::Failure;
use crate::node::DEFAULT_JOB;
use crate::output::{self, Format};
use crate::view::mars::dot::{self, Drawn};
use crate::view::mars::graph::GraphView;
use crate::view::mars::metas::{self, ChunkMetaView, TileableMetaView};
use crate::view::mars::sessions::{self, SessionView};
use crate::view::mars::state_word;
use crate::view::time;

const EXAMPLES: &str = "\
Clients in Python (tripod_mars) open sessions and submit graphs of tensors and frames. A node cuts each into chunks, and
each chunk is made by a task of the job's scheduler and is one of its objects: `tripod ray status` shows the workers and
object stores, `tripod ray tasks` the tasks.

Examples:
  tripod mars sessions                            who is there, and since when nothing runs
  tripod mars graph g1 --session s                how far a graph is, and why it failed
  tripod mars graph g1 --session s --dot | dot -Tsvg > graph.svg
  tripod mars metas a b --session s               shapes, how tileables are cut, and whether they are there
  tripod mars metas a:0.0 a:0.1 --session s --chunks
                                                  which object stores have chunks
  tripod mars stop g1 --session s                 what runs is told to end, and ended after 5 s";

const DOT_ABOUT: &str = "\
The picture has the chunks of the graph, at most 10,000: grey those that wait, yellow those that run or wait for a worker,
green those that were made, red those that failed. Lines lead from what a chunk is made of; of a chunk that was given to
the scheduler long ago, or not yet, they are not known any more, or not yet.";

/// What to look at, or to stop.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum MarsCommand {
    /// Show sessions: their graphs and chunks, and since when nothing runs
    Sessions {
        #[command(flatten)]
        of: JobArg,
    },
    /// Show how far a graph is, and why it failed
    #[command(after_help = DOT_ABOUT)]
    Graph {
        #[command(flatten)]
        graph: GraphArgs,
        /// Print its chunks for Graphviz: `| dot -Tsvg > graph.svg`
        #[arg(long)]
        dot: bool,
    },
    /// Show what is known of tileables, or of chunks
    Metas(MetasArgs),
    /// Stop a graph; one that has ended stays as it is
    Stop {
        #[command(flatten)]
        graph: GraphArgs,
    },
}

/// Which job.
#[derive(Debug, Args)]
pub(crate) struct JobArg {
    /// The job whose sessions they are
    #[arg(long, value_name = "NAME", default_value = DEFAULT_JOB)]
    job: String,
}

/// Which graph.
#[derive(Debug, Args)]
pub(crate) struct GraphArgs {
    /// Its key
    key: String,
    /// The session that it is in
    #[arg(long, value_name = "ID")]
    session: String,
    /// It was submitted as a graph of chunks, which have keys of their own
    #[arg(long)]
    chunk_graph: bool,
    #[command(flatten)]
    of: JobArg,
}

/// Flags of `mars metas`.
#[derive(Debug, Args)]
pub(crate) struct MetasArgs {
    /// Keys of tileables, or of chunks
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,
    /// The session that they are in
    #[arg(long, value_name = "ID")]
    session: String,
    /// They are keys of chunks, as `a:0.1`
    #[arg(long)]
    chunks: bool,
    #[command(flatten)]
    of: JobArg,
}

impl GraphArgs {
    fn kind(&self) -> MarsGraphKind {
        if self.chunk_graph { MarsGraphKind::Chunk } else { MarsGraphKind::Tileable }
    }
}

pub(crate) async fn run(command: MarsCommand, global: &Global) -> Result<(), Failure> {
    let (client, format) = (global.client()?, global.format());
    match command {
        MarsCommand::Sessions { of } => {
            let listed = client.mars(&of.job).sessions().await?.sessions;
            let views: Vec<SessionView> = listed.into_iter().map(SessionView::of).collect();
            print(format, &views, || sessions::render(&views, time::now_ms()))
        }
        MarsCommand::Graph { graph, dot: true } => draw(&client, &graph).await,
        MarsCommand::Graph { graph, dot: false } => {
            let mars = client.mars(&graph.of.job);
            let info = mars.graph(graph.kind(), &graph.session, &graph.key, SHOWN).await?;
            let view = GraphView::of(&graph.session, &graph.key, info);
            print(format, &view, || view.render())
        }
        MarsCommand::Metas(args) => show_metas(&client.mars(&args.of.job), &args, format).await,
        MarsCommand::Stop { graph } => {
            let mars = client.mars(&graph.of.job);
            let state = state_word(mars.stop(graph.kind(), &graph.session, &graph.key).await?);
            let view = json!({ "session": graph.session, "graph": graph.key, "state": state });
            print(format, &view, || format!("graph {} is {state}", graph.key))
        }
    }
}

/// What is shown of a graph; the states of its chunks are for a picture.
const SHOWN: &[&str] = &[
    "state",
    "progress",
    "start_time",
    "end_time",
    "error",
    "targets",
    "stages",
    "subtask_counts",
    "graph_size",
];

async fn show_metas(mars: &Mars, args: &MetasArgs, format: Format) -> Result<(), Failure> {
    if args.chunks {
        let found = mars.chunk_metas(&args.session, &args.keys).await?;
        let views: Vec<ChunkMetaView> = found.into_iter().map(ChunkMetaView::of).collect();
        return print(format, &views, || metas::render_chunks(&views));
    }
    let found = mars.tileable_metas(&args.session, &args.keys).await?;
    let views: Vec<TileableMetaView> = found.into_iter().map(TileableMetaView::of).collect();
    print(format, &views, || metas::render_tileables(&views))
}

/// Which chunks there are the graph says; what they are made of stands with the tasks that make them.
async fn draw(client: &Client, graph: &GraphArgs) -> Result<(), Failure> {
    let mars = client.mars(&graph.of.job);
    let info = mars.graph(graph.kind(), &graph.session, &graph.key, &["node_states"]).await?;
    // It only looks, so it needs no session of its own.
    let scheduler = Scheduler::new(client.clone(), &graph.of.job, 0, Duration::ZERO);
    let tasks = scheduler.info().await?.reply.computation_graph.unwrap_or_default();
    output::line(&dot::dot(&Drawn::of(info.node_states, &tasks)))?;
    Ok(())
}

fn print(format: Format, view: &impl serde::Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
    match format {
        Format::Json => output::json(view)?,
        Format::Table => output::line(&text())?,
    }
    Ok(())
}
