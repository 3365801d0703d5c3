//! `tripod agent`: a proxy beside the clients of one machine.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tokio::time::timeout;
use tripod_agent::{Agent, AgentConfig, ConnectionLimits, Listen, TaskOrigin, Timing};
use tripod_client::{Client, wire};
use tripod_proto::code::Code;

use crate::args::host_port::host_port;
use crate::args::job_flags::{JobFlags, Poll};
use crate::args::memory_flags::AgentMemoryFlags;
use crate::args::seconds::Seconds;
use crate::cli::Global;
use crate::failure::Failure;
use crate::launch;
use crate::node::Stop;
use crate::open_files;
use crate::operator;
use crate::output::{self, Format};
use crate::view::time;

const EXAMPLES: &str = "\
The agent is the one address that a client knows. It stays when a node goes, holds the client's calls and
sends them to the cluster until they are answered, each exactly once.

Examples:
  tripod agent --listen 127.0.0.1:7790 --cluster 10.0.0.1:7700,10.0.0.2:7700,10.0.0.3:7700 \\
      --job train --tasks 8
  tripod agent --listen unix:/run/tripod/train.sock --job train      the nodes are in TRIPOD_ENDPOINTS

A JAX program of 8 processes, process 0 included, then says
  export JAX_COORDINATOR_BIND_ADDRESS=127.0.0.1:0
  export GRPC_FAIL_FAST=false
  jax.distributed.initialize(\"127.0.0.1:7790\", 8, i)
where i is the number of the process. GRPC_FAIL_FAST=false lets its calls wait while an agent is started
again. Instead of all this, `tripod run` starts an agent for one program, and sets what it needs.

With --mindspore 127.0.0.1:7791 nodes of MindSpore find the job's scheduler there (MS_SCHED_HOST, MS_SCHED_PORT). Every node
of the cluster has --mindspore-ports for it. The agent keeps their connections when a node goes; when it ends itself, they end.

Under a supervisor (systemd: Restart=always, KillSignal=SIGTERM) SIGTERM ends the agent so that no client
is harmed: polls end, what must not be made twice is finished (2 s at most), and every other call is made
again by gRPC at the next agent at the same place. With --poll release they survive even a `kill -9` of the
agent.

Whoever reaches the agent acts for its job. A unix socket serves processes of the agent's own user, of root,
and of those whom --socket-uids names (a directory that they may enter is needed, too). A port serves every
user of this machine, and no other machine unless --allow-remote is given: where users do not trust each
other, take the socket.";

/// Flags of `agent`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AgentArgs {
    /// Where clients find the agent; may be given several times. Port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT|unix:PATH", required_unless_present = "mindspore", value_parser = place)]
    listen: Vec<Listen>,

    /// Where nodes of MindSpore find the agent, as their scheduler. Port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port)]
    mindspore: Option<String>,

    /// Client addresses of the cluster's nodes, in the order of preference [default: --endpoints]
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',', value_parser = host_port)]
    cluster: Vec<String>,

    /// The job of all clients of this agent
    #[arg(long, value_name = "NAME")]
    job: String,

    /// Create the job with this many tasks if there is none of that name; one that exists must have as many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    tasks: Option<u32>,

    #[command(flatten)]
    flags: JobFlags,

    #[command(flatten)]
    memory: AgentMemoryFlags,

    /// How long calls are held, and heartbeats answered, while no node can serve
    #[arg(long, value_name = "SECONDS", default_value = "600")]
    max_outage: Seconds,

    /// Let --listen and --mindspore be addresses that other machines can reach
    #[arg(long)]
    allow_remote: bool,

    /// Users whose processes a unix socket serves, by their numbers, besides the agent's own user and root
    #[arg(long, value_name = "UID,...", value_delimiter = ',')]
    socket_uids: Vec<u32>,

    /// End gracefully when standard input ends, that is, when the process that started this one does
    #[arg(long)]
    exit_with_parent: bool,

    /// Print a line for each process that begins to register, with its incarnation: {"registered":N}
    #[arg(long)]
    print_registrations: bool,

    /// When the parent has ended, tell the job that the processes of this task which have registered have lost their launcher
    #[arg(long, value_name = "TASK", hide = true, requires = "exit_with_parent")]
    report_parents_end: Option<u32>,

    /// A process that has registered by an earlier agent of the same parent
    #[arg(long, value_name = "INCARNATION", hide = true)]
    known_life: Vec<u64>,
}

/// Processes of which it is told that their launcher has ended, the last ones.
const LIVES_MAX: usize = 64;
/// How long the cluster gets to hear of it. By then silence tells it, or the program's own end.
const REPORT_LIMIT: Duration = Duration::from_secs(5);

/// What an agent prints when it listens. A contract: fields may be added, never renamed.
#[derive(Debug, Serialize)]
struct ListensLine<'a> {
    listen: &'a [String],
    job: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mindspore: Option<&'a str>,
}

/// What it prints for each life of a task, if it is to. A contract, too.
#[derive(Debug, Serialize)]
struct RegisteredLine {
    registered: u64,
}

