//! A cluster whose nodes live, die and come back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::Instant;
use tripod_load::system::{Role, System};
use tripod_wait::{deadline, scaled};

use super::launch::{Layout, loopback};
use super::options::{ClusterOptions, Kind};
use super::ports::PortBlock;
use super::process::NodeProcess;
use crate::proxy::{Network, Route};

/// How long a node may take to stop by itself, on a machine of usual speed.
const STOP_PATIENCE: Duration = Duration::from_secs(15);
/// Pause between two looks at the nodes.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// Nodes on loopback, with their data. Dropping it kills them all.
pub struct Cluster {
    // Fields drop in this order: processes first, then their data, then the ports.
    nodes: Vec<Option<NodeProcess>>,
    /// Machines whose node joins, or has joined.
    joins: BTreeSet<u64>,
    network: Option<Network>,
    root: Root,
    ports: PortBlock,
    options: ClusterOptions,
    /// What nodes are whose build is not that of the others.
    kinds: BTreeMap<u64, Kind>,
}

impl Cluster {
    /// Starts all nodes and waits until each of them serves.
    ///
    /// # Errors
    /// A node does not start, or there is no leader in time; the text quotes the nodes' logs.
    pub async fn start(options: ClusterOptions) -> anyhow::Result<Self> {
        let mut cluster = Self::prepare(options)?;
        for node in cluster.ids() {
            cluster.restart(node)?;
        }
        cluster.wait_until_ready().await?;
        Ok(cluster)
    }

    /// A cluster with all its ports and directories, and no process yet.
    ///
    /// # Errors
    /// No free ports, or the directory cannot be made.
    pub fn prepare(options: ClusterOptions) -> anyhow::Result<Self> {
        let ports = PortBlock::reserve()?;
        let root = Root::new(options.data.as_deref())?;
        let machines = options.nodes + options.spares;
        let nodes = (0..machines).map(|_| None).collect();
        let joins = (options.nodes + 1..=machines).collect();
        let network = options.proxied.then(|| network(&options, &ports)).transpose()?;
        Ok(Self { nodes, joins, network, root, ports, options, kinds: BTreeMap::new() })
    }

    /// The machines, those included whose node is dead. Their numbers are the ids of the nodes, as long as nobody
    /// changes the members.
    pub fn ids(&self) -> impl Iterator<Item = u64> + use<> {
        1..=self.options.nodes + self.options.spares
    }

    /// The ids of the nodes whose process runs.
    pub fn running(&mut self) -> Vec<u64> {
        self.ids().filter(|node| self.process_mut(*node).is_ok_and(NodeProcess::is_running)).collect()
    }

    /// The key-value service that these nodes offer; Tripod's job `default`.
    #[must_use]
    pub fn system(&self) -> System {
        match self.options.kind {
            Kind::Tripod { .. } => System::Tripod { job: String::new() },
            Kind::Etcd { .. } => System::Etcd,
        }
    }

    /// Client addresses, `127.0.0.1:PORT`, in the order of node ids.
    #[must_use]
    pub fn endpoints(&self) -> Vec<String> {
        self.ids().map(|node| self.endpoint(node)).collect()
    }

    /// The client address of `node`.
    ///
    /// # Panics
    /// There is no such node.
    #[must_use]
    pub fn endpoint(&self, node: u64) -> String {
        loopback(self.ports.node(node).expect("nodes have ports").client)
    }

    /// The address of the health, status and metrics of `node`.
    ///
    /// # Panics
    /// There is no such node.
    #[must_use]
    pub fn http_endpoint(&self, node: u64) -> String {
        loopback(self.ports.node(node).expect("nodes have ports").http)
    }

    /// Where clients reach `node` through the network that can be made bad; without one, as
    /// [`Self::endpoint`].
    ///
    /// # Panics
    /// There is no such node.
    #[must_use]
    pub fn proxied_endpoint(&self, node: u64) -> String {
        let ports = self.ports.node(node).expect("nodes have ports");
        loopback(if self.network.is_some() { ports.client_proxy } else { ports.client })
    }

    /// The network between the nodes, and between them and clients.
    ///
    /// # Errors
    /// The cluster was started without one.
    pub fn network(&self) -> anyhow::Result<&Network> {
        self.network.as_ref().context("the cluster was started without a network of its own")
    }

