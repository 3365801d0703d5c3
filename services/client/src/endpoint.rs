//! One node's address and the connection to it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use tonic::transport::{Channel, Endpoint};

use crate::error::{Attempt, Phase};

/// How a connection is made, in simulations that bring a network of their own.
pub type Connect = Arc<dyn Fn(Endpoint) -> Connecting + Send + Sync>;
/// A connection that is being made.
pub type Connecting = Pin<Box<dyn Future<Output = Result<Channel, tonic::transport::Error>> + Send>>;

/// A node that calls can be sent to.
pub(crate) struct Node {
    pub(crate) address: String,
    target: Endpoint,
    /// `None`: over TCP.
    connect: Option<Connect>,
    /// Dropped when a call fails in transport, so that the next one connects afresh.
    channel: Mutex<Option<Channel>>,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Node {
    pub(crate) fn new(address: String, target: Endpoint, connect: Option<Connect>) -> Self {
        Self { address, target, connect, channel: Mutex::new(None) }
    }

    /// The connection, made if there is none. Two callers may connect at the same time; the second
    /// connection takes the first one's place.
    pub(crate) async fn channel(&self) -> Result<Channel, Attempt> {
        if let Some(channel) = self.channel.lock().clone() {
            return Ok(channel);
        }
        let made = match &self.connect {
            Some(connect) => connect(self.target.clone()).await,
            None => self.target.connect().await,
        };
        let made = made.map_err(|error| self.failed(phase_of(&error), &error))?;
        *self.channel.lock() = Some(made.clone());
        Ok(made)
    }

    /// Forgets the connection.
    pub(crate) fn disconnect(&self) {
        *self.channel.lock() = None;
    }

    /// Describes a failed attempt by its root cause: the outer texts only say "transport error".
    pub(crate) fn failed(&self, phase: Phase, error: &(dyn std::error::Error + 'static)) -> Attempt {
        let mut root = error;
        while let Some(source) = root.source() {
            root = source;
        }
        Attempt { endpoint: self.address.clone(), phase, cause: root.to_string() }
    }
}

/// The outer text with which the connector of tonic's transport says that a name could not be resolved. The
/// cause below it is the system's, in words that differ from one system to the next.
const RESOLVE: &str = "dns error";

/// How far an attempt came that ended without a connection.
fn phase_of(error: &(dyn std::error::Error + 'static)) -> Phase {
    let chain = std::iter::successors(Some(error), |error| error.source());
    let resolving = chain.map(ToString::to_string).any(|text| text == RESOLVE);
    if resolving { Phase::Resolve } else { Phase::Connect }
}
