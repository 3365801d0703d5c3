//! `tripod worker`: executes tasks.

use clap::Args;
use tripod_tls::Mode;
use tripod_worker::{Config, Worker, demo};

use crate::args::tls_flags;
use crate::cli::Global;
use crate::failure::Failure;
use crate::node::{DEFAULT_JOB, Stop};
use crate::plain_text::{self, Names, PlainPort};

const EXAMPLES: &str = "\
A worker of this program has functions for trying a cluster out (`tripod.noop`, `tripod.add`,
`tripod.fibonacci`, ...). Functions of yours are executed by workers in Rust (crate tripod-worker) or in
Python (`python -m tripod_ray.worker`). Start an object store first: a worker ends if its machine has none.

Examples:
  tripod objstore &                       first, an object store on the same machine
  tripod worker --slots 4
  tripod worker --host 10.0.0.5 --insecure    as other machines reach this one";

/// Flags of `worker`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WorkerArgs {
    /// The job whose tasks are executed
    #[arg(long, value_name = "NAME", default_value = DEFAULT_JOB)]
    job: String,

    /// This machine's IP address, as others reach it
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    host: String,

    /// The object store to use [default: the one of this machine with the fewest workers]
    #[arg(long, value_name = "HOST:PORT", default_value = "", hide_default_value = true)]
    store: String,

    /// How many short tasks may wait here; one at a time runs
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1024))]
    slots: u32,

    /// What the port takes: off (plain text), permissive (TLS, and plain text as with off) or strict (TLS, from whom the
    /// table of docs/security/who-may-call-what.md names; needs --tls-dir). Others of the job, and the nodes with
    /// --worker-tls, must do the same
    #[arg(long, value_name = "MODE", default_value_t)]
    port_tls: Mode,

    /// Serve other machines in plain text: whoever reaches --host may have code executed here [env: TRIPOD_INSECURE=true]
    #[arg(long)]
    insecure: bool,

    /// End gracefully when standard input ends, that is, when the process that started this one does
    #[arg(long)]
    exit_with_parent: bool,
}

/// Executes tasks until it is told to stop.
pub(crate) async fn run(args: WorkerArgs, global: &Global) -> Result<(), Failure> {
    if args.port_tls != Mode::Strict && !plain_text::is_asked_for(args.insecure) {
        let host = PlainPort::new("--host", args.host.clone());
        plain_text::refuse(
            vec![host],
            Names::LookedUp,
            "leave out --host, or add --port-tls strict, or --insecure",
        )?;
    }
    tls_flags::protect_port(args.port_tls, global.tls_dir().as_deref())?;
    let mut stop = Stop::listen(args.exit_with_parent)?;
    let config =
        Config { endpoints: global.endpoints.clone(), job: args.job, host: args.host, store: args.store };
    let worker = demo::add_to(Worker::new(config).slots(args.slots));
    let stopped = async move {
        let reason = stop.wait().await;
        tracing::info!(reason, "worker was told to stop");
    };
    Ok(worker.run(stopped).await?)
}