    /// The log of `node`, all its lives together.
    #[must_use]
    pub fn log(&self, node: u64) -> PathBuf {
        self.root.path().join(format!("node-{node}.log"))
    }

    /// Keeps the data and logs when the cluster goes.
    pub fn keep_data(&mut self) {
        self.root.keep();
    }

    /// Where the nodes' data (`node-N`) and logs (`node-N.log`) lie.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The process of `node`.
    ///
    /// # Errors
    /// It was never started or was killed.
    pub fn process(&self, node: u64) -> anyhow::Result<&NodeProcess> {
        self.nodes[self.position(node)?].as_ref().with_context(|| format!("node {node} is not running"))
    }

    /// SIGKILL, and waits until the process is gone. Data stay.
    ///
    /// # Errors
    /// The node is not running.
    pub fn kill(&mut self, node: u64) -> anyhow::Result<()> {
        self.process_mut(node)?.kill()?;
        let position = self.position(node)?;
        self.nodes[position] = None;
        Ok(())
    }

    /// SIGKILL to all running nodes, as close together as one loop can, and waits until all are gone.
    ///
    /// # Errors
    /// A process cannot be waited for.
    pub fn kill_all(&mut self) -> anyhow::Result<()> {
        for process in self.nodes.iter_mut().flatten() {
            process.send_kill();
        }
        for node in &mut self.nodes {
            if let Some(mut process) = node.take() {
                process.kill()?;
            }
        }
        Ok(())
    }

    /// SIGTERM, and waits for the orderly end.
    ///
    /// # Errors
    /// The node is not running, or does not end in time.
    pub async fn terminate(&mut self, node: u64) -> anyhow::Result<ExitStatus> {
        let status = self.process_mut(node)?.terminate(scaled(STOP_PATIENCE)).await?;
        let position = self.position(node)?;
        self.nodes[position] = None;
        Ok(status)
    }

    /// Starts a node that does not run, on its data and ports.
    ///
    /// # Errors
    /// It runs, or cannot be started.
    pub fn restart(&mut self, node: u64) -> anyhow::Result<()> {
        let position = self.position(node)?;
        anyhow::ensure!(!self.running().contains(&node), "node {node} is running");
        let contacts: Vec<String> =
            self.ids().filter(|other| *other != node).map(|other| self.endpoint(other)).collect();
        let layout = Layout {
            kind: self.kinds.get(&node).unwrap_or(&self.options.kind),
            nodes: self.options.nodes,
            contacts: &contacts,
            ports: &self.ports,
            root: self.root.path(),
            extra_args: &self.options.extra_args,
            extra_env: &self.options.extra_env,
            proxied: self.network.is_some(),
            mindspore: self.options.mindspore,
        };
        let command = layout.command(node, self.joins.contains(&node))?;
        let process = NodeProcess::spawn(format!("node {node}"), command, &self.log(node))?;
        if let Some(network) = &self.network {
            network.node_started(node, process.pid());
        }
        self.nodes[position] = Some(process);
        Ok(())
    }

    /// What a node is from its next start on: another build of ours, on the same data.
    pub fn run_as(&mut self, node: u64, binary: &Path) {
        self.kinds.insert(node, Kind::Tripod { binary: binary.to_owned() });
    }

