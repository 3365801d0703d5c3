//! The agents of the program's processes, one for each.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tempfile::TempDir;
use tripod_processes::cluster::{Agent, Cluster, ReservedPorts};
use tripod_tests::jobs::port_of;

use crate::cases::directed::program::{Manners, Program, Repeat, TASKS};
use crate::cases::directed::stage::{Stage, Way};
use crate::cases::nodes_in;

/// The task whose agent listens on a unix socket; those of the others on loopback.
const TASK_ON_SOCKET: u16 = 1;

/// How the program and its agents are started.
#[derive(Debug, Clone, Default)]
pub(super) struct Setup {
    pub(super) program: Manners,
    /// Agents leave polls to the job, which releases them; then clients survive an agent's death, and only
    /// gets that are cut by it are repeated.
    pub(super) release_polls: bool,
    /// Calls wait while the agent is away (`GRPC_FAIL_FAST=false`).
    pub(super) wait_for_agents: bool,
}

impl Setup {
    /// What agents are told. The first of them creates the job.
    fn flags(&self, nodes: &[String]) -> Vec<String> {
        let (cluster, heartbeat) = (nodes.join(","), self.program.heartbeat.as_secs().to_string());
        let (tasks, poll) = (TASKS.to_string(), if self.release_polls { "release" } else { "hold" });
        let flags = ["--cluster", &cluster, "--job", "train", "--tasks", &tasks, "--poll", poll];
        let flags = flags.into_iter().chain(["--heartbeat-timeout", &heartbeat]);
        flags.map(str::to_owned).collect()
    }

    /// With this heartbeat timeout.
    pub(super) fn beating(heartbeat: Duration) -> Self {
        Self { program: Manners { heartbeat, ..Manners::default() }, ..Self::default() }
    }

    fn manners(&self) -> Manners {
        let mut manners = self.program.clone();
        if self.release_polls {
            manners.repeat = Repeat::Gets;
        }
        if self.wait_for_agents {
            manners.variables.push(("GRPC_FAIL_FAST", "false".to_owned()));
        }
        manners
    }
}

/// Running agents.
pub(super) struct Agents {
    pub(super) all: Vec<Agent>,
    _ports: ReservedPorts,
    _sockets: TempDir,
}

impl Agents {
    /// Starts one for each process; they know the nodes at these addresses, in the order of preference.
    async fn start(folder: &Path, setup: &Setup, nodes: &[String]) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let ports = ReservedPorts::reserve(TASKS)?;
        // The path of a socket has room for some 100 bytes: a folder of its own keeps it short.
        let sockets = tempfile::tempdir().context("a folder for sockets")?;
        let mut all = Vec::new();
        for (task, port) in (0..TASKS).zip(ports.range()) {
            let place = match task {
                TASK_ON_SOCKET => format!("unix:{}", sockets.path().join("agent").display()),
                _ => format!("127.0.0.1:{port}"),
            };
            let log = folder.join(format!("agent-{task}.log"));
            all.push(Agent::start(&place, setup.flags(nodes), &log).await?);
        }
        Ok(Self { all, _ports: ports, _sockets: sockets })
    }
}

impl Way for Agents {
    fn addresses(&self) -> Vec<String> {
        self.all.iter().map(|agent| agent.place().to_owned()).collect()
    }

    fn connected(&self, _program: &mut Program) -> Vec<(usize, u32)> {
        self.all.iter().map(Agent::pid).enumerate().collect()
    }

    fn port(&self, cluster: &Cluster, node: u64) -> Result<u16> {
        port_of(&cluster.endpoint(node))
    }
}

/// A cluster with the program behind agents on it, which trains.
pub(super) async fn stage(python: &Path, folder: &Path, setup: &Setup) -> Result<Stage<Agents>> {
    let cluster = Cluster::start(nodes_in(folder)?).await?;
    let nodes = cluster.endpoints();
    stage_on(cluster, &nodes, python, folder, setup).await
}

/// The same on a cluster whose nodes are reached at these addresses.
pub(super) async fn stage_on(
    cluster: Cluster,
    nodes: &[String],
    python: &Path,
    folder: &Path,
    setup: &Setup,
) -> Result<Stage<Agents>> {
    let agents = Agents::start(folder, setup, nodes).await?;
    Stage::set(cluster, agents, python, folder, &setup.manners()).await
}
