//! One running node: opens its ports, starts replication, and keeps going until it is told to stop or
//! cannot go on.

mod announce;
mod audit;
mod authority;
mod bootstrap;
mod default_job;
mod dialling;
mod drain;
mod floor;
mod front_ends;
mod job_ports;
pub(crate) mod joining;
mod listen;
mod naming;
mod retry;
mod stop;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tripod_dial::Allow;
use tripod_gate::Mode;
use tripod_gateway::{Bearers, CallGuard, FrontEnds, Gateway, JobBinding, PortKind};
use tripod_identity::{ClusterName, Realm};
use tripod_local::ConnectionLimits;
use tripod_native::JobPorts;
use tripod_port::{Gather, Listener, MemoryLimits, PortResources};
use tripod_proto::code::Code;
use tripod_raft::{Handle, Options, StateLimits, Timing, World};
use tripod_state::identity::Mode as Protection;
use tripod_state::ids::{FeatureLevel, NodeId};
use tripod_state::job;
use tripod_web::{Manner, NodeFigures, Parts, Viewers};

use crate::args::audit_flags::AuditPlan;
use crate::args::initial::InitialMembers;
use crate::args::port_range::PortRange;
use crate::args::tls_flags::NodeTls;
use crate::args::ui::Ui;
use crate::backups;
use crate::failure::Failure;
use crate::logging::number;
pub(crate) use crate::node::announce::is_unspecified;
use crate::node::announce::{Addresses, host_of};
use crate::node::authority::Authority;
use crate::node::front_ends::NodeNews;
pub(crate) use crate::node::stop::Stop;
use crate::open_files;

/// The job on the client port.
pub(crate) const DEFAULT_JOB: &str = "default";
/// A snapshot after this many entries, unless a flag says otherwise: some seconds of full load.
pub(crate) const SNAPSHOT_EVERY_ENTRIES: u64 = 65_536;
/// Entries kept behind a snapshot at most, so that a node that was away for seconds needs no snapshot. Never
/// more than there are between two snapshots: who asks for few wants a short log.
const KEEP_ENTRIES_MAX: u64 = 20_000;
/// The realm of a node without certificates.
const PLAIN_REALM: &str = "plain";
/// How long the ports wait at the end for leadership to be handed over; without a quorum that is in vain.
const HANDOVER_TIMEOUT: Duration = Duration::from_millis(500);
/// How long the ports may take to end after that, a little more than they take by themselves.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(2500);
/// How long stopping replication and closing the storage may take then: what is left of the two seconds for
/// an heir, one second for calls of peers, and one for the disk.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(3500);

/// What a node is started with.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) node: NodeId,
    pub(crate) cluster_id: String,
    pub(crate) data: PathBuf,
    pub(crate) client: String,
    pub(crate) peer: String,
    pub(crate) http: String,
    /// Where the page is.
    pub(crate) ui: Ui,
    /// The voters of the first start; of a node that joined later, the members that it was told of then.
    pub(crate) initial: InitialMembers,
    /// The host that clients are told; absent: that of the client address.
    pub(crate) advertise: Option<String>,
    pub(crate) job_ports: PortRange,
    /// Where nodes of MindSpore find their jobs; absent: nowhere.
    pub(crate) mindspore_ports: Option<PortRange>,
    pub(crate) client_socket: Option<PathBuf>,
    /// Users whose processes that socket serves, besides this one and root.
    pub(crate) socket_uids: Vec<u32>,
    pub(crate) default_job: job::Spec,
    pub(crate) timing: Timing,
    pub(crate) snapshot_every_entries: u64,
    pub(crate) backups: Option<backups::Plan>,
    /// How many clients may connect, and of these from one address, if that was said.
    pub(crate) connections: (Option<u32>, Option<u32>),
    /// What clients may name beyond their own addresses.
    pub(crate) dial_allow: Allow,
    /// How connections are protected; absent: they are in plain text.
    pub(crate) tls: Option<NodeTls>,
    /// Whether it may serve other machines in plain text.
    pub(crate) insecure: bool,
    /// Where lines of what is done go; absent: nowhere.
    pub(crate) audit: Option<AuditPlan>,
    /// What becomes of calls that their callers may not make.
    pub(crate) authorise: Mode,
    /// How it is protected, by its settings.
    pub(crate) protection: Protection,
    /// Whether it starts although the cluster wants more.
    pub(crate) below_floor: bool,
    /// How much memory the state may take while this node leads.
    pub(crate) state: StateLimits,
    /// How many bytes may be held for clients.
    pub(crate) memory: MemoryLimits,
    /// The highest feature level that this node is to support.
    pub(crate) level_max: FeatureLevel,
}

