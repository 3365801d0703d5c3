//! `tripod objstore`: the object store of a machine.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;

use clap::Args;
use serde::Serialize;
use tripod_dial::Allow;
use tripod_objstore::{Config, Store};
use tripod_tls::Mode;

use crate::args::seconds::Seconds;
use crate::args::tls_flags;
use crate::cli::Global;
use crate::failure::Failure;
use crate::node::{DEFAULT_JOB, Stop};
use crate::open_files;
use crate::output::{self, Format};
use crate::plain_text::{self, Names, PlainPort};

const EXAMPLES: &str = "\
One store a machine keeps the objects of its workers and drivers in shared memory, and fetches others from
other stores. Memory that is full is made free by writing cold objects to DIRECTORY/spill.

It waits for nodes that do not answer, and for feature level 3 (`tripod level show`).
A store that starts again is a new one: objects that only the old one held are made again by their tasks.

Examples:
  tripod objstore                                     for a cluster on this machine
  tripod objstore --listen 10.0.0.5:7750 --insecure --capacity-mib 65536 --directory /var/lib/tripod-objects

It serves the chunks of Mars' tensors and frames at its address, too, to those that objects are given to
(--order-allow).";

/// Below this, a machine's objects may not be many.
const FILES_GOOD: u64 = 65_536;

/// Flags of `objstore`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ObjStoreArgs {
    /// Where other stores and the nodes reach this one; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// The address that others are told, where it is another one
    #[arg(long, value_name = "HOST:PORT")]
    advertise: Option<String>,

    /// The job whose objects these are
    #[arg(long, value_name = "NAME", default_value = DEFAULT_JOB)]
    job: String,

    /// Memory for objects
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    capacity_mib: u64,

    /// What objects may take on disk that memory has no room for; 0: they are refused instead
    #[arg(long, value_name = "MIB", default_value_t = 16 << 10, value_parser = clap::value_parser!(u64).range(..=1 << 30))]
    spill_mib: u64,

    /// Where mutable chunks of tensors are kept. They outlive the store, whose address must then stay the same [default:
    /// DIRECTORY/mutable, and nowhere with --spill-mib 0]
    #[arg(long, value_name = "DIR")]
    mutable_dir: Option<PathBuf>,

    /// What is written to mutable chunks, in memory and about as much on disk
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    mutable_mib: u64,

    /// When an object cannot come here, because the store that has it lives and is not reached or because there is no room,
    /// those who wait for it are told so after this long
    #[arg(long, value_name = "SECONDS", default_value = "180")]
    give_up_after: Seconds,

    /// Networks from which orders are taken and to which objects are given, beside the nodes and stores of the cluster:
    /// 10.0.0.0/8,fd00::/8, or `any` [default: none but processes of this machine]
    #[arg(long, value_name = "NETWORK,...")]
    order_allow: Option<Allow>,

    /// Where the socket for processes of this machine and the objects on disk go [default: tripod-objstore-UID in
    /// the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,

    /// What the port takes: off (plain text), permissive (TLS, and plain text as with off) or strict (TLS, from whom the
    /// table of docs/security/who-may-call-what.md names; needs --tls-dir). Others of the job, and the nodes with
    /// --worker-tls, must do the same
    #[arg(long, value_name = "MODE", default_value_t)]
    port_tls: Mode,

    /// Serve other machines in plain text: whoever reaches --listen is judged by its address alone (--order-allow)
    /// [env: TRIPOD_INSECURE=true]
    #[arg(long)]
    insecure: bool,

    /// End gracefully when standard input ends, that is, when the process that started this one does
    #[arg(long)]
    exit_with_parent: bool,
}

/// What a store prints when it is registered. A contract: fields may be added, never renamed.
#[derive(Debug, Serialize)]
struct ServesLine<'a> {
    store: u64,
    address: &'a str,
    socket: String,
}

/// Keeps objects until it is told to stop.
pub(crate) async fn run(args: ObjStoreArgs, global: &Global) -> Result<(), Failure> {
    if args.port_tls != Mode::Strict && !plain_text::is_asked_for(args.insecure) {
        let listen = PlainPort::new("--listen", args.listen.to_string());
        plain_text::refuse(
            vec![listen],
            Names::LookedUp,
            "listen on 127.0.0.1, or add --port-tls strict, or --insecure",
        )?;
    }
    tls_flags::protect_port(args.port_tls, global.tls_dir().as_deref())?;
    let mut stop = Stop::listen(args.exit_with_parent)?;
    raise_open_files();
    let store = Store::start(config(args, global)?).await?;
    let mut stopped = pin!(async {
        let reason = stop.wait().await;
        tracing::info!(reason, "object store was told to stop");
    });
    tokio::select! {
        told = tell(&store, global.format()) => told?,
        () = &mut stopped => return Ok(store.stop().await?),
    }
    Ok(store.run_until(stopped).await?)
}

/// Every object in shared memory is an open file.
fn raise_open_files() {
    let files = open_files::raise();
    if files >= FILES_GOOD {
        tracing::debug!(files, "open files");
    } else {
        tracing::warn!(
            files,
            "few objects fit into this store, as each is an open file; next: `ulimit -Hn {FILES_GOOD}`, or LimitNOFILE= in the unit of systemd"
        );
    }
}

/// Prints where the store is, once it is registered. Nothing if it ends before: its end tells why.
async fn tell(store: &Store, format: Format) -> Result<(), Failure> {
    let mut registered = store.registered();
    let id = registered.wait_for(Option::is_some).await.ok().and_then(|id| *id);
    let Some(id) = id else { return Ok(()) };
    let (address, socket) = (store.address(), store.socket().display().to_string());
    match format {
        Format::Json => output::json(&ServesLine { store: id.0, address, socket })?,
        Format::Table => output::line(&format!("object store {id} serves at {address}, here at {socket}"))?,
    }
    Ok(())
}

fn config(args: ObjStoreArgs, global: &Global) -> Result<Config, Failure> {
    let own = || std::env::temp_dir().join(format!("tripod-objstore-{}", nix::unistd::geteuid()));
    let directory = args.directory.unwrap_or_else(own);
    let mut config = Config::new(global.endpoints.clone(), directory.clone());
    config.listen = args.listen;
    config.advertise = args.advertise;
    config.job = Some(args.job);
    config.order_allow = args.order_allow.unwrap_or_default();
    config.capacity_bytes = args.capacity_mib << 20;
    config.give_up_after(args.give_up_after.duration());
    config.mutable_bytes_max = args.mutable_mib << 20;
    let below = || (args.spill_mib > 0).then(|| directory.join("mutable"));
    config.mutable_directory = args.mutable_dir.or_else(below);
    if args.spill_mib > 0 {
        config.spill_directory = Some(directory.join("spill"));
        config.spill_bytes_max = args.spill_mib << 20;
    }
    Ok(config)
}
