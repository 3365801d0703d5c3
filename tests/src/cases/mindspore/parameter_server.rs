//! Nodes of a parameter server, as the library of MindSpore 2.0.0 has them. They register, are told of each other, scale, hear
//! of events and finish while nodes of the cluster die.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tripod_processes::cluster::Cluster;
use tripod_tests::python::Script;
use tripod_tests::wait;

use super::gang::{create, not_yet, tripod};
use crate::cases::{leader, nodes_in};

const JOB: &str = "servers";
const WORKER: &str = "wrk-0";
const SERVERS: [&str; 2] = ["srv-0", "srv-1"];
/// Nodes come from the loopback network and listen on another one, whichever the machine has.
const DIAL: &str = "--dial-allow=0.0.0.0/0";
/// Interpreters that import MindSpore, on two cores.
const BEGIN_LIMIT: Duration = Duration::from_secs(240);
/// All nodes are told something; their heartbeats find their node again.
const TOLD_LIMIT: Duration = Duration::from_secs(60);
/// One that leaves waits for five seconds.
const END_LIMIT: Duration = Duration::from_secs(60);
/// What a node of 2.0.0 says whenever it has connected to its scheduler.
const CONNECTED: &str = "The connection to scheduler has be established";
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// The nodes of MindSpore and their cluster.
struct Servers {
    // Fields drop in this order: clients go first.
    nodes: Vec<Script>,
    cluster: Cluster,
    /// Where all of them find their scheduler.
    scheduler: String,
    python: PathBuf,
    folder: PathBuf,
    /// The file that ends the programs.
    until: PathBuf,
}

pub(super) async fn run(python: &Path, folder: &Path) -> Result<String> {
    let (mut servers, node) = Servers::new(python, folder).await?;
    servers.start(WORKER, "MS_WORKER", 1)?;
    servers.start(SERVERS[0], "MS_PSERVER", 1)?;
    servers.all(BEGIN_LIMIT, |step| step["step"] == "ready").await?;

    let dead = leader::kill_leader_but(&mut servers.cluster, node).await?;
    servers.event(1).await?;
    servers.cluster.restart(dead)?;
    servers.cluster.wait_until_ready().await?;

    servers.scale(&["--servers", "+1"])?;
    servers.start(SERVERS[1], "MS_PSERVER", 2)?;
    servers.all(BEGIN_LIMIT, |step| step["step"] == "scaled" && step["out"] == true).await?;
    let ranks: Vec<Option<u64>> = servers.nodes.iter().map(rank).collect();
    ensure!(ranks == [Some(0), Some(0), Some(1)], "the ranks of a worker and two servers are {ranks:?}");

    servers.cluster.kill(node)?;
    servers.cluster.restart(node)?;
    servers.cluster.wait_until_ready().await?;
    servers.event(3).await?;
    servers.connected_again().await?;

    servers.scale(&["--leave", SERVERS[1]])?;
    servers.all(TOLD_LIMIT, |step| step["step"] == "scaled" && step["out"] == false).await?;
    servers.finish().await
}

impl Servers {
    /// A cluster with the job and no node of MindSpore yet, and the node that all of them will know, which does not lead.
    async fn new(python: &Path, folder: &Path) -> Result<(Self, u64)> {
        let options = nodes_in(folder)?.with_mindspore().with_args([DIAL]);
        let mut cluster = Cluster::start(options).await?;
        let leader = cluster.wait_for_leader().await?;
        let addresses = create(&cluster, JOB, &["--members", "worker:1,server:1"]).await?;
        let mut places = cluster.ids().zip(addresses);
        let (node, scheduler) = places.find(|(node, _)| *node != leader).context("no other node")?;
        let until = not_yet(folder)?;
        let (python, folder) = (python.to_owned(), folder.to_owned());
        Ok((Self { nodes: Vec::new(), cluster, scheduler, python, folder, until }, node))
    }

    /// Starts a node that expects so many servers.
    fn start(&mut self, name: &str, role: &str, servers: usize) -> Result<()> {
        let (host, port) = self.scheduler.rsplit_once(':').context("an address without a port")?;
        let servers = servers.to_string();
        let variables = [
            ("MS_ROLE", role),
            ("MS_SCHED_HOST", host),
            ("MS_SCHED_PORT", port),
            ("MS_WORKER_NUM", "1"),
            ("MS_SERVER_NUM", &servers),
            ("MS_NODE_ID", name),
        ];
        let until = self.until.to_str().context("the folder is no text")?;
        let arguments = ["--exit-with-parent", "--until", until];
        let (python, folder) = (&self.python, &self.folder);
        self.nodes.push(Script::start(python, "mindspore/ps_node.py", &arguments, &variables, folder, name)?);
        Ok(())
    }

    /// Waits until every node has had such a step.
    async fn all(&mut self, limit: Duration, fits: impl Fn(&Value) -> bool + Copy) -> Result<()> {
        for node in &mut self.nodes {
            node.wait_for_step(limit, fits).await?;
        }
        Ok(())
    }

    /// The worker tells all that something happened, as nodes before 2.0 do, and waits until all have heard of it.
    async fn event(&mut self, event: u8) -> Result<()> {
        let telling = async {
            let mut stream = TcpStream::connect(&self.scheduler).await?;
            stream.write_all(&frame(event)).await?;
            stream.read_u8().await
        };
        let told = tokio::time::timeout(wait::scaled(ANSWER_LIMIT), telling).await;
        told.context("an event has no answer")?.context("an event is not taken")?;
        self.all(TOLD_LIMIT, |step| step["event"] == event).await
    }

    /// Waits until every node has found its scheduler again. It notices that it is gone by its third heartbeat, and one that
    /// registers before, as scaling makes it do, ends when it hears nothing.
    async fn connected_again(&self) -> Result<()> {
        let again = |node: &Script| node.output().matches(CONNECTED).count() > 1;
        let all = || Ok(self.nodes.iter().all(again).then_some(()));
        wait::until("connections of all nodes", TOLD_LIMIT, all).await
    }

    fn scale(&self, to: &[&str]) -> Result<String> {
        let endpoints = self.cluster.endpoints().join(",");
        let scale = ["--endpoints", &endpoints, "mindspore", "scale", "--job", JOB, "--yes"];
        tripod(&[&scale, to].concat())
    }

    /// Lets the programs end. All say that all have finished, but for the one that has left.
    async fn finish(mut self) -> Result<String> {
        let mut left = self.nodes.pop().context("nobody has left")?;
        left.succeed(END_LIMIT).await?;
        fs::write(&self.until, "").with_context(|| format!("cannot write {}", self.until.display()))?;
        for node in &mut self.nodes {
            node.succeed(END_LIMIT).await?;
        }
        self.all(END_LIMIT, |step| step["step"] == "end" && step["finished"] == true).await?;
        Ok("scaled out and in, two events, all have finished".to_owned())
    }
}

/// As it was when all nodes were there.
fn rank(node: &Script) -> Option<u64> {
    node.steps().iter().rev().find_map(|step| step["rank"].as_u64())
}

/// SEND_EVENT of the worker, whose name has five bytes.
fn frame(event: u8) -> Vec<u8> {
    let meta = [8, 12, 16, 9];
    let message = [&[8, event, 18, 5][..], WORKER.as_bytes()].concat();
    // Format 1; the length of the meta; that of both.
    let head = [1, 0, 0, 0, 4, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0];
    [&head[..], &meta, &message].concat()
}
