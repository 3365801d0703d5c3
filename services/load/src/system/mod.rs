//! Tripod and etcd behind the same few calls, so that one loop measures both.

mod etcd;
mod tripod;

use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use tokio::time::Instant;
use tonic::Status;
use tonic::transport::Channel;
use tripod_calls::CallStream;

use crate::connect;

/// How long one node may take to tell its role, or to read a key.
const LOOK_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause between two looks for a leader.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// Which key-value service is driven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum System {
    /// `tripod.v1`, in the namespace of `job`; the empty name is job `default`.
    Tripod { job: String },
    /// etcd's v3 API.
    Etcd,
}

/// How fresh a read must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Sees every write that was acknowledged before the read began.
    Linearizable,
    /// The asked node's memory (etcd: serializable).
    Local,
}

/// What a node says of itself and of its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Leader,
    /// Follows a leader that it knows.
    Follower,
    /// Knows no leader at present.
    Leaderless,
}

/// A client on one channel. Clones share the connection.
#[derive(Clone)]
pub enum Client {
    Tripod(tripod::Client),
    Etcd(etcd::Client),
}

impl System {
    /// A short name for reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Tripod { .. } => "tripod",
            Self::Etcd => "etcd",
        }
    }

    /// A client of this system on `channel`.
    #[must_use]
    pub fn client(&self, channel: Channel) -> Client {
        match self {
            Self::Tripod { job } => Client::Tripod(tripod::Client::new(channel, job.clone())),
            Self::Etcd => Client::Etcd(etcd::Client::new(channel)),
        }
    }

    /// A client of this system whose puts and gets go by `stream`, which is over `channel`; `None` if the system has no
    /// streams.
    #[must_use]
    pub fn client_by(&self, channel: Channel, stream: CallStream) -> Option<Client> {
        match self {
            Self::Tripod { job } => {
                Some(Client::Tripod(tripod::Client::by_stream(channel, stream, job.clone())))
            }
            Self::Etcd => None,
        }
    }

    /// The role of the node at `address`.
    ///
    /// # Errors
    /// The node cannot be reached or does not answer within a second.
    pub async fn role(&self, address: &str) -> anyhow::Result<Role> {
        let mut client = self.client(connect::lazy(address)?);
        let answer = tokio::time::timeout(LOOK_TIMEOUT, client.role()).await;
        answer
            .with_context(|| format!("{address} does not answer"))?
            .with_context(|| format!("status of {address}"))
    }

    /// Whether the node at `address` answers linearizable reads: it is connected to a leader, and
    /// whatever holds the keys exists.
    ///
    /// # Errors
    /// Why it does not.
    pub async fn serves(&self, address: &str) -> anyhow::Result<()> {
        let mut client = self.client(connect::lazy(address)?);
        let read = client.get("ready".to_owned(), Freshness::Linearizable);
        let answer = tokio::time::timeout(LOOK_TIMEOUT, read).await;
        answer
            .with_context(|| format!("{address} does not answer"))?
            .with_context(|| format!("read at {address}"))?;
        Ok(())
    }

    /// The position in `endpoints` of the node that leads.
    ///
    /// # Errors
    /// Nobody says so within `patience`.
    pub async fn leader(&self, endpoints: &[String], patience: Duration) -> anyhow::Result<usize> {
        let deadline = Instant::now() + patience;
        loop {
            for (position, address) in endpoints.iter().enumerate() {
                if matches!(self.role(address).await, Ok(Role::Leader)) {
                    return Ok(position);
                }
            }
            anyhow::ensure!(
                Instant::now() < deadline,
                "none of {} leads after {patience:?}; is the cluster up?",
                endpoints.join(", ")
            );
            tokio::time::sleep(LOOK_PAUSE).await;
        }
    }
}

impl Client {
    /// Writes one key.
    ///
    /// # Errors
    /// The service's status.
    pub async fn put(&mut self, key: String, value: Bytes) -> Result<(), Status> {
        match self {
            Self::Tripod(client) => client.put(key, value).await,
            Self::Etcd(client) => client.put(key, value).await,
        }
    }

    /// Reads one key; `None` if it does not exist.
    ///
    /// # Errors
    /// The service's status.
    pub async fn get(&mut self, key: String, freshness: Freshness) -> Result<Option<Bytes>, Status> {
        match self {
            Self::Tripod(client) => client.get(key, freshness).await,
            Self::Etcd(client) => client.get(key, freshness).await,
        }
    }

    async fn role(&mut self) -> Result<Role, Status> {
        match self {
            Self::Tripod(client) => client.role().await,
            Self::Etcd(client) => client.role().await,
        }
    }
}
