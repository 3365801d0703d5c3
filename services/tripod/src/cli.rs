//! The command line, with its help.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::args::seconds::Seconds;
use crate::cmd;
use crate::logging::{self, LogFormat};
use crate::output::Format;

const EXAMPLES: &str = "\
Examples:
  tripod dev --tasks 3                    three nodes on this machine, for a job of three tasks
  tripod status                           who leads, who is there
  tripod job create train --tasks 8       a job with its own port on every node
  tripod run --job t --tasks 3 --task-id 0 -- python train.py
                                          a program as one task of a job
  tripod objstore & tripod worker         what executes tasks of drivers in Python or Rust
  tripod ray status                       workers, object stores, queues
  tripod mindspore nodes --job fl         who takes part in a MindSpore cluster, and with which rank
  tripod mars graph g1 --session s        how far a graph of tensors is, and why it failed
  tripod kv put greeting hello            write a key of job `default`
  tripod kv get greeting                  read it back, through any node

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no node could be reached, or none leads.
Errors begin with a code: `tripod explain T3101` tells what it means, what causes it and what to do.";

/// A coordinator for distributed ML jobs without a single point of failure.
#[derive(Debug, Parser)]
#[command(name = "tripod", version, after_help = format!("{EXAMPLES}\n{}", logging::HELP))]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags that every command understands. They stand behind a command's own in its help.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Client addresses of the nodes, tried in this order
    #[arg(
        long,
        global = true,
        env = "TRIPOD_ENDPOINTS",
        value_name = "HOST:PORT,...",
        value_delimiter = ',',
        default_value = "127.0.0.1:7700,127.0.0.1:7701,127.0.0.1:7702"
    )]
    pub(crate) endpoints: Vec<String>,

    // Not by clap, for which a variable that is empty is a directory without a name.
    /// Directory of a certificate, its key and the nodes' roots, for clusters that use TLS: tls.crt, tls.key, ca.crt
    /// [env: TRIPOD_TLS_DIR]
    #[arg(long, global = true, value_name = "DIR")]
    tls_dir: Option<PathBuf>,

    /// File of a token by which this command says whose it is, for its user only; shown to nodes over TLS, so --tls-dir is
    /// needed, too, where ca.crt is enough then (`tripod auth --help`)
    #[arg(long, global = true, env = "TRIPOD_TOKEN_FILE", value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// How data is printed
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Table)]
    pub(crate) output: Format,

    /// The same as `-o json`
    #[arg(long, global = true)]
    json: bool,

    /// How long a call may take, all attempts together
    #[arg(long, global = true, value_name = "SECONDS", default_value = "10")]
    pub(crate) timeout: Seconds,

    /// How a line of the log looks, which commands that ask a cluster write only if TRIPOD_LOG says so
    #[arg(
        long,
        global = true,
        env = "TRIPOD_LOG_FORMAT",
        value_enum,
        value_name = "FORMAT",
        default_value_t = LogFormat::Text
    )]
    pub(crate) log_format: LogFormat,
}

