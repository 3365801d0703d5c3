//! Calls of this node to others: the connection, the mark that says whom a call is meant for, and its deadline.

use std::future::Future;
use std::time::Duration;

use tonic::transport::Channel;
use tonic::{Request, Response, Status};
use tripod_proto::tripod::peer::v1::raft_client::RaftClient;

use super::auth::Caller;
use super::channels::{Channels, Class};
use super::idle::IdleConnection;
use crate::base::local_identity::LocalIdentity;

/// Where a call goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Destination<'a> {
    pub(crate) node: u64,
    /// `HOST:PORT`, unless the membership knows a newer one.
    pub(crate) address: &'a str,
    pub(crate) class: Class,
    /// How long the answer may take.
    pub(crate) deadline: Duration,
}

/// Calls nodes of this cluster. Clones share the connections.
#[derive(Debug, Clone)]
pub(crate) struct PeerCalls {
    own: LocalIdentity,
    channels: Channels,
}

impl PeerCalls {
    /// Calls of a node whose cluster id can be sent, as the start has checked.
    pub(crate) fn new(own: LocalIdentity, channels: Channels) -> Self {
        Self { own, channels }
    }

    /// Who calls, and of which cluster.
    pub(crate) fn own(&self) -> &LocalIdentity {
        &self.own
    }

    /// The node that calls.
    pub(crate) fn node(&self) -> u64 {
        self.own.node
    }

    /// Marks calls as meant for `node`.
    pub(crate) fn caller(&self, node: u64) -> Caller {
        Caller::new(&self.own.cluster_id, node).expect("the cluster id was checked at start")
    }

    /// As [`Channels::lazy`].
    ///
    /// # Errors
    /// The address is no address.
    pub(crate) fn lazy(&self, node: u64, address: &str, class: Class) -> Result<Channel, String> {
        self.channels.lazy(node, address, class)
    }

    /// As [`Channels::connect`].
    ///
    /// # Errors
    /// The address is no address, or nobody answers there in time.
    pub(crate) async fn connect(&self, address: &str) -> Result<Channel, String> {
        self.channels.connect(address).await
    }

    /// As [`Channels::idle`].
    ///
    /// # Errors
    /// The address is no address, or nobody answers there in time.
    pub(crate) async fn idle(&self, address: &str) -> Result<IdleConnection, String> {
        self.channels.idle(address).await
    }

    /// As [`Channels::is_refused`].
    pub(crate) async fn is_refused(&self, address: &str) -> bool {
        self.channels.is_refused(address).await
    }

    /// Makes one call, on the connection that all of its class share.
    ///
    /// # Errors
    /// What the other node answers, or this node's own word that the address is none or that no answer came in time.
    pub(crate) async fn call<Q, A, F>(
        &self,
        to: Destination<'_>,
        message: Q,
        rpc: impl FnOnce(RaftClient<Channel>, Request<Q>) -> F,
    ) -> Result<A, Status>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let Destination { node, address, class, deadline } = to;
        let channel = self.lazy(node, address, class).map_err(Status::invalid_argument)?;
        let answer = rpc(RaftClient::new(channel), self.caller(node).request(message));
        match tokio::time::timeout(deadline, answer).await {
            Ok(answer) => answer.map(Response::into_inner),
            Err(_) => Err(Status::deadline_exceeded(format!("no answer within {deadline:?}"))),
        }
    }
}
