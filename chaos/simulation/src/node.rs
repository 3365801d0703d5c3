//! One machine as a simulated host, and the node on it: the real raft, state, gateway and front ends, on a
//! simulated disk, network and clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tripod_coordination::Coordination;
use tripod_dial::{Dialler, Rule};
use tripod_gateway::{Consistency, FrontEnd, FrontEnds, Gateway, JobBinding, Parts, PortKind};
use tripod_mars::Mars;
use tripod_mindspore::Mindspore;
use tripod_native::Native;
use tripod_proto::tripod::v1::cluster_client::ClusterClient;
use tripod_proto::tripod::v1::{JoinRequest, ListMembersRequest};
use tripod_raft::{
    Handle, InitialMember, Leadership, LogLine, Observer, SeenMembers, SimulatedDisk, WallClock, World,
};
use tripod_ray::{Patience, Scheduler};
use tripod_state::ids::NodeId;
use tripod_state::{Command, State, member};

use super::clock::ProcessClock;
use super::network::{self, CLIENT_PORT, PEER_PORT, Silences, SimulatedNetwork};
use super::observation::Life;
use super::plan::Plan;
use super::planted::{Planted, PlantedBackend};
use super::witness::{Witness, now};
use super::workload;

/// Between two attempts of a node to get an id.
const JOIN_PAUSE: Duration = Duration::from_millis(150);
/// How long one of them may take.
const JOIN_PATIENCE: Duration = Duration::from_secs(2);

/// The scheduler's rules about silence: as short as a run, and longer than a fault that keeps its peers from all nodes.
const PATIENCE: Patience = Patience {
    ttl_min: Duration::from_secs(1),
    grace: Duration::from_secs(3),
    failover_min: Duration::from_secs(5),
    reconcile_every: Duration::from_secs(8),
};

/// The same of the schedulers of MindSpore. Its nodes give up sooner on a scheduler that does not answer.
const MINDSPORE_PATIENCE: tripod_mindspore::Patience =
    tripod_mindspore::Patience { ttl: Duration::from_secs(6), failover_min: Duration::from_secs(6) };

/// What stays of a machine when its node is not running, and where a running one is found.
pub(crate) struct Site {
    /// The host's name, `n1` and so on.
    pub(crate) name: String,
    pub(crate) disk: SimulatedDisk,
    /// From 0.
    place: usize,
    owner: Mutex<Owner>,
    lives: AtomicU32,
    clock_off_ms: Arc<AtomicI64>,
    running: Mutex<Option<Running>>,
    /// What the node that joined here was told of the members. On its disk, as far as it is concerned.
    told: Mutex<Vec<InitialMember>>,
    /// The node here was removed, and its process is to end with all that it started.
    process_over: AtomicBool,
    config: Config,
    witness: Witness,
}

/// Whose the machine is, as its disk says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// It has no node, and nobody asked for one.
    Nobody,
    /// A node is to be started that joins. It has written down this number.
    Joining(u64),
    Node(NodeId),
}

/// What is the same for all nodes.
#[derive(Clone)]
struct Config {
    options: tripod_raft::Options,
    /// The machines.
    places: usize,
    seed: u64,
    planted: Option<Planted>,
    /// Whether nodes have ports for nodes of MindSpore.
    mindspore: bool,
    silences: Silences,
}

/// A node that is up.
#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) node: NodeId,
    pub(crate) life: Life,
    pub(crate) handle: Handle,
}

impl Running {
    pub(crate) fn leadership(&self) -> Leadership {
        *self.handle.leadership().borrow()
    }
}

/// How a node ended that nobody killed.
enum Ended {
    /// It was removed, and was told.
    Removed,
    Failed(String),
}

/// The name of the host at a place, from 0.
pub(crate) fn host(place: usize) -> String {
    format!("n{}", place + 1)
}

/// Where the node at a place is reached by its peers.
pub(crate) fn peer(place: usize) -> String {
    format!("{}:{PEER_PORT}", host(place))
}

