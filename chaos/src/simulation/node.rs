//! One node as a simulated host: the real raft, state, gateway and front ends, on a simulated disk, network and
//! clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;
use tripod_coordination::JobBinding;
use tripod_gateway::{Gateway, Parts, RaftBackend};
use tripod_native::JobPorts;
use tripod_raft::{Handle, InitialMember, Leadership, LogLine, Observer, SimulatedDisk, WallClock, World};
use tripod_state::ids::{NodeId, TimeMs};

use super::network::{self, PEER_PORT, SimulatedNetwork};
use super::observation::Life;
use super::plan::Plan;
use super::planted::{Planted, PlantedBackend};
use super::witness::{Witness, now};

/// When the simulation begins, by the clocks on its walls: some day in 2026.
const EPOCH_MS: u64 = 1_780_000_000_000;

/// What stays of a node when it is not running, and where a running one is found.
pub(crate) struct Site {
    pub(crate) node: NodeId,
    /// The host's name, `n1` and so on.
    pub(crate) name: String,
    pub(crate) disk: SimulatedDisk,
    lives: AtomicU32,
    clock_off_ms: Arc<AtomicI64>,
    running: Mutex<Option<Running>>,
    config: Config,
    witness: Witness,
}

/// What is the same for all nodes.
#[derive(Clone)]
struct Config {
    options: tripod_raft::Options,
    planted: Option<Planted>,
}

/// A node that is up.
#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) life: Life,
    pub(crate) handle: Handle,
}

impl Running {
    pub(crate) fn leadership(&self) -> Leadership {
        *self.handle.leadership().borrow()
    }
}

/// The name of the host of a node.
pub(crate) fn host(node: NodeId) -> String {
    format!("n{node}")
}

impl Site {
    /// The sites of all nodes of a plan.
    pub(crate) fn all(seed: u64, plan: &Plan, planted: Option<Planted>, witness: &Witness) -> Vec<Arc<Self>> {
        let ids = || (1..=plan.nodes as u64).map(NodeId);
        let peer = |node: NodeId| format!("{}:{PEER_PORT}", host(node));
        let initial: Vec<_> = ids().map(|node| InitialMember { node, peer: peer(node) }).collect();
        let site = |node: NodeId| {
            let options = tripod_raft::Options {
                node,
                cluster_id: "simulation".into(),
                data: "simulated".into(),
                peer_listen: peer(node),
                initial: initial.clone(),
                timing: plan.timing,
                snapshot_every_entries: plan.snapshot_every_entries,
                keep_entries: plan.keep_entries,
            };
            let disk = SimulatedDisk::new(seed.wrapping_mul(31).wrapping_add(node.0));
            disk.set_lying(planted == Some(Planted::LyingDisk));
            disk.set_forgetful(planted == Some(Planted::ForgottenVote));
            Arc::new(Self {
                node,
                name: host(node),
                disk,
                lives: AtomicU32::new(0),
                clock_off_ms: Arc::default(),
                running: Mutex::new(None),
                config: Config { options, planted },
                witness: witness.clone(),
            })
        };
        ids().map(site).collect()
    }

    /// The node, if it is up.
    pub(crate) fn running(&self) -> Option<Running> {
        self.running.lock().clone()
    }

    /// To be called before the host is crashed: nothing of the node may outlive its runtime.
    pub(crate) fn stopped(&self) {
        drop(self.running.lock().take());
    }

    /// Sets the clock on this node's wall.
    pub(crate) fn set_clock_off(&self, off_ms: i64) {
        self.clock_off_ms.store(off_ms, Ordering::Relaxed);
    }

    fn clock(&self) -> WallClock {
        let off = Arc::clone(&self.clock_off_ms);
        Arc::new(move || {
            let wall = EPOCH_MS + now().0;
            TimeMs(wall.saturating_add_signed(off.load(Ordering::Relaxed)))
        })
    }

    /// What the host runs, from start to crash. It never ends by itself: the simulation would go on without it.
    pub(crate) async fn run(self: Arc<Self>) -> turmoil::Result {
        let life = Life(self.lives.fetch_add(1, Ordering::Relaxed) + 1);
        self.witness.note(now(), &self.name, format_args!("starts, life {}", life.0));
        if let Err(why) = self.serve(life).await {
            self.witness.broken(now(), "a node ended by itself", format!("node {}: {why}", self.node));
        }
        std::future::pending().await
    }

    async fn serve(&self, life: Life) -> Result<(), String> {
        let clock = self.clock();
        let observer = Arc::new(Observed { node: self.node, witness: self.witness.clone() });
        let world = World::simulated(Arc::new(SimulatedNetwork), self.disk.clone(), clock.clone());
        let world = world.observed(observer);
        let parts = Parts::with_clock(tripod_gateway::Options::default(), clock);
        let options = self.config.options.clone();
        let handle =
            Handle::start_in(world, options, parts.hooks()).await.map_err(|error| error.to_string())?;
        *self.running.lock() = Some(Running { life, handle: handle.clone() });
        let backend = PlantedBackend::new(RaftBackend::new(handle.clone()), self.node, self.config.planted);
        let gateway = Gateway::over(Arc::new(backend), parts);
        let binding = JobBinding::Named("default".to_owned());
        let (_told, job_ports) = watch::channel(JobPorts::default());
        let (_made, backups) = watch::channel(None);
        let routes = tripod_coordination::routes(&gateway, &binding);
        let routes = tripod_native::add_to(routes, &gateway, &job_ports, &backups);
        let incoming = network::clients().await.map_err(|error| error.to_string())?;
        let serving = tripod_coordination::server().add_routes(routes).serve_with_incoming(incoming);
        tokio::select! {
            biased;
            why = handle.failed() => Err(why),
            served = serving => Err(format!("its client port ended: {served:?}")),
        }
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
}