impl Global {
    /// How data is printed, whichever way it was asked for.
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { self.output }
    }

    /// The directory of the certificate that this process shows, if it has one.
    pub(crate) fn tls_dir(&self) -> Option<PathBuf> {
        let variable = || std::env::var_os("TRIPOD_TLS_DIR").filter(|value| !value.is_empty());
        self.tls_dir.clone().or_else(|| variable().map(PathBuf::from))
    }

    /// A client of the cluster that the flags name.
    pub(crate) fn client(&self) -> Result<tripod_client::Client, tripod_client::Error> {
        self.client_of(&self.endpoints)
    }

    /// A client of the cluster with these nodes.
    pub(crate) fn client_of(&self, nodes: &[String]) -> Result<tripod_client::Client, tripod_client::Error> {
        tripod_client::Client::new(&tripod_client::Config {
            endpoints: nodes.to_vec(),
            timeout: self.timeout.duration(),
        })
    }

    /// The nodes that a command's own flag names, else those that everybody is told.
    pub(crate) fn nodes_or(&self, named: Vec<String>) -> Vec<String> {
        if named.is_empty() { self.endpoints.clone() } else { named }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a whole cluster on this machine, each node a process of its own
    Dev(cmd::dev::DevArgs),
    /// Run one node
    Server(Box<cmd::server::ServerArgs>),
    /// Run a proxy beside the clients of this machine, so that they do not notice when a node fails
    Agent(Box<cmd::agent::AgentArgs>),
    /// Run a program as one task of a job, with an agent of its own
    Run(Box<cmd::run::RunArgs>),
    /// Show the cluster: who leads, who is there, how far everyone is
    Status(cmd::status::StatusArgs),
    /// Show who is missing in a job, since when and why, and whether the cluster is the cause
    Diagnose(cmd::diagnose::DiagnoseArgs),
    /// Create, list, show and delete jobs
    #[command(subcommand)]
    Job(cmd::job::JobCommand),
    /// Show what happened to all jobs and to the cluster, such as around a moment
    Events(cmd::events::EventsArgs),
    /// Read and write keys of a job
    #[command(subcommand)]
    Kv(cmd::kv::KvCommand),
    /// Send a node's clients and leadership to others for a while
    #[command(subcommand)]
    Node(cmd::node::NodeCommand),
    /// Move leadership
    #[command(subcommand)]
    Leader(cmd::leader::LeaderCommand),
    /// Show, add, promote, demote, remove and replace members
    #[command(subcommand)]
    Member(cmd::member::MemberCommand),
    /// Show the feature level, and pin it to go back to an older build
    #[command(subcommand)]
    Level(cmd::level::LevelCommand),
    /// Save the whole state, verify what was saved, and restore it to a new cluster
    #[command(subcommand)]
    Snapshot(cmd::snapshot::SnapshotCommand),
    /// Keep the objects of a machine's workers and drivers
    Objstore(cmd::objstore::ObjStoreArgs),
    /// Execute tasks of a job
    Worker(cmd::worker::WorkerArgs),
    /// Look at a job's scheduler of tasks and objects
    #[command(subcommand)]
    Ray(cmd::ray::RayCommand),
    /// Look at a job's MindSpore clusters, and scale the servers of one
    #[command(subcommand)]
    Mindspore(cmd::mindspore::MindsporeCommand),
    /// Look at the sessions, graphs and chunks of Mars of a job, and stop a graph
    #[command(subcommand)]
    Mars(cmd::mars::MarsCommand),
    /// Look at the data directory of a stopped node, without changing it
    Doctor(cmd::doctor::DoctorArgs),
    /// Mend the data directory of a stopped node: an absurd vote, or an entry that no build can read
    #[command(subcommand)]
    Repair(cmd::repair::RepairCommand),
    /// Make a backup of what a stopped node holds, when the cluster has lost its quorum for good
    Recover(cmd::recover::RecoverArgs),
    /// Explain the settings of a node, and check a file of them
    #[command(subcommand)]
    Config(cmd::config::ConfigCommand),
    /// Make certificates for a cluster that uses TLS, and look at them
    #[command(subcommand)]
    Pki(cmd::pki::PkiCommand),
    /// Make, list and revoke tokens, for callers without a certificate
    #[command(subcommand)]
    Auth(cmd::auth::AuthCommand),
    /// Read and verify the audit log of a node
    #[command(subcommand)]
    Audit(cmd::audit::AuditCommand),
    /// Look whether this machine is fit for a node, before one is started
    Preflight(Box<cmd::preflight::PreflightArgs>),
    /// List the metrics that a node exports
    #[command(subcommand)]
    Metrics(cmd::metrics::MetricsCommand),
    /// Show what an error code means, and what to do
    Explain(cmd::explain::ExplainArgs),
    /// Print a script that lets a shell complete commands and flags
    Completion {
        /// The shell
        shell: cmd::completion::Shell,
    },
    /// Write a manual page for every command
    Man {
        /// The directory to write them to, which is made if it is missing
        dir: PathBuf,
    },
    /// Show the version of this program
    Version,
    /// Measure a running cluster
    #[command(subcommand)]
    Bench(tripod_load::cli::BenchArgs),
}