impl Site {
    /// The sites of all machines of a plan. The first ones are those of the first voters. `mindspore`: whether nodes of
    /// MindSpore come to them.
    pub(crate) fn all(
        seed: u64,
        plan: &Plan,
        (planted, mindspore): (Option<Planted>, bool),
        witness: &Witness,
    ) -> Vec<Arc<Self>> {
        let (first, silences) = (|place: usize| NodeId(place as u64 + 1), Silences::default());
        let initial: Vec<_> =
            (0..plan.nodes).map(|place| InitialMember { node: first(place), peer: peer(place) }).collect();
        let site = |place: usize| {
            let is_first = place < plan.nodes;
            let options = tripod_raft::Options {
                node: first(place),
                cluster_id: "simulation".into(),
                data: "simulated".into(),
                peer_listen: peer(place),
                initial: if is_first { initial.clone() } else { Vec::new() },
                timing: plan.timing,
                snapshot_every_entries: plan.snapshot_every_entries,
                keep_entries: plan.keep_entries,
                state: tripod_raft::StateLimits::default(),
            };
            let disk = SimulatedDisk::new(seed.wrapping_mul(31).wrapping_add(first(place).0));
            disk.set_lying(planted == Some(Planted::LyingDisk));
            disk.set_forgetful(planted == Some(Planted::ForgottenVote));
            disk.set_stale_votes(planted == Some(Planted::StaleVote));
            Arc::new(Self {
                name: host(place),
                disk,
                place,
                owner: Mutex::new(if is_first { Owner::Node(first(place)) } else { Owner::Nobody }),
                lives: AtomicU32::new(0),
                clock_off_ms: Arc::default(),
                running: Mutex::new(None),
                told: Mutex::default(),
                process_over: AtomicBool::new(false),
                config: Config {
                    options,
                    places: plan.places(),
                    seed,
                    planted,
                    mindspore,
                    silences: silences.clone(),
                },
                witness: witness.clone(),
            })
        };
        (0..plan.places()).map(site).collect()
    }

    /// Between which hosts of the simulation nothing passes.
    pub(crate) fn silences(&self) -> &Silences {
        &self.config.silences
    }

    /// The node, if it is up.
    pub(crate) fn running(&self) -> Option<Running> {
        self.running.lock().clone()
    }

    /// The node that this machine is for, up or not.
    pub(crate) fn node(&self) -> Option<NodeId> {
        match *self.owner.lock() {
            Owner::Node(node) => Some(node),
            Owner::Nobody | Owner::Joining(_) => None,
        }
    }

    /// Whether no node is on this machine, and none is about to be.
    pub(crate) fn is_vacant(&self) -> bool {
        *self.owner.lock() == Owner::Nobody
    }

    /// Has a node started here that joins, if there is none.
    pub(crate) fn invite(&self) {
        let mut owner = self.owner.lock();
        if *owner == Owner::Nobody {
            let lives = u64::from(self.lives.load(Ordering::Relaxed));
            *owner = Owner::Joining((self.config.seed << 16) | (lives << 8) | (self.place as u64 + 1));
        }
    }

    /// Where the node here is reached by its peers.
    pub(crate) fn peer(&self) -> String {
        peer(self.place)
    }

    /// To be called before the host is crashed: nothing of the node may outlive its runtime.
    pub(crate) fn stopped(&self) {
        drop(self.running.lock().take());
    }

    /// Whether the host is to be started anew, because the process on it has ended by itself. Tells it once.
    ///
    /// Connections that were accepted are tasks of their own, which nothing but the end of the runtime ends: until
    /// then they would answer for a node that is no more.
    pub(crate) fn take_process_over(&self) -> bool {
        self.process_over.swap(false, Ordering::Relaxed)
    }

    /// Sets the clock on this node's wall.
    pub(crate) fn set_clock_off(&self, off_ms: i64) {
        self.clock_off_ms.store(off_ms, Ordering::Relaxed);
    }

