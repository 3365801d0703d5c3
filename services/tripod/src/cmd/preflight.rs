//! `tripod preflight`: whether this machine is fit for a node, before one is started.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tripod_proto::code::Code;

use crate::args::host_port::host_port;
use crate::args::initial::InitialMembers;
use crate::args::port_range::PortRange;
use crate::args::tls_flags::TlsFlags;
use crate::args::ui::Ui;
use crate::cli::Global;
use crate::failure::Failure;
use crate::output::{self, Format, Table};
use crate::preflight::{self, Check, Plan, Verdict};

const EXAMPLES: &str = "\
Examples:
  tripod preflight --config /etc/tripod/server.toml     with the settings that the node will have
  tripod preflight --data /var/lib/tripod -o json       the disk alone

Takes the settings of `tripod server` from the same places, and checks what they name: whether the directory can
be written, how fast its disk flushes (for a second), free space, whether the ports are free, the limit of open
files, whether the peers' names resolve and who answers, and the clock against nodes that run. It removes what it
writes. Exit code 1: a check failed; a warning is no failure.";

/// Flags of `preflight`: those of `server` that can be checked beforehand.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PreflightArgs {
    // It has been read by now, see `config_file`.
    /// Read settings that are not given here from this TOML file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// This node's id, one of those in --initial
    #[arg(long, value_name = "ID")]
    node: Option<u64>,

    /// Directory of the log, snapshots and identity
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Where clients connect
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port)]
    client: Option<String>,

    /// Where the other nodes connect
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port)]
    peer: Option<String>,

    /// Where health and status are served over HTTP
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port)]
    http: Option<String>,

    /// Where the page for people is served: `http`, `off`, or an address of its own
    #[arg(long, value_name = "WHERE")]
    ui: Option<Ui>,

    /// The voters of the first start
    #[arg(long, value_name = "ID=HOST:PORT,...")]
    initial: Option<InitialMembers>,

    /// Client addresses of nodes of the cluster that the node is to join
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',', value_parser = host_port)]
    join: Vec<String>,

    /// Ports on which jobs are served
    #[arg(long, value_name = "FIRST-LAST", default_value = "8000-8099")]
    job_ports: PortRange,

    /// Ports on which nodes of MindSpore find their jobs
    #[arg(long, value_name = "FIRST-LAST")]
    mindspore_ports: Option<PortRange>,

    #[command(flatten)]
    tls: TlsFlags,
}

/// What is printed as JSON. Fields may be added, never renamed.
#[derive(Debug, Serialize)]
struct PreflightView<'a> {
    fit: bool,
    failed: usize,
    warnings: usize,
    checks: &'a [Check],
}

pub(crate) async fn run(args: PreflightArgs, global: &Global) -> Result<(), Failure> {
    let checks = preflight::run(&plan(args, global)).await;
    let count = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let (failed, warnings) = (count(Verdict::Fail), count(Verdict::Warn));
    match global.format() {
        Format::Json => {
            output::json(&PreflightView { fit: failed == 0, failed, warnings, checks: &checks })?;
        }
        Format::Table => output::line(&render(&checks))?,
    }
    if failed == 0 {
        return Ok(());
    }
    let names = checks.iter().filter(|check| check.verdict == Verdict::Fail).map(|check| check.check);
    let names = names.collect::<Vec<_>>().join(", ");
    let told = format!("{failed} of {} checks failed: {names}; do what their lines say", checks.len());
    Err(Failure::new(Code::PreflightFailed, told))
}

fn plan(args: PreflightArgs, global: &Global) -> Plan {
    Plan {
        data: args.data,
        node: args.node,
        job_ports: args.client.is_some().then_some(args.job_ports),
        mindspore_ports: args.mindspore_ports,
        client: args.client,
        peer: args.peer,
        http: args.http,
        ui: args.ui,
        initial: args.initial,
        join: args.join,
        tls: args.tls,
        endpoints: global.endpoints.clone(),
    }
}

fn render(checks: &[Check]) -> String {
    let mut table = Table::new(&["CHECK", "RESULT", "FOUND"]);
    for check in checks {
        let result = match check.verdict {
            Verdict::Ok => "ok",
            Verdict::Warn => "warn",
            Verdict::Fail => "FAIL",
        };
        let next = check.next.as_ref().map_or_else(String::new, |next| format!("; {next}"));
        table.row(vec![check.check.to_owned(), result.to_owned(), format!("{}{next}", check.found)]);
    }
    table.render()
}