impl Command {
    /// Whether this process stays, and its log tells what it goes through. (`run` leaves the terminal to
    /// its program.)
    pub(crate) fn is_a_service(&self) -> bool {
        matches!(self, Self::Dev(_) | Self::Server(_) | Self::Agent(_) | Self::Objstore(_) | Self::Worker(_))
    }

    /// Whether whatever it makes, processes included, is for its user only. (What the program of `run` makes is its own
    /// affair; manual pages are for everybody.)
    pub(crate) fn keeps_what_it_writes_private(&self) -> bool {
        self.is_a_service()
            || matches!(
                self,
                Self::Snapshot(_)
                    | Self::Recover(_)
                    | Self::Repair(_)
                    | Self::Doctor(_)
                    | Self::Pki(_)
                    | Self::Auth(_)
                    | Self::Preflight(_)
            )
    }

    /// Whether it makes calls of the cluster that `--endpoints` names, and ends. (`status` explains itself what it finds.)
    pub(crate) fn asks_the_cluster(&self) -> bool {
        if let Self::Auth(command) = self {
            return command.asks_the_cluster();
        }
        matches!(
            self,
            Self::Diagnose(_)
                | Self::Job(_)
                | Self::Events(_)
                | Self::Kv(_)
                | Self::Node(_)
                | Self::Leader(_)
                | Self::Member(_)
                | Self::Level(_)
                | Self::Snapshot(_)
                | Self::Ray(_)
                | Self::Mindspore(_)
                | Self::Mars(_)
        )
    }

    /// Whether its failure is for the program that asked for data. That of a service stands behind its log, for people,
    /// and `run` leaves the terminal to its program.
    pub(crate) fn fails_as_data(&self) -> bool {
        !self.is_a_service() && !matches!(self, Self::Run(_))
    }

    /// Whether its log tells what it ends with, since something collects it and starts the process again. (In front of
    /// `dev` sits whoever reads the error itself.)
    pub(crate) fn logs_its_end(&self) -> bool {
        matches!(self, Self::Server(_) | Self::Agent(_) | Self::Objstore(_) | Self::Worker(_))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn n30_a_commands_own_flags_stand_before_the_global_ones() {
        let mut cli = Cli::command();
        cli.build();
        let mut stack = vec![&mut cli];
        let mut looked = 0;
        while let Some(command) = stack.pop() {
            let help = command.render_long_help().to_string();
            let (own, global) = help.split_once("\nGlobal options:\n").expect("a section for them");
            for flag in ["--endpoints <", "-o, --output <", "--json", "--timeout <", "--log-format <"] {
                let lists = |text: &str| text.lines().any(|line| line.trim_start().starts_with(flag));
                assert!(lists(global) && !lists(own), "{flag} in {help}");
            }
            looked += 1;
            stack.extend(command.get_subcommands_mut().filter(|below| below.get_name() != "help"));
        }
        assert!(looked > 50, "{looked}");
    }

    #[test]
    fn json_can_be_asked_for_in_two_ways() {
        let format = |line: &[&str]| Cli::try_parse_from(line).expect("legal").global.format();
        assert_eq!(format(&["tripod", "status"]), Format::Table);
        assert_eq!(format(&["tripod", "status", "--json"]), Format::Json);
        assert_eq!(format(&["tripod", "job", "list", "-o", "json"]), Format::Json);
    }

    #[test]
    fn endpoints_are_a_list() {
        let cli = Cli::try_parse_from(["tripod", "status", "--endpoints", "a:1,b:2"]).expect("legal");
        assert_eq!(cli.global.endpoints, ["a:1", "b:2"]);
    }
}