/// The open ports of a node.
struct Listeners {
    client: TcpListener,
    http: TcpListener,
    /// What is served on it.
    http_parts: Parts,
    /// The page's own, if it has one.
    ui: Option<TcpListener>,
    socket: Option<Listener>,
}

/// The tasks of a node, and the word that ends those which serve.
struct Tasks {
    serving: JoinSet<()>,
    /// They run until this value is dropped.
    background: JoinSet<()>,
    stopping: CancellationToken,
}

/// Runs a node until it is told to stop.
pub(crate) async fn run(config: Config, mut stop: Stop) -> Result<(), Failure> {
    check(&config)?;
    let auditor = audit::start(&config)?;
    let connections = connection_limits(&config);
    let listeners = Listeners::open(&config).await?;
    let addresses = Addresses::of(&config, &listeners)?;
    let authority = Authority::new(config.authorise, &auditor);
    let (gateway, handle) = replicate(&config, connections, &authority).await?;
    joining::done(&config.data);
    let mut tasks = Tasks::new();
    let (job_ports, job_ports_told) = watch::channel(JobPorts::default());
    let (contact, drained) = drain::contact(&gateway, config.node);
    tasks.background.spawn(drained);
    let (backups, backups_told) = watch::channel(None);
    let dialler = dialling::dialler(&config);
    let told = NodeNews { job_ports: job_ports_told, backups: backups_told, auditor: auditor.clone() };
    let front_ends = front_ends::all(&gateway, &config, &dialler, told);
    let bearers = Bearers::new(&gateway, realm(&config), config.insecure);
    tasks.background.spawn(bearers.clone().keep());
    // What the calls of one frame propose reaches the engine together.
    let resources = PortResources::new(contact, gateway.connections().clone())
        .charging(gateway.memory().clone())
        .tallying(gateway.streams().clone())
        .counting(gateway.calls().clone())
        .gathering(Gather::new(tripod_raft::gathered))
        .guarded(CallGuard::of_client_port(&authority.client, &gateway, &bearers));
    tasks.serve(listeners, &gateway, &front_ends, &resources, (config.tls.as_ref(), &authority, &bearers));
    let client_tls = config.tls.as_ref().and_then(|tls| tls.client.clone());
    keep_protected(&mut tasks, &gateway, &config);
    if let Some(NodeTls { tls, .. }) = config.tls {
        tracing::info!(identity = %tls.identity(), serial = tls.serial(), not_after = tls.not_after(), "TLS");
    }
    for (_name, background) in front_ends.background() {
        tasks.background.spawn(background);
    }
    if let Some(plan) = config.backups {
        tasks.background.spawn(backups::run(plan, handle.clone(), backups, gateway.last_backup().clone()));
    }
    tasks.background.spawn(bootstrap::run(gateway.clone(), config.data, auditor.clone()));
    tasks.background.spawn(announce::run(gateway.clone(), config.node, addresses.clone()));
    tasks.background.spawn(default_job::keep(gateway.clone(), handle.leadership(), config.default_job));
    let stopping = tasks.stopping.clone();
    let ranges = job_ranges(config.job_ports, config.mindspore_ports, &config.client, addresses.job_host());
    let doors = (client_tls, authority.client, bearers);
    tasks.serving.spawn(job_ports::run(gateway, front_ends, resources, ranges, doors, job_ports, stopping));
    tracing::info!(
        node = config.node.0,
        cluster = %config.cluster_id,
        client = %addresses.client(),
        peer = %config.peer,
        http = %addresses.http(),
        insecure = config.insecure,
        "node is up"
    );
    let ended = tokio::select! {
        reason = stop.wait() => {
            tracing::info!(reason, "node is stopping");
            end(&handle, config.node, tasks).await;
            Ok(())
        }
        reason = handle.removed() => {
            end(&handle, config.node, tasks).await;
            removed(config.node, reason)
        }
        reason = handle.failed() => {
            Err(Failure::told(Code::NodeEnded, format!("node {} cannot go on: {reason}", config.node)))
        }
    };
    auditor.stop().await;
    ended
}

/// Within which whoever bears a token is somebody. Without a certificate that says it, nobody else's word is compared with it.
fn realm(config: &Config) -> Realm {
    if let Some(NodeTls { tls, .. }) = &config.tls {
        return tls.identity().realm;
    }
    let cluster = config.cluster_id.parse::<ClusterName>();
    Realm {
        trust: PLAIN_REALM.parse().expect("it is a trust domain"),
        cluster: cluster.unwrap_or_else(|_| PLAIN_REALM.parse().expect("it is a name")),
    }
}

/// Refuses what is found out before anything is opened.
fn check(config: &Config) -> Result<(), Failure> {
    default_job::check(&config.default_job)?;
    keep_private(&config.data);
    floor::check(&config.data, config.protection, config.below_floor)
}

