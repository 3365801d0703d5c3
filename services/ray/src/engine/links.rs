//! Connections to workers and stores, one for each address.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tonic::transport::{Channel, Endpoint};
use tripod_dial::Callee;

/// How long a connection may take to be made: peers are near, and another attempt follows.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How often an idle connection is tried, and how long the other side may take: a broken one is noticed within the
/// time to live of a peer.
const PING_EVERY: Duration = Duration::from_secs(1);
const PING_TIMEOUT: Duration = Duration::from_secs(2);
/// Connections that are kept. When there are more, all idle ones of addresses long gone are dropped with them.
const LINKS_MAX: usize = 4096;

/// How a connection is made: over TCP, unless a simulation brings a network of its own.
pub type Connect = Arc<dyn Fn(Endpoint) -> Connecting + Send + Sync>;
/// A connection that is being made.
pub type Connecting = Pin<Box<dyn Future<Output = Result<Channel, tonic::transport::Error>> + Send>>;

/// Cheap to clone; shared by all jobs of a node.
#[derive(Clone)]
pub(crate) struct Links {
    open: Arc<Mutex<HashMap<String, Link>>>,
    connect: Connect,
}

struct Link {
    channel: Channel,
    /// Whoever listens there takes one order at a time.
    plain: bool,
}

impl Default for Links {
    fn default() -> Self {
        Self::over(Arc::new(|endpoint| Box::pin(async move { endpoint.connect().await })))
    }
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links").field("open", &self.open.lock().len()).finish_non_exhaustive()
    }
}

impl Links {
    /// None yet; they will be made like this.
    pub(crate) fn over(connect: Connect) -> Self {
        Self { open: Arc::default(), connect }
    }

    /// A connection to that address.
    ///
    /// # Errors
    /// Why there is none: nothing was sent.
    pub(super) async fn to(&self, address: &str) -> Result<Channel, String> {
        if let Some(link) = self.open.lock().get(address) {
            return Ok(link.channel.clone());
        }
        let endpoint = tripod_dial::endpoint(address, Callee::Worker).map_err(|error| reasons(&error))?;
        let endpoint = endpoint
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(true)
            .tcp_nodelay(true);
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, (self.connect)(endpoint)).await;
        let channel = connected
            .map_err(|_| format!("no connection within {CONNECT_TIMEOUT:?}"))?
            .map_err(|error| reasons(&error))?;
        let mut open = self.open.lock();
        if open.len() >= LINKS_MAX {
            open.clear();
        }
        let link = open.entry(address.to_owned()).or_insert(Link { channel, plain: false });
        Ok(link.channel.clone())
    }

    /// Whether whoever listens there is known to take one order at a time. Forgotten with the connection: another
    /// program may have come to the address.
    pub(super) fn is_plain(&self, address: &str) -> bool {
        self.open.lock().get(address).is_some_and(|link| link.plain)
    }

    pub(super) fn note_plain(&self, address: &str) {
        if let Some(link) = self.open.lock().get_mut(address) {
            link.plain = true;
        }
    }

    /// Forgets a connection on which a call failed, so that the next one makes another.
    pub(super) fn broken(&self, address: &str) {
        self.open.lock().remove(address);
    }
}

/// An error with everything behind it: a transport's own text says only that it failed.
fn reasons(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(reason) = cause {
        text = format!("{text}: {reason}");
        cause = reason.source();
    }
    text
}
