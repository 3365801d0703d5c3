//! `tripod server`: one production node.

mod plan;

use std::path::PathBuf;

use clap::Args;
use tripod_dial::Allow;
use tripod_proto::code::Code;

use crate::args::audit_flags::AuditFlags;
use crate::args::backup_flags::BackupFlags;
use crate::args::host_port::host_port;
use crate::args::initial::InitialMembers;
use crate::args::job_flags::JobFlags;
use crate::args::memory_flags::MemoryFlags;
use crate::args::port_range::PortRange;
use crate::args::state_flags::StateFlags;
use crate::args::timing::Pace;
use crate::args::tls_flags::{NodePorts, TlsFlags};
use crate::args::ui::Ui;
use crate::failure::Failure;
use crate::node::joining::{self, Joined};
use crate::node::{self, SNAPSHOT_EVERY_ENTRIES, Stop};
use crate::plain_text::Names;

use plan::{config, level_max, reached_at};

const EXAMPLES: &str = "\
Example, the first of three nodes (the others differ in --node and their addresses):
  tripod server --node 1 --data /var/lib/tripod \\
      --client 10.0.0.1:7700 --peer 10.0.0.1:7800 --http 10.0.0.1:7900 \\
      --initial 1=10.0.0.1:7800,2=10.0.0.2:7800,3=10.0.0.3:7800 --tasks 8 --tls-dir /etc/tripod/tls

A node that joins a running cluster, any of whose nodes it names:
  tripod server --join 10.0.0.1:7700 --data /var/lib/tripod \\
      --client 10.0.0.4:7700 --peer 10.0.0.4:7800 --http 10.0.0.4:7900 --tls-dir /etc/tripod/tls

The same from a file, whose keys are the names of these flags (docs/server.toml explains each of them):
  tripod server --config /etc/tripod/server.toml

Every node is given the same --initial and the same --job-ports; one that joins takes the latter from the
cluster. A node that was started before keeps its identity in --data. SIGTERM hands over leadership, sends
waiting calls on to other nodes and ends this one.

A flag wins over the environment (TRIPOD_HEARTBEAT_TIMEOUT for --heartbeat-timeout, TRIPOD_CONFIG for the
file), that over the same key in the file, and that over the default. `tripod config explain` tells what is set
where; `tripod preflight` with the same flags looks whether the machine is fit. TRIPOD_LOG says what is logged.";

/// Flags of `server`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServerArgs {
    // It has been read by now, see `config_file`; what remains is to name it in errors.
    /// Read flags that are not given here from this TOML file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// This node's id, from 1, one of those in --initial; a node that joins is given its id
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u64).range(1..))]
    node: Option<u64>,

    /// Directory of the log, snapshots and identity; made if it is missing
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    /// Where clients connect
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port)]
    client: String,

    /// Where the other nodes connect
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port)]
    peer: String,

    /// Where health and status are served over HTTP
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port)]
    http: String,

    /// Where the page for people is served: `http` (on the http port, at /ui/), `off`, or an address of its own [default: http]
    #[arg(long, value_name = "WHERE")]
    ui: Option<Ui>,

    /// The voters of the first start, the same list on every node. One that starts without data asks these, and nobody
    /// else, whether it had any: in a cluster whose members were replaced since, an empty node takes --join instead
    #[arg(long, value_name = "ID=HOST:PORT,...")]
    initial: Option<InitialMembers>,

    /// Join a running cluster, some of whose nodes serve clients there: get an id and everything that the
    /// others hold, without a vote before `tripod member promote`
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',', value_parser = host_port)]
    join: Vec<String>,

    /// Name of the cluster, the same on every node [default: derived from --initial]
    #[arg(long, value_name = "NAME")]
    cluster_id: Option<String>,

    /// The host that clients are told to connect to [default: that of --client]
    #[arg(long, value_name = "HOST")]
    advertise: Option<String>,

    /// Ports on which jobs are served, the same range on every production node; one that joins takes that of the members
    /// on other hosts [default: 8000-8099]
    #[arg(long, value_name = "FIRST-LAST")]
    job_ports: Option<PortRange>,

    /// Ports on which nodes of MindSpore find their jobs, each job's as far from the first as its job port is from the first
    /// of those; the same range on every production node [default: none, and MindSpore is not served]
    #[arg(long, value_name = "FIRST-LAST")]
    mindspore_ports: Option<PortRange>,

    /// Also serve clients on this unix socket
    #[arg(long, value_name = "PATH")]
    client_socket: Option<PathBuf>,

    /// Users whose processes the unix socket serves, by their numbers, besides the node's own user and root
    #[arg(long, value_name = "UID,...", value_delimiter = ',')]
    socket_uids: Vec<u32>,

    /// Connections of clients at a time, on all ports together [default: as many as open files allow, less 256 for the
    /// disk and the other nodes, and less the job ports; the limit of open files is raised as far as the system lets it]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    client_connections: Option<u32>,

    /// Of these, connections at one address [default: three quarters]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    client_connections_per_address: Option<u32>,

    /// Networks that this node also connects to when a client names an address there as that of its worker, object store or
    /// listening task: 10.0.0.0/8,fd00::/8, or `any`; the same on every node [default: only the address that the client
    /// comes from, and loopback for clients on loopback]
    #[arg(long, value_name = "NETWORK,...")]
    dial_allow: Option<Allow>,

    #[command(flatten)]
    tls: TlsFlags,

    #[command(flatten)]
    audit: AuditFlags,

    #[command(flatten)]
    memory: MemoryFlags,

    #[command(flatten)]
    state: StateFlags,

    /// Number of tasks of job `default`, which lives on the client port [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    tasks: Option<u32>,

    #[command(flatten)]
    job: JobFlags,

    /// How fast a dead leader is replaced, the same on every node; sets the next three flags
    #[arg(long, value_enum, value_name = "PACE", default_value_t)]
    timing: Pace,

    /// How often the leader tells the others that it lives [default: 100; with --timing fast: 50]
    #[arg(long, value_name = "MS")]
    raft_heartbeat_ms: Option<u64>,

    /// A node that has not heard the leader for a random time between this ... [default: 300; fast: 150]
    #[arg(long, value_name = "MS")]
    election_min_ms: Option<u64>,

    /// ... and this stands for election [default: 600; fast: 300]
    #[arg(long, value_name = "MS")]
    election_max_ms: Option<u64>,

    /// How many changes of the state lie between two snapshots; a small number is for tests and for small
    /// disks, as the log is kept for that long, and costs a copy of the whole state each time. After 64 MiB
    /// of changes there is one in any case
    #[arg(long, value_name = "N", default_value_t = SNAPSHOT_EVERY_ENTRIES,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    snapshot_every_entries: u64,

    #[command(flatten)]
    backup: BackupFlags,

    /// Behave as a build that supports no feature level above this one; for tests of upgrades
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u32).range(1..))]
    feature_level_max: Option<u32>,

    /// End gracefully when standard input ends, that is, when the process that started this one does
    #[arg(long)]
    exit_with_parent: bool,
}

