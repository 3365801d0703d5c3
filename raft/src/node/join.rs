//! How a node that was opened takes its place among the others.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use openraft::errors::{InitializeError, RaftError};

use super::Node;
use crate::apply::engine::{Engine as _, Raft};
use crate::base::types::Peer;
use crate::care::membership::{Farewell, follow_addresses};
use crate::care::rejoin::{Asked, Marker, Newcomer, Returning};
use crate::disk::Work;
use crate::offline::backup::RestoredNote;
use crate::peers::calls::PeerCalls;
use crate::peers::channels::Channels;

impl Node {
    /// Lets this node take part, at once or when it has asked the others.
    pub(super) fn join(&self, calls: PeerCalls, marker: Marker) {
        let initial: BTreeMap<u64, Peer> = self
            .options
            .initial
            .iter()
            .map(|member| (member.node.0, Peer { address: member.peer.clone() }))
            .collect();
        let newcomer = Newcomer {
            calls: calls.clone(),
            data: self.options.data.clone(),
            marker,
            initial: initial.clone(),
            engine: self.raft.clone(),
            machine: self.machine.clone(),
            gate: self.gate.clone(),
            forming: self.forming.clone(),
        };
        let restored = RestoredNote::in_directory(&self.options.data);
        let is_restored = !self.work.is_inline() && restored.is_set();
        let asked = newcomer.must_ask(self.log.is_pristine() || is_restored);
        if asked == Asked::Nothing {
            if self.log.is_pristine() {
                // Before the port is served, so that no message of a peer is refused.
                self.gate.open();
            } else {
                tokio::spawn(self.or_fail(self.returned(calls)));
            }
            return;
        }
        if asked == Asked::HowToReturn || is_restored {
            // Before an election can be due.
            self.raft.stand_for_election(false);
        }
        let raft = self.raft.clone();
        let joined = self.or_fail(newcomer.run(asked, async move || {
            form(&raft, initial).await?;
            raft.stand_for_election(true);
            Ok(())
        }));
        let (gate, work) = (self.gate.clone(), self.work.clone());
        tokio::spawn(async move {
            joined.await;
            if is_restored && gate.check_votes().is_ok() {
                forget(work, restored).await;
            }
        });
    }
}

impl Node {
    /// Opens the gate unless the directory is found to be an older copy.
    fn returned(&self, calls: PeerCalls) -> impl Future<Output = Result<(), String>> + Send + use<> {
        let (data, raft) = (self.options.data.clone(), self.raft.clone());
        let (returning, gate) = (Returning { calls, data, raft }, self.gate.clone());
        async move {
            returning.check().await?;
            gate.open();
            Ok(())
        }
    }

    /// Does what comes before this node takes part, until the node stops. If it does not succeed the node has failed.
    fn or_fail<F>(&self, joining: F) -> impl Future<Output = ()> + Send + use<F>
    where
        F: Future<Output = Result<(), String>> + Send,
    {
        let (failure, stop) = (self.failure.clone(), self.stop.clone());
        async move {
            tokio::select! {
                joined = joining => if let Err(reason) = joined {
                    failure.set(&reason);
                },
                () = stop.cancelled() => {}
            }
        }
    }
}

/// Removes the note that this node was restored, now that the others know it.
async fn forget(work: Work, restored: RestoredNote) {
    let cleared = work.run(move || restored.clear()).await.and_then(|cleared| cleared);
    if let Err(error) = cleared {
        // The next start asks once more, which is safe.
        tracing::warn!(%error, "the note of a restoration is not removed");
    }
}

impl Node {
    /// Calls the members where they are, and finds out if this node is none any more.
    pub(super) fn follow_membership(&self, channels: &Channels) {
        tokio::spawn(follow_addresses(self.raft.clone(), channels.clone(), self.stop.clone()));
        tokio::spawn(self.members.clone().stand_back(self.gate.clone(), self.stop.clone()));
        let initial = self.options.initial.iter().map(|member| (member.node.0, member.peer.clone()));
        let farewell = Farewell {
            calls: self.members.calls.clone(),
            engine: self.raft.clone(),
            machine: self.machine.clone(),
            leadership: self.leadership.clone(),
            initial: initial.collect(),
            patience: 2 * Duration::from_millis(self.options.timing.election_max.0),
            told: self.removed.clone(),
        };
        tokio::spawn(farewell.run(self.stop.clone()));
    }
}

/// Forms the cluster at the very first start. Every node does it with the same list, which is safe: the
/// list is the first log entry, the same everywhere, and an election decides.
async fn form(raft: &Raft, members: BTreeMap<u64, Peer>) -> Result<(), String> {
    match raft.initialize(members).await {
        // A peer's message may have arrived first.
        Ok(()) | Err(RaftError::APIError(InitializeError::NotAllowed(_))) => Ok(()),
        Err(error) => Err(format!("the cluster cannot be formed: {error}")),
    }
}