    /// What the host runs, from start to crash. It never ends by itself: the simulation would go on without it.
    pub(crate) async fn run(self: Arc<Self>) -> turmoil::Result {
        let node = self.identity().await;
        let life = Life(self.lives.fetch_add(1, Ordering::Relaxed) + 1);
        self.witness.note(now(), &self.name, format_args!("node {node} starts, life {}", life.0));
        match self.serve(node, life).await {
            Ended::Removed if self.witness.is_gone(node) => self.vacate(node).await,
            Ended::Removed => {
                let what = format!("node {node} was told that it was removed, and was not");
                self.witness.broken(now(), "one membership", what);
            }
            Ended::Failed(why) => {
                self.witness.broken(now(), "a node ended by itself", format!("node {node}: {why}"));
            }
        }
        std::future::pending().await
    }

    /// The node that is to be started here, once there is one.
    async fn identity(&self) -> NodeId {
        let mut place = self.place;
        loop {
            let token = match *self.owner.lock() {
                Owner::Node(node) => return node,
                Owner::Joining(token) => Some(token),
                Owner::Nobody => None,
            };
            if let Some(token) = token {
                place = (place + 1) % self.config.places;
                if let Some(node) = self.join(place, token).await {
                    self.witness.note(now(), &self.name, format_args!("joins as node {node}"));
                    self.witness.count("nodes that joined");
                    self.witness.joined(now(), node);
                    *self.owner.lock() = Owner::Node(node);
                    continue;
                }
            }
            tokio::time::sleep(JOIN_PAUSE).await;
        }
    }

    /// Asks the node at that place for an id.
    async fn join(&self, place: usize, token: u64) -> Option<NodeId> {
        let mut cluster = ClusterClient::new(network::channel(&host(place)));
        let supports_level = tripod_state::level::NEWEST.0;
        let request = JoinRequest { peer_address: self.peer(), token, supports_level };
        let joined = async {
            let listed = cluster.list_members(ListMembersRequest {}).await?.into_inner().members;
            let node = cluster.join(request).await?.into_inner().node_id;
            let others = listed.into_iter().filter(|member| member.node_id != node);
            let told = others
                .map(|member| InitialMember { node: NodeId(member.node_id), peer: member.peer_address });
            *self.told.lock() = told.collect();
            Ok::<_, tonic::Status>(NodeId(node))
        };
        match tokio::time::timeout(JOIN_PATIENCE, joined).await {
            Ok(Ok(node)) => Some(node),
            Ok(Err(status)) => {
                self.witness.note(now(), &self.name, format_args!("may not join: {}", status.message()));
                None
            }
            Err(_) => None,
        }
    }

    /// The operator takes the machine back, whose node was removed.
    async fn vacate(&self, node: NodeId) {
        let running = self.running.lock().take();
        if let Some(running) = running {
            running.handle.shutdown().await;
        }
        self.witness.note(now(), &self.name, format_args!("node {node} was removed, and the disk is wiped"));
        self.witness.count("nodes that were removed");
        self.disk.wipe();
        *self.owner.lock() = Owner::Nobody;
        self.process_over.store(true, Ordering::Relaxed);
    }

