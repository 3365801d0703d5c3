//! What the nodes say of themselves and of the members, and changes of who leads and who takes part.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tonic::Status;
use tripod_calls::Way;

use crate::call::{Caller, Repeat};
use crate::client::Client;
use crate::config::Config;
use crate::error::{Attempt, Error, Phase};
use crate::wire;
use crate::wire::cluster_client::ClusterClient;

/// What came of asking one node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeAnswer {
    pub endpoint: String,
    pub status: Result<wire::StatusResponse, Attempt>,
}

impl Client {
    /// Asks every endpoint at the same time what it knows; waits at most `limit` for the slowest. The
    /// answers are in the order of the endpoints.
    pub async fn status(&self, limit: Duration, digest: bool) -> Vec<NodeAnswer> {
        self.status_until(limit, digest, |_| false).await
    }

    /// [`Self::status`], but waits for no further answer once `enough` finds that those which came suffice. The
    /// answers that came are in the order of the endpoints.
    pub async fn status_until(
        &self,
        limit: Duration,
        digest: bool,
        enough: impl Fn(&[NodeAnswer]) -> bool,
    ) -> Vec<NodeAnswer> {
        let mut asked = JoinSet::new();
        for place in 0..self.caller().nodes().len() {
            let client = self.clone();
            asked.spawn(async move { (place, client.status_of(place, limit, digest).await) });
        }
        let (mut places, mut answers) = (Vec::new(), Vec::new());
        while let Some(answered) = asked.join_next().await {
            let (place, answer) = answered.expect("asking a node does not panic");
            let at = places.partition_point(|other| *other < place);
            places.insert(at, place);
            answers.insert(at, answer);
            if enough(&answers) {
                break;
            }
        }
        answers
    }

    async fn status_of(&self, place: usize, limit: Duration, digest: bool) -> NodeAnswer {
        let node = &self.caller().nodes()[place];
        let deadline = Instant::now() + limit;
        let late = |phase, what: &str| Attempt {
            endpoint: node.address.clone(),
            phase,
            cause: format!("{what} within {:.1} s", limit.as_secs_f64()),
        };
        let ask = async {
            let channel = timeout_at(deadline, node.channel()).await;
            let channel = channel.map_err(|_| late(Phase::Connect, "no connection"))??;
            let request = wire::StatusRequest { digest };
            let answer = timeout_at(
                deadline,
                ClusterClient::new(Way::new(channel, None).bearing(tripod_dial::bearer())).status(request),
            )
            .await;
            answer.map_err(|_| late(Phase::Call, "no answer"))?.map_err(|status| {
                node.disconnect();
                attempt_of(&node.address, &status)
            })
        };
        let status = ask.await.map(tonic::Response::into_inner);
        NodeAnswer { endpoint: node.address.clone(), status }
    }

    /// Hands leadership to node `to`, or to the one that is furthest. The node at `leader` must lead.
    ///
    /// # Errors
    /// [`Error::Refused`] when it does not lead or nobody took over, else as any call.
    pub async fn transfer_leader(leader: &str, to: Option<u64>, timeout: Duration) -> Result<(), Error> {
        let request = wire::TransferLeaderRequest { to: to.unwrap_or(0) };
        let transfer = |way: Way| async move { ClusterClient::new(way).transfer_leader(request).await };
        at(leader, timeout)?.call("leader transfer", Repeat::IfNotExecuted, transfer).await.map(|_| ())
    }

    /// Who the members are, as the node at `endpoint` sees them; the leader sees who lags.
    ///
    /// # Errors
    /// As any call.
    pub async fn members(endpoint: &str, timeout: Duration) -> Result<wire::ListMembersResponse, Error> {
        let list =
            |way: Way| async move { ClusterClient::new(way).list_members(wire::ListMembersRequest {}).await };
        at(endpoint, timeout)?.call("member list", Repeat::Freely, list).await
    }

    /// Begins a change of the members, or only plans it. The node at `leader` must lead.
    ///
    /// # Errors
    /// [`Error::Refused`] with the reason, else as any call. The same change may be sent again: it goes on.
    pub async fn change_members(
        leader: &str,
        request: &wire::ChangeMembersRequest,
        timeout: Duration,
    ) -> Result<wire::ChangeMembersResponse, Error> {
        let change = |way: Way| {
            let request = request.clone();
            async move { ClusterClient::new(way).change_members(request).await }
        };
        at(leader, timeout)?.call("change of members", Repeat::IfNotExecuted, change).await
    }

    /// Gives up on the change of members under way. The node at `leader` must lead.
    ///
    /// # Errors
    /// [`Error::Refused`] when it is not under way, else as any call.
    pub async fn cancel_change(leader: &str, change_id: u64, timeout: Duration) -> Result<(), Error> {
        let request = wire::CancelChangeRequest { change_id };
        let cancel = |way: Way| async move { ClusterClient::new(way).cancel_change(request).await };
        at(leader, timeout)?.call("member cancel", Repeat::Freely, cancel).await.map(|_| ())
    }

    /// Says whether a node is to lead nothing and to have no clients. The node at `leader` must lead.
    ///
    /// # Errors
    /// [`Error::Refused`] with the reason, else as any call.
    pub async fn drain(leader: &str, node_id: u64, drained: bool, timeout: Duration) -> Result<(), Error> {
        let request = wire::DrainNodeRequest { node_id, drained };
        let drain = |way: Way| async move { ClusterClient::new(way).drain_node(request).await };
        at(leader, timeout)?.call("node drain", Repeat::Freely, drain).await.map(|_| ())
    }

    /// Asks for an id for a node with an empty data directory. The node at `leader` must lead.
    ///
    /// # Errors
    /// [`Error::Refused`] with the reason, else as any call.
    pub async fn join(
        leader: &str,
        request: &wire::JoinRequest,
        timeout: Duration,
    ) -> Result<wire::JoinResponse, Error> {
        let join = |way: Way| {
            let request = request.clone();
            async move { ClusterClient::new(way).join(request).await }
        };
        at(leader, timeout)?.call("join", Repeat::Freely, join).await
    }
}

/// Calls of one node and no other.
fn at(endpoint: &str, timeout: Duration) -> Result<Caller, Error> {
    Caller::new(&Config { endpoints: vec![endpoint.to_owned()], timeout }, None)
}

fn attempt_of(endpoint: &str, status: &Status) -> Attempt {
    Attempt { endpoint: endpoint.to_owned(), phase: Phase::Call, cause: status.message().to_owned() }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use tripod_wait::Nobody;

    use super::*;

    /// Far longer than any test takes.
    const LIMIT: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn a_node_that_says_nothing_is_not_waited_for_once_the_answers_are_enough() {
        let port = |listener: &TcpListener| listener.local_addr().expect("bound").to_string();
        // The kernel takes connections for it, and nobody reads them.
        let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
        let nobody = Nobody::at_a_port();
        let closed = nobody.address();
        let endpoints = vec![port(&silent), closed.clone()];
        let client = Client::new(&Config { endpoints, timeout: LIMIT }).expect("legal");
        let one = client.status_until(LIMIT, false, |answers| answers.len() == 1);
        let answers = tripod_wait::within("one answer", one).await;
        assert_eq!(answers.len(), 1);
        assert!(answers[0].endpoint == closed && answers[0].status.is_err(), "{answers:?}");
        let all = client.status(Duration::from_millis(200), false).await;
        assert_eq!(all.iter().map(|answer| &answer.endpoint).collect::<Vec<_>>(), [&port(&silent), &closed]);
    }
}