/// Tells the cluster by which certificate this node is known, and hears from it how nodes are to be protected.
fn keep_protected(tasks: &mut Tasks, gateway: &Gateway, config: &Config) {
    if let Some(NodeTls { tls, peer: Some(_), .. }) = &config.tls {
        tasks.background.spawn(naming::run(gateway.clone(), config.node, tls.clone()));
    }
    tasks.background.spawn(floor::keep(gateway.clone(), config.data.clone(), config.protection));
}

/// Where each job has its ports: one for all protocols over gRPC, and one for each that frames its bytes itself.
fn job_ranges(
    jobs: PortRange,
    mindspore: Option<PortRange>,
    client: &str,
    advertised: &str,
) -> Vec<job_ports::JobPortRange> {
    let all = [
        (PortKind::Job, "--job-ports", Some(jobs)),
        (tripod_mindspore::PORT, "--mindspore-ports", mindspore),
    ];
    let given = all.into_iter().filter_map(|(kind, flag, range)| Some((kind, flag, range?)));
    let (host, advertised) = (host_of(client), advertised.to_owned());
    let range = |(kind, flag, range)| job_ports::JobPortRange {
        kind,
        flag,
        host: host.to_owned(),
        advertised: advertised.clone(),
        range,
    };
    given.map(range).collect()
}

/// What a process ends with that its cluster wants no more. To be removed is what somebody asked for, and no failure:
/// a service manager that starts again what failed leaves the node alone.
fn removed(node: NodeId, reason: String) -> Result<(), Failure> {
    let failure = Failure::told(Code::NodeEnded, reason);
    if failure.code() != Code::NodeRemoved {
        return Err(failure);
    }
    tracing::info!(node = node.0, code = number(Code::NodeRemoved), reason = %failure, "this node was removed: it ends");
    Ok(())
}

/// Takes the rights of others from the data directory of an earlier build.
fn keep_private(data: &Path) {
    match tripod_local::tighten(data) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            // Whether this node can live there is found out next.
            let code = number(Code::NotPrivate);
            tracing::warn!(code, data = %data.display(), %error, "whether other users may enter the data directory is not known");
        }
        Ok(_) | Err(_) => {}
    }
}

/// How many connections of clients there may be.
fn connection_limits(config: &Config) -> ConnectionLimits {
    let (all, at_one_address) = config.connections;
    let count = |asked: u32| usize::try_from(asked).unwrap_or(usize::MAX);
    let files = open_files::raise();
    // Each job port is an open file as long as its job lives.
    let ports =
        u64::from(config.job_ports.count()) + config.mindspore_ports.map_or(0, |range| range.count().into());
    let viewers = if config.ui == Ui::Off { 0 } else { tripod_web::viewers_of_files(files) as u64 };
    let possible = ConnectionLimits::of_files(files.saturating_sub(ports).saturating_sub(viewers));
    let limits = all.map_or(possible, |all| ConnectionLimits::of(count(all)));
    if limits.all > possible.all {
        tracing::warn!(
            code = number(Code::ConnectionsFull),
            files,
            asked = limits.all,
            possible = possible.all,
            "more connections of clients are asked for than open files allow; next: raise LimitNOFILE= or `ulimit -Hn`"
        );
    }
    let limits = ConnectionLimits { all: limits.all.min(possible.all), ..limits };
    let at_one_address = at_one_address.map_or(limits.at_one_address, count).min(limits.all);
    let mib = |bytes: u64| bytes >> 20;
    let (all, one) = (mib(config.memory.all), mib(config.memory.one_connection));
    tracing::info!(all_mib = all, one_connection_mib = one, "memory for clients");
    tracing::info!(files, connections = limits.all, at_one_address, "connections of clients");
    ConnectionLimits { at_one_address, ..limits }
}

/// Starts replication and what front ends stand on.
async fn replicate(
    config: &Config,
    connections: ConnectionLimits,
    authority: &Authority,
) -> Result<(Gateway, Handle), Failure> {
    let options = Options {
        node: config.node,
        cluster_id: config.cluster_id.clone(),
        data: config.data.clone(),
        peer_listen: config.peer.clone(),
        initial: config.initial.as_slice().to_vec(),
        timing: config.timing,
        snapshot_every_entries: config.snapshot_every_entries,
        keep_entries: config.snapshot_every_entries.min(KEEP_ENTRIES_MAX),
        state: config.state,
    };
    let parts = tripod_gateway::Parts::new(tripod_gateway::Options {
        connections,
        memory: config.memory,
        insecure: config.insecure,
        state: config.state,
        ..Default::default()
    });
    let peer_tls = config.tls.as_ref().and_then(|tls| tls.peer.clone());
    let world = World::real().limited_to(config.level_max).protected(peer_tls);
    let world = world.gated(Arc::clone(&authority.peer));
    let handle = Handle::start_in(world, options, parts.hooks()).await.map_err(|error| {
        Failure::told(Code::NodeEnded, format!("node {} did not start: {error}", config.node))
    })?;
    Ok((Gateway::start(handle.clone(), parts), handle))
}

