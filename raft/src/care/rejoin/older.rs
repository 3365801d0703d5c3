//! Whether a data directory is an older copy than what its node has acknowledged.
//!
//! A directory that was copied and put back knows neither what the node acknowledged since nor how it voted. From
//! inside it looks whole. But a leader knows what each node has acknowledged to it, and remembers that when another
//! one leads, so a node that starts asks the others before it takes part. If no process is left that led when the node
//! acknowledged what is missing, nobody can tell, and the runbooks say that a directory is never put back.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt as _};
use tripod_proto::code::Code;
use tripod_proto::tripod::peer::v1::AcknowledgedRequest;

use crate::apply::engine::Raft;
use crate::base::advice;
use crate::base::types::Peer;
use crate::peers::calls::{Destination, PeerCalls};
use crate::peers::channels::Class;

/// How long an answer may take. Nodes that are not there refuse at once; only one that is silent delays this start,
/// and by less than the others need to miss it.
const ANSWER_DEADLINE: Duration = Duration::from_millis(300);

/// A node with data that starts.
pub(crate) struct Returning {
    pub(crate) calls: PeerCalls,
    /// For the texts that an operator reads.
    pub(crate) data: PathBuf,
    pub(crate) raft: Raft,
}

impl Returning {
    /// Asks everybody once.
    ///
    /// # Errors
    /// The directory is older than what the node acknowledged; with what to do.
    pub(crate) async fn check(&self) -> Result<(), String> {
        let looked = self.raft.with_raft_state(|state| {
            let nodes = state.membership_state.effective().nodes();
            let nodes: BTreeMap<u64, Peer> = nodes.map(|(node, peer)| (*node, peer.clone())).collect();
            (state.log_ids.last().map(|id| id.index), nodes)
        });
        // An engine that has stopped says why elsewhere.
        let Ok((last, nodes)) = looked.await else { return Ok(()) };
        let others = nodes.iter().filter(|(node, _)| **node != self.calls.node());
        let mut asked: FuturesUnordered<_> = others.map(|(node, peer)| self.ask(*node, peer)).collect();
        while let Some((witness, acknowledged)) = asked.next().await {
            if let Some(acknowledged) = acknowledged.filter(|index| last.is_none_or(|last| last < *index)) {
                return Err(self.older(last.unwrap_or(0), acknowledged, witness));
            }
        }
        Ok(())
    }

    /// The index that this node has acknowledged to another one, if that one leads or did, and knows.
    async fn ask(&self, node: u64, peer: &Peer) -> (u64, Option<u64>) {
        let to =
            Destination { node, address: &peer.address, class: Class::Leader, deadline: ANSWER_DEADLINE };
        let question = AcknowledgedRequest { node: self.calls.node() };
        let asked = self
            .calls
            .call(to, question, |mut client, request| async move { client.acknowledged(request).await });
        (node, asked.await.ok().and_then(|answer| answer.index))
    }

    fn older(&self, last: u64, acknowledged: u64, witness: u64) -> String {
        format!(
            "{}: the log in {} ends at index {last}, but node {} has acknowledged index {acknowledged} to \
             node {witness}: the directory is an older copy, and a node must not vote on what it forgot. {}",
            Code::DataOlder,
            self.data.display(),
            self.calls.node(),
            advice::rejoin(&self.data)
        )
    }
}
