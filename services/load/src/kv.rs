//! Puts and gets of small values.

use std::fmt;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use clap::ValueEnum;
use rand::rngs::SmallRng;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use tonic::Status;

use crate::closed_loop::{self, Plan};
use crate::connect;
use crate::report::{Report, Setting};
use crate::system::{self, Freshness, System};

/// How long to look for a leader, and for a connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// Writers that fill the key space before reads are measured.
const FILLERS: u64 = 64;
/// The folder of all keys of a bench.
pub const FOLDER: &str = "bench/key";

/// What each client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Op {
    /// A replicated, durable write.
    Put,
    /// A linearizable read.
    Get,
    /// A read of the asked node's memory, possibly old.
    LocalGet,
}

/// The nodes that clients speak to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Target {
    Leader,
    /// All nodes but the leader, in turn.
    Follower,
    /// All nodes, in turn.
    Any,
}

/// One measurement.
#[derive(Debug, Clone)]
pub struct Options {
    pub system: System,
    pub endpoints: Vec<String>,
    pub op: Op,
    pub target: Target,
    pub clients: usize,
    /// TCP connections that the clients share.
    pub connections: usize,
    /// Streams of calls that the clients share instead, each over a connection of its own; 0: calls go by themselves.
    pub streams: usize,
    pub value_bytes: usize,
    /// Different keys; each request picks one at random.
    pub keys: u64,
    pub plan: Plan,
}

/// Runs one measurement. Reads need [`fill`] before.
///
/// # Errors
/// No leader, or no connection.
pub async fn run(options: &Options) -> anyhow::Result<Report> {
    run_between(options, &mut || ()).await
}

/// [`run`], with `edge` called when the measured window begins and when it ends.
///
/// # Errors
/// As [`run`].
pub async fn run_between(options: &Options, edge: &mut (dyn FnMut() + Send)) -> anyhow::Result<Report> {
    let pool = pool(options).await?;
    let value = random_value(options.value_bytes);
    let workers = (0..options.clients).zip(pool.iter().cycle()).map(|(number, client)| Worker {
        client: client.clone(),
        op: options.op,
        keys: options.keys,
        value: value.clone(),
        random: SmallRng::seed_from_u64(number as u64),
    });
    let (outcome, _) = closed_loop::run_between(options.plan, workers.collect(), edge).await?;
    let setting = Setting {
        op: &options.op.to_string(),
        system: options.system.name(),
        clients: options.clients,
        connections: pool.len(),
        target: &options.target.to_string(),
        value_bytes: Some(options.value_bytes),
    };
    Ok(Report::new(setting, &outcome).with_streams(options.streams))
}

/// Writes every key once, so that reads find what they ask for.
///
/// # Errors
/// No leader, no connection, or a write failed.
pub async fn fill(options: &Options) -> anyhow::Result<()> {
    let pool = pool(options).await?;
    let value = random_value(options.value_bytes);
    let fillers = (0..FILLERS).zip(pool.iter().cycle()).map(|(first, client)| {
        let (mut client, value, keys) = (client.clone(), value.clone(), options.keys);
        tokio::spawn(async move {
            for number in (first..keys).step_by(FILLERS as usize) {
                client.put(key(number), value.clone()).await?;
            }
            Ok::<(), Status>(())
        })
    });
    for filler in fillers.collect::<Vec<_>>() {
        filler.await.context("a writer panicked")?.context("cannot fill the key space")?;
    }
    Ok(())
}

/// The name of the key with this number.
#[must_use]
pub fn key(number: u64) -> String {
    format!("{FOLDER}/{number:012}")
}

/// Bytes that no storage can compress.
fn random_value(bytes: usize) -> Bytes {
    let mut value = vec![0; bytes];
    SmallRng::seed_from_u64(0).fill_bytes(&mut value);
    value.into()
}

/// Open connections to the target nodes, in turn.
async fn pool(options: &Options) -> anyhow::Result<Vec<system::Client>> {
    anyhow::ensure!(options.clients > 0 && options.connections > 0, "a load needs clients and connections");
    anyhow::ensure!(options.keys > 0, "a load needs at least one key");
    let addresses = targets(options).await?;
    let by_streams = options.streams > 0;
    let connections = if by_streams { options.streams } else { options.connections };
    let mut pool = Vec::new();
    for address in addresses.iter().cycle().take(connections.min(options.clients)) {
        let channel = connect::connect_within(address, PATIENCE).await?;
        pool.push(if by_streams {
            let client = options.system.client_by(channel.clone(), connect::stream(&channel)?);
            client.with_context(|| format!("{} has no streams of calls", options.system.name()))?
        } else {
            options.system.client(channel)
        });
    }
    Ok(pool)
}

async fn targets(options: &Options) -> anyhow::Result<Vec<String>> {
    if options.target == Target::Any {
        return Ok(options.endpoints.clone());
    }
    let mut others = options.endpoints.clone();
    let leader = others.remove(options.system.leader(&options.endpoints, PATIENCE).await?);
    if options.target == Target::Leader {
        return Ok(vec![leader]);
    }
    anyhow::ensure!(
        !others.is_empty(),
        "only the leader {leader} is among the endpoints; name a follower too"
    );
    Ok(others)
}

struct Worker {
    client: system::Client,
    op: Op,
    keys: u64,
    value: Bytes,
    random: SmallRng,
}

impl closed_loop::Client for Worker {
    async fn step(&mut self) -> Result<(), Status> {
        let key = key(self.random.random_range(0..self.keys));
        let freshness = match self.op {
            Op::Put => return self.client.put(key, self.value.clone()).await,
            Op::Get => Freshness::Linearizable,
            Op::LocalGet => Freshness::Local,
        };
        match self.client.get(key.clone(), freshness).await? {
            Some(value) if value.len() == self.value.len() => Ok(()),
            // A node that lags may not have the key yet; a fresh read must find it.
            _ if freshness == Freshness::Local => Ok(()),
            found => Err(Status::data_loss(format!("{key}: {:?} bytes", found.map(|value| value.len())))),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::LocalGet => "local-get",
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Leader => "leader",
            Self::Follower => "follower",
            Self::Any => "any",
        })
    }
}