/// Runs the agent until it is told to stop.
pub(crate) async fn run(args: AgentArgs, global: &Global) -> Result<(), Failure> {
    let mut stop = Stop::listen(args.exit_with_parent)?;
    let report = Report::of(&args, global)?;
    let lives_seen = Arc::clone(&report.lives);
    // Each client is one, and a machine may have a thousand of them.
    let files = open_files::raise();
    let job = args.job.clone();
    let prints = args.print_registrations;
    let mut agent = Agent::open(config(args, files, global)?).await?.telling(&origin());
    let listen: Vec<String> = agent.places().iter().map(ToString::to_string).collect();
    let mindspore = agent.mindspore_place();
    match global.format() {
        Format::Json => {
            output::json(&ListensLine { listen: &listen, job: &job, mindspore: mindspore.as_deref() })?;
        }
        Format::Table => {
            let of_mindspore = mindspore.map(|place| format!("{place} for MindSpore"));
            let places: Vec<String> = listen.into_iter().chain(of_mindspore).collect();
            output::line(&format!("agent of job `{job}` listens on {}", places.join(", ")))?;
        }
    }
    if let Some(mut lives) = agent.lives() {
        tokio::spawn(async move {
            while let Some(registered) = lives.recv().await {
                note_life(&lives_seen, registered);
                if prints {
                    // If whoever listened is gone, clients are served all the same.
                    let _ = output::json(&RegisteredLine { registered });
                }
            }
        });
    }
    agent
        .run(async move {
            let reason = stop.wait().await;
            tracing::info!(reason, "agent was told to stop");
            if reason == Stop::PARENT_ENDED {
                report.send().await;
            }
        })
        .await?;
    Ok(())
}

/// What an agent says of its clients when its parent was killed: nobody sees any more how they end.
struct Report {
    to: Option<(Client, u32)>,
    job: String,
    lives: Arc<Mutex<Vec<u64>>>,
}

impl Report {
    fn of(args: &AgentArgs, global: &Global) -> Result<Self, Failure> {
        let to = match args.report_parents_end {
            Some(task) => Some((global.client_of(&global.nodes_or(args.cluster.clone()))?, task)),
            None => None,
        };
        let lives = Arc::new(Mutex::new(args.known_life.clone()));
        Ok(Self { to, job: args.job.clone(), lives })
    }

    async fn send(self) {
        let Some((client, task)) = self.to else { return };
        let lives = std::mem::take(&mut *self.lives.lock().unwrap_or_else(PoisonError::into_inner));
        let end = wire::ProcessEnd { at_ms: time::now_ms(), ..Default::default() };
        let telling = launch::tell_lives(client, self.job, task, lives, Some(end));
        if timeout(REPORT_LIMIT, telling).await.is_err() {
            tracing::info!("the cluster did not hear in time that the parent ended");
        }
    }
}

/// Where the clients of this agent come from: it is beside them.
fn origin() -> TaskOrigin {
    TaskOrigin {
        host: operator::host().unwrap_or_default(),
        agent: format!("tripod {}", env!("CARGO_PKG_VERSION")),
        ..TaskOrigin::default()
    }
}

fn note_life(lives: &Mutex<Vec<u64>>, life: u64) {
    let mut lives = lives.lock().unwrap_or_else(PoisonError::into_inner);
    if !lives.contains(&life) {
        let surplus = (lives.len() + 1).saturating_sub(LIVES_MAX);
        lives.drain(..surplus);
        lives.push(life);
    }
}

fn config(args: AgentArgs, files: u64, global: &Global) -> Result<AgentConfig, Failure> {
    let tasks = args.flags.tasks(args.tasks)?;
    if tasks.is_none() && args.flags.describe_a_new_job() {
        return Err(Failure::new(
            Code::FlagsConflict,
            "flags of a job only count when it is created; add --tasks, or leave them out",
        ));
    }
    if args.mindspore.is_some() && global.tls_dir().is_some() {
        let text = "nodes serve MindSpore in plain text only; leave out --mindspore, or --tls-dir and TRIPOD_TLS_DIR";
        return Err(Failure::new(Code::FlagsConflict, text));
    }
    Ok(AgentConfig {
        listen: args.listen,
        mindspore: args.mindspore,
        allow_remote: args.allow_remote,
        socket_uids: args.socket_uids,
        cluster: global.nodes_or(args.cluster),
        job: args.job,
        spec: tasks.map(|tasks| args.flags.to_wire(tasks)).transpose()?,
        // Held polls tell errors at once, and this process is not one that comes and goes.
        poll: match args.flags.poll {
            None | Some(Poll::Hold) => tripod_agent::Poll::Hold,
            Some(Poll::Release) => tripod_agent::Poll::Release,
        },
        memory: args.memory.limits(),
        connections: connections(files),
        timing: Timing { max_outage: args.max_outage.duration(), ..Timing::default() },
    })
}

/// What so many files are enough for. All clients are of this machine, so none of its addresses has a share.
fn connections(files: u64) -> ConnectionLimits {
    let all = ConnectionLimits::of_files(files).all;
    ConnectionLimits { all, at_one_address: all }
}

/// `HOST:PORT` or `unix:PATH`.
fn place(text: &str) -> Result<Listen, String> {
    match text.strip_prefix("unix:") {
        Some("") => Err(format!("`{text}` has no path")),
        Some(path) => Ok(Listen::Unix(path.into())),
        None => host_port(text)
            .map(Listen::Tcp)
            .map_err(|_| format!("`{text}` is neither HOST:PORT nor unix:PATH")),
    }
}