    /// Makes a machine ready for another node, which joins: its data go.
    ///
    /// # Errors
    /// A node runs there, or the data cannot be removed.
    pub fn vacate(&mut self, machine: u64) -> anyhow::Result<()> {
        anyhow::ensure!(!self.running().contains(&machine), "node {machine} is running");
        let data = self.root.path().join(format!("node-{machine}"));
        match std::fs::remove_dir_all(&data) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", data.display()));
            }
            _ => {}
        }
        self.joins.insert(machine);
        Ok(())
    }

    /// Where the node on a machine may be reached by its peers: directly, and through the network.
    ///
    /// # Panics
    /// There is no such machine.
    #[must_use]
    pub fn peers(&self, machine: u64) -> [String; 2] {
        let ports = self.ports.node(machine).expect("machines have ports");
        let proxied = if self.network.is_some() { ports.peer_proxy } else { ports.peer };
        [loopback(ports.peer), loopback(proxied)]
    }

    /// The nodes that have ended by themselves, and how; they count as stopped from now on.
    pub fn take_ended(&mut self) -> Vec<(u64, ExitStatus)> {
        let mut ended = Vec::new();
        for (node, process) in (1..).zip(&mut self.nodes) {
            if let Some(status) = process.as_mut().and_then(NodeProcess::ended) {
                ended.push((node, status));
                *process = None;
            }
        }
        ended
    }

    /// SIGSTOP: the node keeps its connections and does nothing.
    ///
    /// # Errors
    /// The node is not running.
    pub fn pause(&self, node: u64) -> anyhow::Result<()> {
        self.process(node)?.pause()
    }

    /// SIGCONT, after [`Self::pause`].
    ///
    /// # Errors
    /// The node is not running.
    pub fn resume(&self, node: u64) -> anyhow::Result<()> {
        self.process(node)?.resume()
    }

    /// Waits until every started node answers linearizable reads and one of them leads. A paused node
    /// does not answer: resume it first.
    ///
    /// # Errors
    /// Not in time, or a node ended; the text quotes the nodes' logs.
    pub async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let patience = deadline();
        let deadline = Instant::now() + patience;
        loop {
            let missing = self.missing().await;
            if missing.is_empty() {
                return Ok(());
            }
            if self.running().len() < self.nodes.iter().flatten().count() {
                return Err(self.complaint("a node ended"));
            }
            if Instant::now() >= deadline {
                return Err(self.complaint(&format!("not ready within {patience:?}: {}", missing.join("; "))));
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
    }

    /// The id of the leader, as it says itself; waits for one.
    ///
    /// # Errors
    /// There is none in time.
    pub async fn wait_for_leader(&mut self) -> anyhow::Result<u64> {
        let running = self.running();
        let endpoints: Vec<String> = running.iter().map(|node| self.endpoint(*node)).collect();
        let position = self.system().leader(&endpoints, deadline()).await?;
        Ok(running[position])
    }

    /// What keeps the cluster from being ready.
    async fn missing(&mut self) -> Vec<String> {
        let system = self.system();
        let mut missing = Vec::new();
        let mut leaders = 0;
        for node in self.ids().filter(|node| self.process(*node).is_ok()) {
            let address = self.endpoint(node);
            leaders += usize::from(matches!(system.role(&address).await, Ok(Role::Leader)));
            if let Err(reason) = system.serves(&address).await {
                missing.push(format!("node {node}: {reason:#}"));
            }
        }
        if leaders != 1 {
            missing.push(format!("{leaders} nodes lead"));
        }
        missing
    }

    /// An error that quotes the logs, and keeps them.
    fn complaint(&mut self, what: &str) -> anyhow::Error {
        self.root.keep();
        let mut text = format!("cluster in {}: {what}", self.root.path().display());
        for process in self.nodes.iter().flatten() {
            text.push_str(&format!("\n--- {}\n{}", process.name(), process.log_tail()));
        }
        anyhow::anyhow!(text)
    }

    fn process_mut(&mut self, node: u64) -> anyhow::Result<&mut NodeProcess> {
        let position = self.position(node)?;
        self.nodes[position].as_mut().with_context(|| format!("node {node} is not running"))
    }

    fn position(&self, node: u64) -> anyhow::Result<usize> {
        anyhow::ensure!((1..=self.nodes.len() as u64).contains(&node), "there is no node {node}");
        Ok(usize::try_from(node - 1)?)
    }
}

/// The proxies in front of every node's peer and client ports.
fn network(options: &ClusterOptions, ports: &PortBlock) -> anyhow::Result<Network> {
    let mut peers = Vec::new();
    let mut clients = Vec::new();
    for node in 1..=options.nodes + options.spares {
        let ports = ports.node(node)?;
        peers.push(Route { node, entry: ports.peer_proxy, target: ports.peer });
        clients.push(Route { node, entry: ports.client_proxy, target: ports.client });
    }
    Network::start(&peers, &clients)
}

/// The directory of a cluster: the caller's, or one that goes with the cluster.
enum Root {
    Given(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Root {
    fn new(given: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = given else {
            let prefix = "tripod-cluster-";
            let made = tempfile::Builder::new().prefix(prefix).tempdir().context("temporary directory")?;
            return Ok(Self::Temporary(made));
        };
        std::fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self::Given(path.to_owned()))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Given(path) => path,
            Self::Temporary(directory) => directory.path(),
        }
    }

    fn keep(&mut self) {
        if let Self::Temporary(directory) = self {
            directory.disable_cleanup(true);
        }
    }
}
