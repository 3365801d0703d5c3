//! Votes and proposals that no node would send, at the peer port.

use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use tokio::time::timeout;
use tonic::metadata::{AsciiMetadataValue, MetadataValue};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};
use tripod_proto::tripod::peer::v1::leader_client::LeaderClient;
use tripod_proto::tripod::peer::v1::raft_client::RaftClient;
use tripod_proto::tripod::peer::v1::{Blob, ProposeRequest};

use super::aim::{Aim, Attacked, channel};
use super::tally::{GIVEN_UP, Tally, ended};

/// How long a node may take for one of these.
const LIMIT: Duration = Duration::from_secs(5);
/// No command begins so.
const GARBAGE: &[u8] = &[1, 0xff, 0xff, 0xff, 0xff];

/// Asks every node for its vote in the last term that there can be, as if the leader had asked for the election; the
/// engine computes the term after it.
pub async fn votes_of_the_last_term(aim: &Aim) -> Tally {
    let vote = Bytes::from(vote_request(u64::MAX));
    let mut tally = Tally::default();
    for node in aim.nodes() {
        let mut raft = RaftClient::new(channel(node.peer));
        let blob = || marked(aim, node, Blob { data: vote.clone() });
        tally.add(within(raft.pre_vote(blob())).await);
        tally.add(within(raft.vote(blob())).await);
    }
    tally
}

/// Sends every node proposals and messages that cannot be read.
pub async fn garbage(aim: &Aim) -> Tally {
    let data = Bytes::from_static(GARBAGE);
    let mut tally = Tally::default();
    for node in aim.nodes() {
        let to: Channel = channel(node.peer);
        let (mut raft, mut leader) = (RaftClient::new(to.clone()), LeaderClient::new(to));
        let blob = || marked(aim, node, Blob { data: data.clone() });
        let propose = ProposeRequest {
            commands: vec![data.clone(), Bytes::new()],
            needs_max: Some(u32::MAX),
            ..Default::default()
        };
        tally.add(within(leader.propose(marked(aim, node, propose))).await);
        tally.add(within(leader.propose_newer(blob())).await);
        tally.add(within(leader.ask(blob())).await);
        tally.add(within(leader.compare(blob())).await);
        tally.add(within(raft.append(blob())).await);
        tally.add(within(raft.vote(blob())).await);
        tally.add(within(raft.transfer_leader(blob())).await);
    }
    tally
}

/// As the nodes of the cluster mark their calls.
fn marked<T>(aim: &Aim, node: &Attacked, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let cluster = AsciiMetadataValue::try_from(aim.cluster_id.as_str()).expect("ids are ASCII");
    request.metadata_mut().insert("tripod-cluster-id", cluster);
    request.metadata_mut().insert("tripod-target-node", MetadataValue::from(node.id));
    request
}

async fn within<T>(call: impl Future<Output = Result<Response<T>, Status>>) -> String {
    timeout(LIMIT, call).await.map_or_else(|_| GIVEN_UP.to_owned(), |answer| ended(&answer))
}

/// A candidate's message, as nodes encode it: a version, then its fields one after the other. The candidate is node 1, and its
/// log is longer than anybody's.
fn vote_request(term: u64) -> Vec<u8> {
    /// Numbers from 251 on have a mark of their length before them.
    fn number(bytes: &mut BytesMut, number: u64) {
        bytes.put_u8(253);
        bytes.put_u64_le(number);
    }
    let (candidate, yes, no) = (1, 1, 0);
    let mut bytes = BytesMut::new();
    bytes.put_u8(1);
    // The vote: term, node, not yet granted.
    number(&mut bytes, term);
    bytes.put_slice(&[candidate, no]);
    // The end of its log: there is one, of this term, node and index.
    bytes.put_u8(yes);
    number(&mut bytes, term - 1);
    bytes.put_u8(candidate);
    number(&mut bytes, 1 << 39);
    // The leader wishes it.
    bytes.put_u8(yes);
    bytes.to_vec()
}
