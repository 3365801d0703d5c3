//! Connections to peers.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tonic::transport::{Channel, Endpoint};
use tripod_dial::Callee;
use tripod_state::ids::FeatureLevel;

use super::auth;
use super::idle::IdleConnection;
use crate::peers::wiring::Wires;

/// How often an HTTP/2 ping asks whether the other side lives.
const PING_INTERVAL: Duration = Duration::from_millis(500);
/// How long a ping may take. Longer than any stall of a loaded machine that we want to sit out.
const PING_TIMEOUT: Duration = Duration::from_secs(2);
/// HTTP/2 windows: an append of 1 MiB must not wait for window updates.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// What a connection carries. Each class has its own, so that one cannot delay another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Log,
    /// Heartbeats, votes, transfers of leadership.
    Vote,
    Snapshot,
    /// What followers ask the leader.
    Leader,
}

/// A connection and the address it leads to.
#[derive(Debug)]
struct Connection {
    address: String,
    channel: Channel,
}

/// All connections of a node. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Channels {
    wires: Wires,
    connect_timeout: Duration,
    /// What every connection names itself.
    source: String,
    open: Arc<Mutex<BTreeMap<(u64, Class), Connection>>>,
    /// Where the members are, as the membership says; empty until there is one.
    members: Arc<Mutex<BTreeMap<u64, String>>>,
}

impl Channels {
    /// The connections of `node`, which supports feature levels up to `level_max`.
    pub(crate) fn new(wires: Wires, connect_timeout: Duration, node: u64, level_max: FeatureLevel) -> Self {
        let source = auth::source(node, level_max);
        Self { wires, connect_timeout, source, open: Arc::default(), members: Arc::default() }
    }

    /// Calls members at these addresses from now on, whatever callers know, and gives up the connections to
    /// nodes that are no members any more.
    pub(crate) fn follow(&self, members: BTreeMap<u64, String>) {
        self.open.lock().retain(|(node, _), known| members.get(node) == Some(&known.address));
        self.wires.follow(&members);
        *self.members.lock() = members;
    }

    /// Where a member is; as `initial` has it before the membership is known.
    pub(crate) fn address_of(&self, node: u64, initial: &BTreeMap<u64, String>) -> Option<String> {
        let members = self.members.lock();
        let known = if members.is_empty() { initial } else { &members };
        known.get(&node).cloned()
    }

    /// The connection to a peer, at `address` unless the membership knows a newer one. It is made, and made
    /// again, when it is used.
    ///
    /// # Errors
    /// The address is no address.
    pub(crate) fn lazy(&self, peer: u64, address: &str, class: Class) -> Result<Channel, String> {
        let newer = self.members.lock().get(&peer).cloned();
        let address = newer.as_deref().unwrap_or(address);
        let mut open = self.open.lock();
        if let Some(known) = open.get(&(peer, class))
            && known.address == address
        {
            return Ok(known.channel.clone());
        }
        let channel = self.wires.lazy(&self.endpoint(address)?);
        open.insert((peer, class), Connection { address: address.to_owned(), channel: channel.clone() });
        Ok(channel)
    }

    /// Connects now. A failure here proves that nothing was sent.
    ///
    /// # Errors
    /// The address is no address, or nobody answers there in time.
    pub(crate) async fn connect(&self, address: &str) -> Result<Channel, String> {
        let connected = self.wires.connect(&self.endpoint(address)?).await;
        connected.map_err(|error| format!("cannot connect to {address}: {}", innermost(&error)))
    }

    /// A connection to `address` that is made now and is not to be used.
    ///
    /// # Errors
    /// The address is no address, or nobody answers there in time.
    pub(crate) async fn idle(&self, address: &str) -> Result<IdleConnection, String> {
        let endpoint = self.endpoint(address)?;
        let connecting = async {
            let stream = self.wires.dial(address).await.map_err(|error| error.to_string())?;
            IdleConnection::begin(&endpoint, stream).await.map_err(|error| innermost(&error))
        };
        let connected = tokio::time::timeout(self.connect_timeout, connecting).await;
        connected.unwrap_or_else(|_| Err(format!("nobody answers at {address}")))
    }

    /// Whether a port refuses connections, asked once. It does not if it is silent, or cannot be reached.
    pub(crate) async fn is_refused(&self, address: &str) -> bool {
        let dialled = tokio::time::timeout(self.connect_timeout, self.wires.dial(address)).await;
        matches!(dialled, Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused)
    }

    fn endpoint(&self, address: &str) -> Result<Endpoint, String> {
        let endpoint = parse(address)?;
        let endpoint = endpoint.user_agent(self.source.as_str()).map_err(|error| error.to_string())?;
        Ok(endpoint
            .connect_timeout(self.connect_timeout)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES))
    }
}

/// The endpoint at `HOST:PORT`.
///
/// # Errors
/// The text is something else.
pub(crate) fn parse(address: &str) -> Result<Endpoint, String> {
    match tripod_dial::endpoint(address, Callee::Peer) {
        Ok(endpoint) if endpoint.uri().port_u16().is_some() => Ok(endpoint),
        Ok(_) => Err(format!("the peer address {address:?} is not HOST:PORT: it has no port")),
        Err(error) => Err(format!("the peer address {address:?} is not HOST:PORT: {error}")),
    }
}

/// tonic's own text says "transport error" and no more; the cause is at the end of the chain.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
