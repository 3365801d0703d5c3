//! Jobs for clients under test.

use std::time::Duration;

use anyhow::{Context as _, Result};
use tripod_client::{Client, Config, wire};

use crate::wait::scaled;

/// How long a call may take while nodes are killed.
const PATIENCE: Duration = Duration::from_secs(30);

/// How clients learn of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Poll {
    /// Polls are answered at once; errors come with heartbeats.
    Release,
    /// Polls are held, as jaxlib's own service does.
    Hold,
}

/// A client of the nodes at `endpoints`.
///
/// # Errors
/// An endpoint is no `HOST:PORT`.
pub fn client(endpoints: &[String]) -> Result<Client> {
    let mut config = Config::new(endpoints.to_vec());
    config.timeout = scaled(PATIENCE);
    Ok(Client::new(&config)?)
}

/// What a job is created with.
///
/// # Errors
/// The heartbeat timeout is not of this world.
pub fn spec(tasks: u32, heartbeat: Duration, poll: Poll) -> Result<wire::JobSpec> {
    let poll = match poll {
        Poll::Release => wire::PollMode::Release,
        Poll::Hold => wire::PollMode::Hold,
    };
    Ok(wire::JobSpec {
        tasks,
        heartbeat_timeout_ms: u64::try_from(heartbeat.as_millis()).context("heartbeat timeout")?,
        poll: poll.into(),
        ..wire::JobSpec::default()
    })
}

/// Creates a job and gives its addresses in the order of node ids: those of the nodes that have announced themselves.
///
/// # Errors
/// The cluster refused.
pub async fn create(client: &Client, name: &str, spec: &wire::JobSpec) -> Result<Vec<String>> {
    Ok(in_order(client.jobs().create(name, spec).await?))
}

/// The addresses of a job, one for each of so many nodes, in the order of their ids.
///
/// # Errors
/// There is no such job, or not every node has announced itself in time.
pub async fn addresses(client: &Client, name: &str, nodes: u64) -> Result<Vec<String>> {
    let complete = async {
        loop {
            let job = client.jobs().get(name).await?.with_context(|| format!("job {name} is gone"))?;
            if job.addresses.len() as u64 == nodes {
                return Ok(in_order(job));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let found = tokio::time::timeout(scaled(PATIENCE), complete).await;
    found
        .with_context(|| format!("not all of {nodes} nodes have told their addresses within {PATIENCE:?}"))?
}

/// The highest term that a node knows: another one than before means that there was an election.
///
/// # Errors
/// No node answers.
pub async fn newest_term(client: &Client) -> Result<u64> {
    let answers = client.status(scaled(PATIENCE), false).await;
    let terms = answers.iter().filter_map(|answer| answer.status.as_ref().ok()).map(|status| status.term);
    terms.max().context("no node tells its term")
}

fn in_order(job: wire::Job) -> Vec<String> {
    let mut addresses = job.addresses;
    addresses.sort_by_key(|address| address.node_id);
    addresses.into_iter().map(|address| address.address).collect()
}

/// The job's service incarnation, which must never change.
///
/// # Errors
/// There is no such job, or no answer.
pub async fn incarnation(client: &Client, name: &str) -> Result<u64> {
    let job = client.jobs().get(name).await?.with_context(|| format!("job {name} is gone"))?;
    Ok(job.service_incarnation)
}

/// The port of `HOST:PORT`.
///
/// # Errors
/// The text is something else.
pub fn port_of(address: &str) -> Result<u16> {
    let (_, port) = address.rsplit_once(':').with_context(|| format!("{address} is no HOST:PORT"))?;
    port.parse().with_context(|| format!("{address} is no HOST:PORT"))
}
