//! Two workers, their cluster, and what is asked of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tripod_processes::cluster::{Agent, Cluster, find_tripod};
use tripod_tests::python::Script;
use tripod_tests::wait;

use crate::cases::nodes_in;

const JOB: &str = "reduce";
pub(super) const WORKERS: usize = 2;
/// The step at which something happens: the program is well under way.
const FAULT_AT: u64 = 5;
/// Two interpreters that import MindSpore, meet and compile, on two cores.
const FIRST_STEPS_LIMIT: Duration = Duration::from_secs(240);
/// Some steps: nothing in them needs the scheduler.
const STEPS_LIMIT: Duration = Duration::from_secs(60);
/// Steps of a minute, by the pace of the program.
const STEPS_OF_A_MINUTE: u64 = 240;
const MINUTE_LIMIT: Duration = Duration::from_secs(240);
/// Workers say goodbye to the scheduler and to each other.
const END_LIMIT: Duration = Duration::from_secs(120);
/// Until every node has opened the port of a new job.
const OPEN_LIMIT: Duration = Duration::from_secs(30);

/// What workers are told besides the scheduler: that it may be away for a while. Each release reads its own of these.
const PATIENT: [(&str, &str); 2] = [("MS_ENABLE_RECOVERY", "1"), ("MS_HEARTBEAT_RETRY_TIMEOUT", "60")];

/// The workers and their cluster.
pub(super) struct Gang {
    // Fields drop in this order: clients go first.
    /// One for each worker, or a launcher that passes on what all of its workers print.
    workers: Vec<Script>,
    /// What workers take for their scheduler, if that is no node.
    agent: Option<Agent>,
    pub(super) cluster: Cluster,
    /// The address of the job at each node, in the order of their ids.
    addresses: Vec<String>,
    python: PathBuf,
    folder: PathBuf,
    /// The file that ends the program.
    until: PathBuf,
}

impl Gang {
    /// A cluster with the job, and no worker yet.
    pub(super) async fn new(python: &Path, folder: &Path) -> Result<Self> {
        let mut cluster = Cluster::start(nodes_in(folder)?.with_mindspore()).await?;
        cluster.wait_for_leader().await?;
        let addresses = create(&cluster, JOB, &["--tasks", &WORKERS.to_string()]).await?;
        let until = not_yet(folder)?;
        let (python, folder) = (python.to_owned(), folder.to_owned());
        Ok(Self { workers: Vec::new(), agent: None, cluster, addresses, python, folder, until })
    }

    /// Starts both workers, which know that node and no other, and waits until they are well under way.
    pub(super) async fn begin(&mut self, node: u64) -> Result<()> {
        for id in 0..WORKERS {
            let worker = self.start(id, node, &format!("worker-{id}"))?;
            self.workers.push(worker);
        }
        self.reach(FAULT_AT, FIRST_STEPS_LIMIT).await
    }

    /// The same at an agent, which uses that node as long as it lives. Workers are told nothing of a scheduler that may be away.
    pub(super) async fn begin_at_agent(&mut self, node: u64) -> Result<()> {
        self.start_agent(node, "127.0.0.1:0").await?;
        self.begin(node).await
    }

    /// The same by MindSpore's own launcher. It starts a scheduler of its own where it finds the scheduler's address among
    /// those of its machine's interfaces; this one works as well, and is not among them.
    pub(super) async fn begin_by_launcher(&mut self, node: u64) -> Result<()> {
        self.start_agent(node, "127.0.0.2:0").await?;
        let (scheduler, logs) = (self.scheduler(node)?, self.folder.join("msrun"));
        let count = WORKERS.to_string();
        let arguments = [
            "--scheduler",
            &scheduler,
            "--workers",
            &count,
            "--logs",
            logs.to_str().context("the folder is no text")?,
            "--until",
            self.until.to_str().context("the folder is no text")?,
        ];
        let launcher =
            Script::start(&self.python, "mindspore/msrun.py", &arguments, &[], &self.folder, "launcher")?;
        self.workers.push(launcher);
        self.reach(FAULT_AT, FIRST_STEPS_LIMIT).await
    }

    /// An agent that uses that node as long as it lives, and listens there for workers.
    async fn start_agent(&mut self, node: u64, address: &str) -> Result<()> {
        let others = self.cluster.ids().filter(|known| *known != node);
        let nodes: Vec<_> =
            [node].into_iter().chain(others).map(|node| self.cluster.endpoint(node)).collect();
        let cluster = format!("--cluster={}", nodes.join(","));
        let flags = vec![format!("--mindspore={address}"), cluster, format!("--job={JOB}")];
        self.agent = Some(Agent::start("127.0.0.1:0", flags, &self.folder.join("agent.log")).await?);
        Ok(())
    }

    /// Where a worker finds its scheduler.
    fn scheduler(&self, node: u64) -> Result<String> {
        let Some(agent) = &self.agent else {
            let place = self.cluster.ids().position(|known| known == node).context("no such node")?;
            return Ok(self.addresses[place].clone());
        };
        let said = agent.output();
        let place = said.split(" for MindSpore").next().and_then(|before| before.split_whitespace().last());
        Ok(place.with_context(|| format!("the agent said: {said}"))?.to_owned())
    }

