//! The nodes of a cluster, and which of them answered last.

use std::sync::atomic::{AtomicUsize, Ordering};

use tonic::Response;
use tonic::transport::Channel;

use crate::config;
use crate::endpoint::{Connect, Node};
use crate::error::{Attempt, Error};

/// The nodes, by their places in the list that they were named in. When a call is sent again, and to whom, is its
/// sender's rule: [`crate::Client`] has the usual one.
#[derive(Debug)]
pub struct Nodes {
    nodes: Vec<Node>,
    preferred: AtomicUsize,
}

impl Nodes {
    /// The nodes at these addresses, `HOST:PORT`. Connects when a channel is wanted.
    ///
    /// # Errors
    /// [`Error::Config`] when there is no address, or one is not `HOST:PORT`.
    pub fn new(endpoints: &[String]) -> Result<Self, Error> {
        Self::reached_by(endpoints, None)
    }

    pub(crate) fn reached_by(endpoints: &[String], connect: Option<&Connect>) -> Result<Self, Error> {
        let targets = config::targets(endpoints)?.into_iter();
        let nodes = targets.map(|(address, target)| Node::new(address, target, connect.cloned())).collect();
        Ok(Self { nodes, preferred: AtomicUsize::new(0) })
    }

    /// Calls go by streams where nodes have them.
    pub(crate) fn by_streams(mut self) -> Self {
        self.nodes.iter_mut().for_each(Node::use_streams);
        self
    }

    pub(crate) fn all(&self) -> &[Node] {
        &self.nodes
    }

    /// How many there are: at least one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// The place of the node to ask first.
    #[must_use]
    pub fn preferred(&self) -> usize {
        self.preferred.load(Ordering::Relaxed)
    }

    /// The address of the node at this place.
    #[must_use]
    pub fn address(&self, place: usize) -> &str {
        &self.nodes[place].address
    }

    /// The connection to the node at this place, made if there is none.
    ///
    /// # Errors
    /// [`Attempt`].
    pub async fn channel(&self, place: usize) -> Result<Channel, Attempt> {
        self.nodes[place].channel().await
    }

    /// The node at this place answered. If it named the leader, and that is one of these nodes, the next call goes
    /// there, which takes one way less; else to the same one.
    pub fn answered<T>(&self, place: usize, answer: &Response<T>) {
        let told = answer.metadata().get(tripod_proto::metadata::RAY_LEADER);
        let told = told.and_then(|told| told.to_str().ok());
        let leader = told.and_then(|told| self.nodes.iter().position(|node| node.address == told));
        self.preferred.store(leader.unwrap_or(place), Ordering::Relaxed);
    }

    /// The node at this place did not answer: its connection is given up, and the next call goes to the next node,
    /// unless another call has moved on already.
    pub fn left(&self, place: usize) {
        self.nodes[place].disconnect();
        let next = (place + 1) % self.nodes.len();
        _ = self.preferred.compare_exchange(place, next, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_next_call_goes_to_the_leader_that_was_named_and_not_to_who_was_left() {
        let endpoints = ["a:1", "b:1", "c:1"].map(str::to_owned);
        let nodes = Nodes::new(&endpoints).expect("addresses");
        let named = |leader: &str| {
            let mut answer = Response::new(());
            let leader = leader.parse().expect("a value");
            answer.metadata_mut().insert(tripod_proto::metadata::RAY_LEADER, leader);
            answer
        };
        nodes.answered(0, &named("c:1"));
        assert_eq!(nodes.preferred(), 2);
        nodes.answered(1, &named("nobody:1"));
        assert_eq!(nodes.preferred(), 1, "it is not known");
        nodes.left(0);
        assert_eq!(nodes.preferred(), 1, "another call has moved on already");
        nodes.left(1);
        nodes.left(2);
        assert_eq!(nodes.preferred(), 0);
    }
}