    async fn serve(&self, node: NodeId, life: Life) -> Ended {
        let process_clock = ProcessClock::of(&self.clock_off_ms);
        let reading = Arc::clone(&process_clock);
        let clock: WallClock = Arc::new(move || reading.read());
        let observer = Arc::new(Observed { node, witness: self.witness.clone() });
        let network = Arc::new(SimulatedNetwork::of(&self.name, &self.config.silences));
        let world = World::simulated(network, self.disk.clone(), clock.clone());
        let world = world.observed(observer);
        let parts = Parts::with_clock(tripod_gateway::Options::default(), clock);
        let mut options = self.config.options.clone();
        let told = self.told.lock().clone();
        if !told.is_empty() {
            // Who joined forms no cluster, and asks these whether it still is a member.
            options.initial = told;
        }
        options.node = node;
        let handle = match Handle::start_in(world, options, parts.hooks()).await {
            Ok(handle) => handle,
            Err(error) => return Ended::Failed(error.to_string()),
        };
        *self.running.lock() = Some(Running { node, life, handle: handle.clone() });
        let backend = PlantedBackend::new(handle.clone(), node, self.config.planted);
        let gateway = Gateway::over(Arc::new(backend), parts);
        let binding = JobBinding::Named("default".to_owned());
        let scheduler = Scheduler::with_patience(&gateway, PATIENCE).connecting(network::to_peers());
        // Connections are the simulation's, so nobody dials.
        let mars = Mars::new(&gateway, &Dialler::new(Rule::any())).connecting(network::to_stores());
        let mut spoken: Vec<Box<dyn FrontEnd>> = vec![
            Box::new(Coordination::new(gateway.clone())),
            Box::new(Native::alone(gateway.clone())),
            Box::new(scheduler),
            Box::new(mars),
        ];
        if self.config.mindspore {
            let mindspore =
                Mindspore::with_patience(&gateway, &Dialler::new(Rule::any()), MINDSPORE_PATIENCE);
            spoken.push(Box::new(mindspore.dialling(network::to_nodes())));
        }
        let front_ends = FrontEnds::of(spoken);
        if self.config.mindspore
            && let Err(error) = serve_mindspore(&front_ends).await
        {
            return Ended::Failed(error.to_string());
        }
        let routes = front_ends.routes(PortKind::Client, &binding);
        // They end with the host's runtime.
        tokio::spawn(process_clock.keep(handle.clone()));
        for (_name, background) in front_ends.background() {
            tokio::spawn(background);
        }
        tokio::spawn(announce(gateway, node, self.name.clone()));
        let incoming = match network::clients().await {
            Ok(incoming) => incoming,
            Err(error) => return Ended::Failed(error.to_string()),
        };
        let serving = tripod_port::server().add_routes(routes).serve_with_incoming(incoming);
        tokio::select! {
            biased;
            why = handle.failed() => Ended::Failed(why),
            _ = handle.removed() => Ended::Removed,
            served = serving => Ended::Failed(format!("its client port ended: {served:?}")),
        }
    }
}

/// Opens a port for nodes of MindSpore for each of the jobs that have some. They end with the host's runtime.
async fn serve_mindspore(front_ends: &FrontEnds) -> std::io::Result<()> {
    for (job, port) in workload::mindspore::JOBS {
        let served = front_ends.served(tripod_mindspore::PORT, &JobBinding::Named(job.to_owned()));
        let listener = tripod_port::Listener::within(network::piped(port).await?);
        tokio::spawn(async move {
            // It is never stopped, and a listener within a process does not fail.
            drop(tripod_port::serve(listener, served, std::future::pending()).await);
        });
    }
    Ok(())
}

/// Says where this node is reached, until that is known: stores are sent there for errors.
async fn announce(gateway: Gateway, node: NodeId, host: String) {
    let addresses = member::Addresses {
        client: format!("{host}:{CLIENT_PORT}"),
        http: format!("{host}:80"),
        job_host: host,
        job_port_first: CLIENT_PORT,
        job_port_count: 64,
    };
    let known = |state: &State| state.members().contains(&(node, addresses.clone()));
    while !gateway.read(Consistency::Local, known).await.unwrap_or(false) {
        let command = member::Command::Announce { node, addresses: addresses.clone() };
        // Whatever comes of it, the state tells.
        drop(gateway.submit(Command::Member(command)).await);
        tokio::time::sleep(JOIN_PAUSE).await;
    }
}

/// Tells the witness what a node applies.
struct Observed {
    node: NodeId,
    witness: Witness,
}

impl Observer for Observed {
    fn applied(&self, line: LogLine) {
        self.witness.applied(self.node, line);
    }

    fn members(&self, line: LogLine, members: SeenMembers) {
        self.witness.members(self.node, line, &members);
    }
}
