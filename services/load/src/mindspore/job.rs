//! A job for a cluster, and where its nodes find it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::Instant;
use tripod_client::wire::{JobSpec, OwnJobPort, TaskGroup};
use tripod_client::{Client, Config};

/// What the ports are called that speak the protocols.
const PROTOCOL: &str = "mindspore";
/// How long nodes may be waited for that a cluster expects.
const REGISTER_TIMEOUT_MS: u64 = 600_000;
/// How long all nodes of ours may take to open their ports.
const OPEN_PATIENCE: Duration = Duration::from_secs(60);
const LOOK_LIMIT: Duration = Duration::from_secs(2);
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// How many nodes a cluster is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub workers: u32,
    pub servers: u32,
}

impl Size {
    /// All together.
    #[must_use]
    pub fn total(self) -> u32 {
        self.workers + self.servers
    }
}

/// A job whose cluster nodes can come to.
#[derive(Debug, Clone)]
pub struct Job {
    pub name: String,
    /// Where nodes connect, one address for each node of ours, in the order of their client addresses.
    pub addresses: Arc<[String]>,
    client: Client,
}

impl Job {
    /// Creates a job, and waits until every node that answers has opened its port.
    ///
    /// # Errors
    /// The job cannot be created, or a node has no port for it: `--mindspore-ports` says which it has.
    pub async fn create(endpoints: Vec<String>, name: &str, size: Size) -> anyhow::Result<Self> {
        let client = Client::new(&Config::new(endpoints))?;
        let group = |name: &str, tasks| TaskGroup { name: name.to_owned(), tasks };
        let groups = [group("worker", size.workers), group("server", size.servers)];
        let spec = JobSpec {
            tasks: size.total(),
            register_timeout_ms: REGISTER_TIMEOUT_MS,
            groups: groups.into_iter().filter(|group| group.tasks > 0).collect(),
            ..JobSpec::default()
        };
        let deadline = Instant::now() + OPEN_PATIENCE;
        let id = loop {
            // Whether an attempt before this one created it is not known; no other job has its name.
            if let Some(job) = client.jobs().get(name).await? {
                break job.id;
            }
            match client.jobs().create(name, &spec).await {
                Ok(job) => break job.id,
                Err(error) if Instant::now() >= deadline => {
                    return Err(error).with_context(|| format!("cannot create job {name}"));
                }
                Err(_) => tokio::time::sleep(LOOK_PAUSE).await,
            }
        };
        let addresses = opened(&client, id, deadline).await?;
        Ok(Self { name: name.to_owned(), addresses: addresses.into(), client })
    }

    /// Deletes the job with its cluster.
    ///
    /// # Errors
    /// As any call.
    pub async fn delete(self) -> anyhow::Result<()> {
        self.client
            .jobs()
            .delete(&self.name)
            .await
            .with_context(|| format!("cannot delete job {}", self.name))?;
        Ok(())
    }
}

/// The addresses of a job, once every node has opened one.
async fn opened(client: &Client, job: u64, deadline: Instant) -> anyhow::Result<Vec<String>> {
    loop {
        let answers = client.status(LOOK_LIMIT, false).await;
        let nodes = answers.len();
        let told = answers.into_iter().filter_map(|answer| answer.status.ok());
        let ports = told.filter_map(|status| {
            let is_it = |port: &OwnJobPort| port.job_id == job && port.protocol == PROTOCOL;
            status.own_job_ports.into_iter().find(is_it)
        });
        let ports: Vec<OwnJobPort> = ports.collect();
        let open: Vec<String> =
            ports.iter().filter(|port| port.reason.is_empty()).map(|port| port.address.clone()).collect();
        if open.len() == nodes {
            return Ok(open);
        }
        if Instant::now() >= deadline {
            let why = ports.iter().find(|port| !port.reason.is_empty()).map_or("", |port| &port.reason);
            bail!(
                "{} of {nodes} nodes have opened a port for nodes of MindSpore {why}; they have some with \
                 --mindspore-ports",
                open.len()
            );
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}
