//! Calls from this node to whoever leads, when that is another node.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use openraft::async_runtime::{Instant as _, WatchReceiver as _};
use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Code, Response, Status};
use tripod_proto::tripod::peer::v1::leader_client::LeaderClient;
use tripod_proto::tripod::peer::v1::raft_client::RaftClient;
use tripod_proto::tripod::peer::v1::{Blob, ReadIndexRequest};
use tripod_state::ids::{LogIndex, NodeId, Term};

use crate::apply::engine::{Engine as _, Raft};
use crate::base::error::{NodeSilence, ProposeError};
use crate::lead::last_contact::LastContact;
use crate::lead::leadership::{Leadership, LeadershipWatch};
use crate::peers::MESSAGE_BYTES_MAX;
use crate::peers::auth::Caller;
use crate::peers::calls::PeerCalls;
use crate::peers::channels::Class;

/// How long the leader may take to confirm its leadership: longer than its lease, after which it
/// gives up itself.
const READ_INDEX_DEADLINE: Duration = Duration::from_secs(3);
/// How long the leader's gateway may take to answer.
const ASK_DEADLINE: Duration = Duration::from_secs(5);

/// Finds and calls the leader.
#[derive(Clone)]
pub(crate) struct LeaderLink {
    calls: PeerCalls,
    raft: Raft,
    leadership: LeadershipWatch,
    contact: LastContact,
}

/// The leader as known at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) leader: u64,
    pub(crate) term: Term,
    pub(crate) address: String,
}

impl LeaderLink {
    pub(crate) fn new(calls: PeerCalls, raft: Raft, leadership: LeadershipWatch) -> Self {
        Self { calls, raft, leadership, contact: LastContact::default() }
    }

    /// By which the leader is found.
    pub(crate) fn leadership(&self) -> &LeadershipWatch {
        &self.leadership
    }

    /// Notes that the leader has answered what it can answer only with a quorum.
    pub(crate) fn note_contact(&self) {
        self.contact.note();
    }

    /// When the leader last did so, or, if this node leads, when a quorum last answered it.
    pub(crate) fn last_contact(&self) -> Option<Instant> {
        if !self.leadership.leads_here() {
            return self.contact.get();
        }
        let metrics = self.raft.metrics();
        let acknowledged = metrics.borrow_watched().last_quorum_acked;
        acknowledged.and_then(|at| Instant::now().checked_sub(at.elapsed()))
    }

    /// Who leads, if it is another node.
    pub(crate) fn target(&self) -> Result<Target, ProposeError> {
        let Leadership { leader, term, .. } = self.leadership.get();
        let Some(NodeId(leader)) = leader else {
            return Err(ProposeError::NoLeader("no node is known to lead".into()));
        };
        if leader == self.leadership.node() {
            return Err(ProposeError::NoLeader("leadership has just moved to this node".into()));
        }
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let peer = metrics.membership_config.membership().get_node(&leader);
        let peer = peer
            .ok_or_else(|| ProposeError::NoLeader(format!("node {leader} leads, its address is unknown")))?;
        Ok(Target { leader, term, address: peer.address.clone() })
    }

    /// Marks calls for `leader`.
    pub(crate) fn caller(&self, leader: u64) -> Caller {
        self.calls.caller(leader)
    }

    /// A client on a connection.
    pub(crate) fn client(channel: Channel) -> LeaderClient<Channel> {
        LeaderClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }

    /// A connection of its own to `target`. A failure proves that nothing was sent.
    pub(crate) async fn connect(&self, target: &Target) -> Result<LeaderClient<Channel>, ProposeError> {
        let channel = self.calls.connect(&target.address).await;
        channel.map(Self::client).map_err(ProposeError::NoLeader)
    }

    /// Resolves when `target` is no longer the one that this node follows. One that is only silent may still
    /// answer: it is replaced when somebody else leads, or an election has begun.
    pub(crate) async fn replaced(&self, target: &Target) {
        let mut leadership = self.leadership.subscribe();
        let replaced = |now: &Leadership| match now.leader {
            Some(leader) => leader != NodeId(target.leader),
            None => now.term > target.term,
        };
        // An error means that the node is stopping: nobody is followed then, either.
        let _ = leadership.wait_for(replaced).await;
    }

    /// The index that a reader must have applied, from the leader.
    pub(crate) async fn read_index(&self) -> Result<LogIndex, ProposeError> {
        let target = self.target()?;
        let mut client = self.lazy_client(&target)?;
        let request = self.caller(target.leader).request(ReadIndexRequest {});
        let answer = self.bounded(&target, READ_INDEX_DEADLINE, client.read_index(request)).await?;
        self.contact.note();
        Ok(LogIndex(answer.get_ref().index))
    }

    /// The answer of the leader's gateway.
    pub(crate) async fn ask(&self, question: Bytes) -> Result<Bytes, ProposeError> {
        let target = self.target()?;
        let mut client = self.lazy_client(&target)?;
        let request = self.caller(target.leader).request(Blob { data: question });
        let answer = self.bounded(&target, ASK_DEADLINE, client.ask(request)).await?;
        Ok(answer.into_inner().data)
    }

    /// What the gateway of a member says, whoever leads.
    ///
    /// # Errors
    /// [`NodeSilence`].
    pub(crate) async fn ask_node(
        &self,
        node: NodeId,
        question: Bytes,
        patience: Duration,
    ) -> Result<Bytes, NodeSilence> {
        let address = self.raft.addresses().remove(&node.0).ok_or(NodeSilence::NoMember)?;
        let channel = self.calls.lazy(node.0, &address, Class::Leader).map_err(NodeSilence::Unreachable)?;
        let mut client = RaftClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        let call = client.ask_node(self.caller(node.0).request(Blob { data: question }));
        match tokio::time::timeout(patience, call).await {
            Ok(Ok(answer)) => Ok(answer.into_inner().data),
            Ok(Err(status)) if status.code() == Code::Unavailable => {
                // It may also stand still, and a connection to it have ended for that.
                match tokio::time::timeout(patience, self.calls.is_refused(&address)).await {
                    Ok(true) => Err(NodeSilence::PortRefuses),
                    _ => Err(NodeSilence::Silent),
                }
            }
            Ok(Err(status)) => Err(NodeSilence::Refuses(status.message().to_owned())),
            Err(_) => Err(NodeSilence::Silent),
        }
    }

    /// A client on the connection that all calls to `target` share.
    pub(crate) fn lazy_client(&self, target: &Target) -> Result<LeaderClient<Channel>, ProposeError> {
        let channel = self.calls.lazy(target.leader, &target.address, Class::Leader);
        channel.map(Self::client).map_err(ProposeError::NoLeader)
    }

    /// A call that changes nothing: whatever goes wrong, the caller may try again.
    pub(crate) async fn bounded<T>(
        &self,
        target: &Target,
        deadline: Duration,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<Response<T>, ProposeError> {
        let leader = target.leader;
        let problem = tokio::select! {
            biased;
            answer = call => match answer {
                Ok(answer) => return Ok(answer),
                Err(status) => status.message().to_owned(),
            },
            () = self.replaced(target) => "it lost the leadership".to_owned(),
            () = tokio::time::sleep(deadline) => format!("it did not answer within {deadline:?}"),
        };
        Err(ProposeError::NoLeader(format!("node {leader} at {}: {problem}", target.address)))
    }
}
