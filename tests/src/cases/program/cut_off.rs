//! A node is cut off from the other nodes, and from nobody else, while everybody is attached to it.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tripod_processes::cluster::{NodePorts, NodeProcess, PortBlock, find_tripod};
use tripod_tests::jobs::{self, Poll, port_of};

use super::training::{Manners, TASKS, Training};
use crate::cases::agent::swallow::Path as Way;
use crate::logs;

const NODES: u64 = 3;
const JOB: &str = "train";
/// The step at which the node is cut off: the program is well under way.
const FAULT_AT: u64 = 5;
/// Shorter than where nodes die: the program trains on until it is over, and is waited for.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// After this time the leader would have given up whoever it did not hear of.
const GIVEN_UP: Duration = Duration::from_secs(HEARTBEAT.as_secs() + 5);

/// Nodes that reach each other by ways which can be cut.
struct Nodes {
    // Fields drop in this order: ports are given back when the processes are gone.
    processes: Vec<NodeProcess>,
    ways: Vec<(u64, u64, Way)>,
    ports: PortBlock,
}

impl Nodes {
    async fn start(folder: &Path) -> Result<Self> {
        let mut nodes = Self { processes: Vec::new(), ways: Vec::new(), ports: PortBlock::reserve()? };
        for from in 1..=NODES {
            for to in (1..=NODES).filter(|to| *to != from) {
                let peer = loopback(nodes.ports.node(to)?.peer);
                // One host for each origin: a connection itself does not tell where it comes from.
                let way = Way::open_at(&format!("127.0.1.{from}"), &peer).await?;
                nodes.ways.push((from, to, way));
            }
        }
        for node in 1..=NODES {
            let command = nodes.command(node, folder)?;
            let log = folder.join(format!("node-{node}.log"));
            nodes.processes.push(NodeProcess::spawn(format!("node {node}"), command, &log)?);
        }
        Ok(nodes)
    }

    fn command(&self, node: u64, folder: &Path) -> Result<Command> {
        let NodePorts { client, peer, http, jobs, .. } = self.ports.node(node)?;
        let mut initial = vec![format!("{node}={}", loopback(peer))];
        let others = self.ways.iter().filter(|(from, ..)| *from == node);
        initial.extend(others.map(|(_, to, way)| format!("{to}={}", way.address())));
        let mut command = Command::new(find_tripod()?);
        command.args(["server", "--cluster-id", "cut-off", "--node", &node.to_string()]);
        command.arg("--data").arg(folder.join(format!("node-{node}")));
        command.args(["--client", &loopback(client), "--peer", &loopback(peer), "--http", &loopback(http)]);
        command.args(["--job-ports", &format!("{}-{}", jobs.0, jobs.1), "--initial", &initial.join(",")]);
        command.arg("--exit-with-parent");
        Ok(command)
    }

    fn endpoints(&self) -> Result<Vec<String>> {
        (1..=NODES).map(|node| Ok(loopback(self.ports.node(node)?.client))).collect()
    }

    /// Lets nothing pass between a node and the others, or all of it again.
    fn cut_off(&self, node: u64, cut: bool) {
        let its = self.ways.iter().filter(|(from, to, _)| *from == node || *to == node);
        its.for_each(|(_, _, way)| way.swallow(cut));
    }
}

/// (f) Nobody may be given up, and of each process one call at most may be cut.
pub(super) async fn run(python: &Path, folder: &Path) -> Result<String> {
    let data = folder.join(logs::CLUSTER);
    std::fs::create_dir_all(&data).with_context(|| format!("cannot make {}", data.display()))?;
    let nodes = Nodes::start(&data).await?;
    let client = jobs::client(&nodes.endpoints()?)?;
    jobs::create(&client, JOB, &jobs::spec(TASKS, HEARTBEAT, Poll::Release)?).await?;
    let mut addresses = jobs::addresses(&client, JOB, NODES).await?;
    let leader = leader(&client).await?;
    let node = (1..=NODES).find(|node| *node != leader).context("one of three nodes leads")?;
    addresses.rotate_left(usize::try_from(node)? - 1);
    let port = port_of(&addresses[0])?;
    let manners = Manners { heartbeat: HEARTBEAT, repeat_cut_calls: true, ..Manners::PLAIN };
    let mut training = Training::start(python, folder, &addresses, manners)?;
    training.reach(FAULT_AT).await?;
    let attached = training.connections(port)?;
    ensure!(attached.iter().all(|count| *count > 0), "not all clients are attached: {attached:?}");

    nodes.cut_off(node, true);
    let begin = Instant::now();
    while begin.elapsed() < GIVEN_UP {
        training.go_on().await.with_context(|| format!("node {node} is cut off, {leader} led"))?;
    }
    let attached = training.connections(port)?;
    let said = std::fs::read_to_string(data.join(format!("node-{node}.log"))).unwrap_or_default();
    ensure!(
        attached.iter().all(|count| *count == 0),
        "clients are still attached: {attached:?}; node {node}, which was cut off, said:\n{said}"
    );
    nodes.cut_off(node, false);
    training.go_on().await.context("contact is found again")?;
    let repeats = training.finish().await?;
    ensure!(repeats <= u64::from(TASKS), "{repeats} calls of {TASKS} processes were cut");
    Ok(format!("{repeats} calls were repeated"))
}

async fn leader(client: &tripod_client::Client) -> Result<u64> {
    let answers = client.status(Duration::from_secs(10), false).await;
    // 0 stands for nobody.
    let mut known = answers.iter().filter_map(|answer| Some(answer.status.as_ref().ok()?.leader_id));
    known.find(|leader| *leader != 0).context("no node knows a leader")
}

fn loopback(port: u16) -> String {
    format!("127.0.0.1:{port}")
}