/// Hands over leadership, then ends the ports, and replication last: until its ports have ended this node
/// forwards what it is asked to the new leader.
async fn end(handle: &Handle, node: NodeId, mut tasks: Tasks) {
    let leads = handle.leadership().borrow().leader == Some(node);
    if leads {
        match tokio::time::timeout(HANDOVER_TIMEOUT, handle.leave()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::info!(%error, "leadership not handed over"),
            Err(_) => tracing::info!("leadership not handed over in time"),
        }
    }
    tasks.stopping.cancel();
    let drained = async { while tasks.serving.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN_TIMEOUT, drained).await.is_err() {
        tracing::info!("ports did not end in time");
    }
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, handle.shutdown()).await.is_err() {
        tracing::warn!("replication did not end in time");
    }
}

impl Listeners {
    async fn open(config: &Config) -> Result<Self, Failure> {
        let socket = config.client_socket.as_deref();
        let (http_parts, ui) = match &config.ui {
            Ui::Http => (Parts::All, None),
            Ui::Off => (Parts::WithoutPage, None),
            Ui::At(address) => (Parts::WithoutPage, Some(listen::tcp("--ui", address).await?)),
        };
        Ok(Self {
            http_parts,
            ui,
            client: listen::tcp("--client", &config.client).await?,
            http: listen::tcp("--http", &config.http).await?,
            socket: socket.map(|path| listen::unix(path, &config.socket_uids)).transpose()?,
        })
    }
}

impl Tasks {
    fn new() -> Self {
        Self { serving: JoinSet::new(), background: JoinSet::new(), stopping: CancellationToken::new() }
    }

    /// Serves the client port, the unix socket and the http port.
    fn serve(
        &mut self,
        listeners: Listeners,
        gateway: &Gateway,
        front_ends: &FrontEnds,
        resources: &PortResources,
        (tls, authority, bearers): (Option<&NodeTls>, &Authority, &Bearers),
    ) {
        let binding = JobBinding::Named(DEFAULT_JOB.to_owned());
        let served = front_ends.served(PortKind::Client, &binding);
        let stopping = self.stopping.clone();
        let serve = |listener: Listener| {
            let stopped = stopping.clone().cancelled_owned();
            tripod_port::serve_through(listener, served.clone(), resources.clone(), stopped)
        };
        let client_tls = tls.and_then(|tls| tls.client.clone());
        let client = serve(Listener::from(listeners.client).protected(client_tls));
        self.serving.spawn(async move { report("client", client.await) });
        if let Some(socket) = listeners.socket {
            let socket = serve(socket);
            self.serving.spawn(async move { report("socket", socket.await) });
        }
        let viewers = tripod_web::viewers_of_files(open_files::raise());
        let (parts, watching) = (listeners.http_parts, Viewers::default());
        for (listener, parts) in [(Some(listeners.http), parts), (listeners.ui, Parts::PageOnly)] {
            let Some(listener) = listener else { continue };
            let figures = NodeFigures {
                tls: tls.map(|tls| tls.tls.clone()),
                calls: Arc::clone(&authority.calls),
                viewers: watching.clone(),
                bearers: Some(bearers.clone()),
            };
            let http_tls = tls.and_then(|tls| tls.http.clone());
            let manner = Manner { parts, viewers };
            let stopped = self.stopped();
            self.serving.spawn(tripod_web::serve_protected(
                listener,
                (figures, http_tls),
                gateway.clone(),
                manner,
                stopped,
            ));
        }
    }

    /// Resolves when the node stops.
    fn stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        self.stopping.clone().cancelled_owned()
    }
}

/// What serves is told when nobody waits for it any more.
impl Drop for Tasks {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}

fn report(port: &'static str, served: Result<(), impl std::fmt::Display>) {
    if let Err(error) = served {
        tracing::error!(port, %error, "port failed");
    }
}

#[cfg(test)]
mod tests {
    //! Numbers as in `n7` are those of the walk-through of a new operator.

    use super::*;

    #[test]
    fn n35_a_node_that_was_removed_on_purpose_ends_well_and_one_that_is_too_old_does_not() {
        let reason = "T4201 node-removed: node 3 was removed from cluster x".to_owned();
        assert_eq!(removed(NodeId(3), reason), Ok(()));
        let too_old = removed(NodeId(3), "T4402 level-old: node 3 supports less".to_owned());
        assert_eq!(too_old.map_err(|failure| failure.code()), Err(Code::LevelOld));
    }
}
