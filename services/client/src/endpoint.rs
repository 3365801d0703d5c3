//! One node's address and the connection to it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use tonic::transport::{Channel, Endpoint};
use tripod_calls::Way;
use tripod_proto::code::Code;

use crate::error::{Attempt, Phase};
use crate::link::Link;

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
    by_streams: bool,
    /// Dropped when a call fails in transport, so that the next one connects afresh.
    link: Mutex<Option<Link>>,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Node {
    pub(crate) fn new(address: String, target: Endpoint, connect: Option<Connect>) -> Self {
        Self { address, target, connect, by_streams: false, link: Mutex::new(None) }
    }

    /// Calls go by a stream where the node has one.
    pub(crate) fn use_streams(&mut self) {
        self.by_streams = true;
    }

    /// The connection, made if there is none. Two callers may connect at the same time; the second
    /// connection takes the first one's place.
    pub(crate) async fn channel(&self) -> Result<Channel, Attempt> {
        if let Some(link) = &*self.link.lock() {
            return Ok(link.channel());
        }
        let made = match &self.connect {
            Some(connect) => connect(self.target.clone()).await,
            None => tripod_dial::connect(&self.target).await,
        };
        let made = made.map_err(|error| self.failed(phase_of(&error), &error))?;
        *self.link.lock() = Some(Link::new(made.clone()));
        Ok(made)
    }

    /// The way for one call: the connection, made if there is none, and perhaps a stream over it.
    pub(crate) async fn way(&self) -> Result<Way, Attempt> {
        let channel = self.channel().await?;
        if !self.by_streams {
            return Ok(Way::new(channel, None).bearing(tripod_dial::bearer()));
        }
        let way = self.link.lock().as_mut().map(Link::way);
        Ok(way.unwrap_or_else(|| Way::new(channel, None)).bearing(tripod_dial::bearer()))
    }

    /// Forgets the connection.
    pub(crate) fn disconnect(&self) {
        *self.link.lock() = None;
    }

    /// Describes a failed attempt by its root cause: the outer texts only say "transport error".
    pub(crate) fn failed(&self, phase: Phase, error: &(dyn std::error::Error + 'static)) -> Attempt {
        if let Some(refusal) = tripod_tls::refusal(error) {
            let cause = format!("{}: {refusal}", Code::TlsRefused);
            return Attempt { endpoint: self.address.clone(), phase, cause };
        }
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
