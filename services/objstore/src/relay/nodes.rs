//! Connections to the nodes that processes of this machine send batches to.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tonic::Status;
use tonic::transport::Channel;
use tripod_dial::Callee;

use crate::peers::root_cause;

/// A dead host must not hold a batch up for long: another node takes it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How often a connection is tried, and how long the node may take, as Python's own channels have it.
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(3);
/// Connections that are kept; clusters are smaller.
const CONNECTIONS_MAX: usize = 64;

/// One connection to each node, shared by all processes of this machine.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    channels: Mutex<HashMap<String, Channel>>,
}

impl Nodes {
    /// # Errors
    /// `Unavailable` says why there is no connection.
    pub(super) async fn channel(&self, address: &str) -> Result<Channel, Status> {
        if let Some(kept) = self.channels.lock().get(address) {
            return Ok(kept.clone());
        }
        let endpoint = tripod_dial::endpoint(address, Callee::Node)
            .map_err(|_| Status::invalid_argument(format!("`{address}` is no address of a node")))?
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(true)
            .tcp_nodelay(true);
        let unreachable = |error| Status::unavailable(format!("{address}: {}", root_cause(&error)));
        let channel = tripod_dial::connect(&endpoint).await.map_err(unreachable)?;
        let mut channels = self.channels.lock();
        if channels.len() >= CONNECTIONS_MAX {
            channels.clear();
        }
        channels.insert(address.to_owned(), channel.clone());
        Ok(channel)
    }

    /// Forgets a connection on which a stream failed.
    pub(super) fn forget(&self, address: &str) {
        self.channels.lock().remove(address);
    }
}
