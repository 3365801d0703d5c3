//! One process of a job, in either protocol.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tonic::Status;
use tonic::transport::Channel;

use super::Protocol;
use super::l;
use super::link::Options;
use super::t;
use crate::client::topology::{Global, Local};

/// Dropped, it dies without a word.
pub(super) struct Client {
    node: i32,
    wire: Wire,
}

#[derive(Clone)]
enum Wire {
    L(Arc<l::Client>),
    T(Arc<t::Client>),
}

impl Client {
    pub(super) fn new(protocol: Protocol, channel: Channel, node: i32, options: Options) -> Self {
        let wire = match protocol {
            Protocol::L => Wire::L(Arc::new(l::Client::new(channel, node, options))),
            Protocol::T => Wire::T(Arc::new(t::Client::new(channel, node, options))),
        };
        Self { node, wire }
    }

    pub(super) fn node(&self) -> i32 {
        self.node
    }

    /// Waits until all have connected, and from then on beats.
    pub(super) fn connect(&self) -> impl Future<Output = Result<(), Status>> + Send + use<> {
        let wire = self.wire.clone();
        async move {
            match wire {
                Wire::L(client) => client.connect().await,
                Wire::T(client) => client.connect().await,
            }
        }
    }

    /// Waits until all leave.
    pub(super) fn shut_down(&self) -> impl Future<Output = Result<(), Status>> + Send + use<> {
        let wire = self.wire.clone();
        async move {
            match wire {
                Wire::L(client) => client.shut_down().await,
                Wire::T(client) => client.shut_down().await,
            }
        }
    }

    /// Exchanges devices with all.
    pub(super) fn enumerate(
        &self,
        local: &Local,
    ) -> impl Future<Output = Result<Global, Status>> + Send + use<> {
        let (wire, local) = (self.wire.clone(), local.clone());
        async move {
            match wire {
                Wire::L(client) => client.enumerate(&local).await,
                Wire::T(client) => client.enumerate(&local).await,
            }
        }
    }

    /// Waits at a barrier of all.
    pub(super) fn wait_at_barrier(
        &self,
        id: &str,
        timeout: Duration,
    ) -> impl Future<Output = Result<(), Status>> + Send + use<> {
        let (wire, id) = (self.wire.clone(), id.to_owned());
        async move {
            match wire {
                Wire::L(client) => client.wait_at_barrier(&id, timeout).await,
                Wire::T(client) => client.wait_at_barrier(&id, timeout).await,
            }
        }
    }

    pub(super) async fn get(&self, key: &str, timeout: Duration) -> Result<Bytes, Status> {
        match &self.wire {
            Wire::L(client) => client.get(key, timeout).await,
            Wire::T(client) => client.get(key, timeout).await,
        }
    }

    pub(super) async fn set(&self, key: &str, value: &str) -> Result<(), Status> {
        match &self.wire {
            Wire::L(client) => client.set(key, value).await,
            Wire::T(client) => client.set(key, value).await,
        }
    }

    /// Waits until the callback for missed heartbeats runs, and gives what it is told.
    pub(super) async fn failed(&self) -> Status {
        match &self.wire {
            Wire::L(client) => client.link().failed().await,
            Wire::T(client) => client.link().failed().await,
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        match &self.wire {
            Wire::L(client) => client.link().end(),
            Wire::T(client) => client.link().end(),
        }
    }
}