/// Runs the node until it is told to stop.
pub(crate) async fn run(args: ServerArgs) -> Result<(), Failure> {
    let file = args.config.clone();
    let ran = async {
        // Before the node asks for its id, which lasts until somebody answers.
        let mut stop = Stop::listen(args.exit_with_parent)?;
        args.tls.check_ports(&ports(&args), Names::LookedUp)?;
        let tls = args.tls.read()?;
        if let Some(tls) = &tls {
            tls.protect_this_process();
            // From here on SIGHUP does not end the process, also while it waits for an id or reads its log.
            tokio::spawn(tls.tls.clone().keep_current());
        }
        let joined = tokio::select! {
            // What is wrong with the flags is told also where nobody reads on.
            biased;
            joined = joined(&args) => joined?,
            reason = stop.wait() => {
                tracing::info!(reason, "this node ends before it has joined");
                return Ok(());
            }
        };
        node::run(node::Config { tls, ..config(args, joined)? }, stop).await
    };
    ran.await.map_err(|failure| match file {
        Some(file) => failure.in_file(&file),
        None => failure,
    })
}

/// Checks what a node would be started with, as far as that can be done without its data and the cluster.
///
/// # Errors
/// The flags contradict each other.
pub(crate) fn check(args: ServerArgs) -> Result<(), Failure> {
    // Of another machine, perhaps, where names mean something else.
    args.tls.check_ports(&ports(&args), Names::LeftAlone)?;
    match (&args.initial, &args.join[..]) {
        (Some(_), []) => config(args, None).map(|_| ()),
        (Some(_), _) => Err(both_ways()),
        // Who the node is stands in its data, or is told by the cluster.
        (None, _) => reached_at(&args).map(|_| ()),
    }
}

/// Where the node listens.
fn ports(args: &ServerArgs) -> NodePorts<'_> {
    NodePorts {
        client: Some(&args.client),
        peer: Some(&args.peer),
        http: Some(&args.http),
        ui: args.ui.as_ref().and_then(Ui::own_address),
        mindspore: args.mindspore_ports.is_some(),
    }
}

/// Who this node is, if it is not one of the first.
async fn joined(args: &ServerArgs) -> Result<Option<Joined>, Failure> {
    match (&args.initial, &args.join[..]) {
        (Some(_), []) => Ok(None),
        (Some(_), _) => Err(both_ways()),
        (None, []) => joining::known(&args.data),
        (None, members) => {
            let place = (reached_at(args)?, level_max(args.feature_level_max));
            joining::owner(&args.data, members, place).await.map(Some)
        }
    }
}

fn both_ways() -> Failure {
    Failure::new(
        Code::FlagsConflict,
        "--initial is for the first start of a cluster, --join for a node that comes later; give one of them",
    )
}
