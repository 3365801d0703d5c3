//! A training with `MultiWorkerMirroredStrategy` that knows the cluster by `TF_CONFIG` alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};
use tripod_processes::cluster::connections::connections_to;
use tripod_processes::cluster::{Cluster, ReservedPorts, find_tripod};
use tripod_tests::jobs::{self, port_of};
use tripod_tests::python::Script;

use super::{faults, job};
use crate::cases::{leader, nodes_in};

const JOB: &str = "train";
/// The job's groups, with one process each.
const GROUPS: [&str; 2] = ["chief", "worker"];
/// What the strategy's clients assume.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// The step at which the leader is killed: the program is well under way.
const FAULT_AT: u64 = 5;
/// Interpreter start, registration and compilation of two processes on two cores.
const FIRST_STEPS_LIMIT: Duration = Duration::from_secs(150);
/// Some steps with an election between them.
const STEPS_LIMIT: Duration = Duration::from_secs(45);
const END_LIMIT: Duration = Duration::from_secs(60);

/// The leader is killed while both workers are attached to another node, and comes back.
pub(super) async fn leader_killed(python: &Path, folder: &Path) -> Result<String> {
    let cluster = Cluster::start(nodes_in(folder)?).await?;
    let mut training = Training::new(cluster, folder).await?;
    let endpoints = training.cluster.endpoints();
    job::create(&endpoints, JOB, HEARTBEAT, &GROUPS, &training.ports)?;
    let addresses = jobs::addresses(&jobs::client(&endpoints)?, JOB, endpoints.len() as u64).await?;
    let nodes = training.cluster.ids().zip(&addresses);
    let (node, attached) = { nodes }.find(|(node, _)| *node != training.leader).context("no other node")?;
    for group in GROUPS {
        training.start(Command::new(python), group, Some(attached))?;
    }
    training.reach(FAULT_AT, FIRST_STEPS_LIMIT).await?;
    for worker in &training.workers {
        let count = connections_to(worker.pid(), port_of(attached)?)?;
        ensure!(count > 0, "a worker has no connection to its coordinator");
    }
    let dead = leader::kill_leader_but(&mut training.cluster, node).await?;
    training.survive(dead).await?;
    training.finish().await
}

/// Each worker is the program of a `tripod run`, which makes the job and adds its agent to `TF_CONFIG`. The
/// leader, which agents prefer, is killed and comes back.
pub(super) async fn behind_agents(python: &Path, folder: &Path) -> Result<String> {
    let cluster = Cluster::start(nodes_in(folder)?).await?;
    let mut training = Training::new(cluster, folder).await?;
    let nodes = job::preferring(&training.cluster, training.leader);
    for group in GROUPS {
        let mut run = Command::new(find_tripod()?);
        run.args(["run", "--job", JOB, "--cluster", &nodes.join(",")]);
        run.args(["--heartbeat-timeout", &HEARTBEAT.as_secs().to_string()]);
        run.args(job::member_flags(&GROUPS, &training.ports)).arg("--").arg(python);
        training.start(run, group, None)?;
    }
    training.reach(FAULT_AT, FIRST_STEPS_LIMIT).await?;
    let agents: Vec<Vec<u32>> = training.workers.iter().map(Script::children).collect::<Result<_>>()?;
    let dead = faults::kill_leader_and_attached(&mut training.cluster, &agents).await?;
    training.survive(dead).await?;
    training.finish().await
}

/// The workers and their cluster.
struct Training {
    // Fields drop in this order: clients go first.
    workers: Vec<Script>,
    cluster: Cluster,
    leader: u64,
    /// Where workers listen for each other.
    ports: ReservedPorts,
    folder: PathBuf,
    /// The file that ends the training.
    until: PathBuf,
}

impl Training {
    async fn new(mut cluster: Cluster, folder: &Path) -> Result<Self> {
        let ports = ReservedPorts::reserve(u16::try_from(GROUPS.len())?)?;
        let leader = cluster.wait_for_leader().await?;
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let until = folder.join("finish");
        if until.exists() {
            fs::remove_file(&until).with_context(|| format!("cannot remove {}", until.display()))?;
        }
        Ok(Self { workers: Vec::new(), cluster, leader, ports, folder: folder.to_owned(), until })
    }

    /// Starts a worker as any program of this strategy is started, by a command line that ends with the
    /// interpreter. A job named `ps` is where the strategy looks for the coordination service.
    fn start(&mut self, command: Command, group: &str, coordinator: Option<&str>) -> Result<()> {
        let listeners = GROUPS.iter().zip(self.ports.range());
        let listeners = listeners.map(|(group, port)| ((*group).to_owned(), format!("127.0.0.1:{port}")));
        let tasks = listeners.chain(coordinator.map(|address| ("ps".to_owned(), address.to_owned())));
        let tasks: Map<String, Value> = tasks.map(|(group, address)| (group, json!([address]))).collect();
        let config = json!({"cluster": tasks, "task": {"type": group, "index": 0}}).to_string();
        let arguments =
            ["--exit-with-parent", "--until", self.until.to_str().context("the folder is no text")?];
        let variables = [("TF_CONFIG", config.as_str())];
        let (file, folder) = ("tensorflow/train.py", &self.folder);
        self.workers.push(Script::start_by(command, file, &arguments, &variables, folder, group)?);
        Ok(())
    }

    /// Goes on training without the node that was just killed, and with it again.
    async fn survive(&mut self, dead: u64) -> Result<()> {
        self.cluster.wait_for_leader().await?;
        self.go_on().await?;
        self.cluster.restart(dead)?;
        self.cluster.wait_until_ready().await?;
        self.go_on().await
    }

    /// Waits until every worker has done step `number`.
    async fn reach(&mut self, number: u64, limit: Duration) -> Result<()> {
        for worker in &mut self.workers {
            worker
                .wait_for_step(limit, |step| step["number"].as_u64().is_some_and(|at| at >= number))
                .await?;
        }
        Ok(())
    }

    /// Waits for two more steps of every worker: one of them began after this call.
    async fn go_on(&mut self) -> Result<()> {
        let furthest = self.workers.iter().filter_map(last_number).max().unwrap_or_default();
        self.reach(furthest + 2, STEPS_LIMIT).await
    }

    /// Lets the training end, which every worker must do with success.
    async fn finish(mut self) -> Result<String> {
        fs::write(&self.until, "").with_context(|| format!("cannot write {}", self.until.display()))?;
        for worker in &mut self.workers {
            worker.succeed(END_LIMIT).await?;
        }
        let steps = last_number(&self.workers[0]).context("no step was trained")?;
        Ok(format!("{} steps were right", steps + 1))
    }
}

fn last_number(worker: &Script) -> Option<u64> {
    worker.steps().iter().filter_map(|step: &Value| step["number"].as_u64()).max()
}