    /// Starts worker `id` with its output under that name.
    fn start(&self, id: usize, node: u64, name: &str) -> Result<Script> {
        let scheduler = self.scheduler(node)?;
        let (host, port) = scheduler.rsplit_once(':').context("an address without a port")?;
        let (count, id) = (WORKERS.to_string(), id.to_string());
        let mut variables = vec![
            ("MS_ROLE", "MS_WORKER"),
            ("MS_SCHED_HOST", host),
            ("MS_SCHED_PORT", port),
            ("MS_WORKER_NUM", &count),
            ("MS_SERVER_NUM", "0"),
            ("MS_NODE_ID", &id),
        ];
        if self.agent.is_none() {
            variables.extend(PATIENT);
        }
        // Releases up to 2.2 want a place of their own for that.
        let recovery = self.folder.join(format!("recovery-{id}"));
        fs::create_dir_all(&recovery).with_context(|| format!("cannot make {}", recovery.display()))?;
        variables.push(("MS_RECOVERY_PATH", recovery.to_str().context("the folder is no text")?));
        let arguments =
            ["--exit-with-parent", "--until", self.until.to_str().context("the folder is no text")?];
        Script::start(&self.python, "mindspore/train.py", &arguments, &variables, &self.folder, name)
    }

    /// Kills a worker without a word to anybody.
    pub(super) fn kill_worker(&mut self, id: usize) {
        self.workers.remove(id);
    }

    /// Starts it again at that node.
    pub(super) fn start_again(&mut self, id: usize, node: u64) -> Result<()> {
        let worker = self.start(id, node, &format!("worker-{id}-again"))?;
        self.workers.insert(id, worker);
        Ok(())
    }

    /// The worker.
    pub(super) fn worker(&mut self, id: usize) -> &mut Script {
        &mut self.workers[id]
    }

    /// Waits until every worker has done step `number`.
    async fn reach(&mut self, number: u64, limit: Duration) -> Result<()> {
        for id in 0..WORKERS {
            let fits =
                |step: &Value| is_of(step, id) && step["number"].as_u64().is_some_and(|at| at >= number);
            self.script_of(id).wait_for_step(limit, fits).await?;
        }
        Ok(())
    }

    /// What prints the steps of a worker.
    fn script_of(&mut self, id: usize) -> &mut Script {
        let place = if self.workers.len() == 1 { 0 } else { id };
        &mut self.workers[place]
    }

    /// Waits for three more steps of every worker: two of them began after this call.
    pub(super) async fn go_on(&mut self) -> Result<()> {
        let furthest = self.workers.iter().filter_map(last_number).max().unwrap_or_default();
        self.reach(furthest + 3, STEPS_LIMIT).await
    }

    /// The same, and until the program has done the steps of a minute in all.
    pub(super) async fn go_on_for_a_minute(&mut self) -> Result<()> {
        self.go_on().await?;
        self.reach(STEPS_OF_A_MINUTE, MINUTE_LIMIT).await
    }

    /// Lets the program end. Every worker says how many steps it did, and all did as many. What MindSpore does after that,
    /// when the interpreter is taken down, is not judged: it sometimes crashes there at its own scheduler, too.
    pub(super) async fn finish(mut self) -> Result<String> {
        fs::write(&self.until, "").with_context(|| format!("cannot write {}", self.until.display()))?;
        for script in &mut self.workers {
            script.finish(END_LIMIT).await?;
        }
        let mut steps = Vec::new();
        for id in 0..WORKERS {
            let worker = self.script_of(id);
            let end = worker.steps().into_iter().find(|step| is_of(step, id) && step["step"] == "end");
            let end =
                end.with_context(|| format!("a worker ended before its last step:\n{}", worker.output()))?;
            steps.push(end["steps"].as_u64().context("an end without its steps")?);
        }
        ensure!(steps.iter().all(|count| *count == steps[0]), "the workers did {steps:?} steps");
        Ok(format!("{} steps were right", steps[0]))
    }
}

/// Creates a job of that size; its address for MindSpore at each node, in the order of their ids.
pub(super) async fn create(cluster: &Cluster, job: &str, size: &[&str]) -> Result<Vec<String>> {
    let endpoints = cluster.endpoints().join(",");
    tripod(&[&["--endpoints", &endpoints, "job", "create", job], size].concat())?;
    let nodes = cluster.ids().count();
    wait::until("the job's ports for MindSpore", OPEN_LIMIT, || {
        let shown = tripod(&["--endpoints", &endpoints, "job", "show", job, "-o", "json"])?;
        let job: Value = serde_json::from_str(&shown).with_context(|| format!("job show said: {shown}"))?;
        let found = job["mindspore_addresses"].as_array().into_iter().flatten();
        let found: Vec<String> = found.filter_map(|address| Some(address.as_str()?.to_owned())).collect();
        Ok((found.len() == nodes).then_some(found))
    })
    .await
}

/// The file that ends the programs, which is not there yet.
pub(super) fn not_yet(folder: &Path) -> Result<PathBuf> {
    let until = folder.join("finish");
    if until.exists() {
        fs::remove_file(&until).with_context(|| format!("cannot remove {}", until.display()))?;
    }
    Ok(until)
}

/// Whether that worker has done the step: a launcher says whose it is.
fn is_of(step: &Value, id: usize) -> bool {
    step["worker"].as_u64().is_none_or(|worker| usize::try_from(worker) == Ok(id))
}

fn last_number(worker: &Script) -> Option<u64> {
    worker.steps().iter().filter_map(|step| step["number"].as_u64()).max()
}

/// Runs the command line to its end; what it printed.
pub(super) fn tripod(arguments: &[&str]) -> Result<String> {
    let output = Command::new(find_tripod()?).args(arguments).output().context("cannot start tripod")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "tripod {arguments:?} ended with {}: {complaint}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
