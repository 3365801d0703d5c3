//! What servers are asked that changes nothing: the node that is asked calls them itself, leader or not.

use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tripod_gateway::{Consistency, Gateway, Outage};
use tripod_state::mindspore::Role;
use tripod_state::{Fault, Scope, State};

use crate::calls::{Answer, Call, Calls, Failed, Query, Standing, address};

/// How long all servers together may take: as long as upstream waits.
const ANSWER_TIME: Duration = Duration::from_secs(3);
/// Bytes of all answers. Those of a server are a few hundred.
const ANSWERS_BYTES_MAX: usize = 16 << 20;

/// Why there is no answer of all servers.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// There is no such job.
    #[error("{}", .0.text())]
    Fault(Fault),
    /// Who belongs to the cluster cannot be found out.
    #[error("{0}")]
    Outage(Outage),
    /// There is none whom all were told of.
    #[error("the cluster has no servers that could be asked")]
    Nobody,
    #[error("the server of rank {rank} was not asked: {why}")]
    Failed { rank: u32, why: String },
    #[error("not all servers answered within {seconds} s")]
    Late { seconds: u64 },
    #[error("the answers have more than {limit} bytes")]
    TooLong { limit: usize },
}

/// What federated learning runs at, as each server says, by rank.
pub(crate) async fn query_instance(
    gateway: &Gateway,
    calls: &Calls,
    scope: Scope,
) -> Result<Vec<(u32, Bytes)>, Unanswered> {
    let look = |state: &State| state.cluster_nodes(scope);
    let nodes = gateway.read(Consistency::Linearizable, look).await.map_err(Unanswered::Outage)?;
    let nodes = nodes.map_err(Unanswered::Fault)?;
    let servers = nodes.into_iter().filter(|node| node.role == Role::Server && node.is_alive);
    // They end with this function.
    let mut asked = JoinSet::new();
    for server in servers.filter(|node| node.is_entered) {
        let Some(rank) = server.rank else { continue };
        let (calls, place) = (calls.clone(), address(&server.ip, server.port));
        asked.spawn(async move { (rank, ask(&calls, &place, rank).await) });
    }
    if asked.is_empty() {
        return Err(Unanswered::Nobody);
    }
    let late = |_| Unanswered::Late { seconds: ANSWER_TIME.as_secs() };
    timeout(ANSWER_TIME, gathered(asked)).await.map_err(late)?
}

async fn gathered(
    mut asked: JoinSet<(u32, Result<Answer, Failed>)>,
) -> Result<Vec<(u32, Bytes)>, Unanswered> {
    let (mut answers, mut bytes) = (Vec::new(), 0);
    while let Some(answer) = asked.join_next().await {
        let (rank, answer) = answer.expect("it does not panic, and nobody ends it");
        let answer = answer.map_err(|failed| Unanswered::Failed { rank, why: failed.to_string() })?;
        bytes += answer.payload.len();
        if bytes > ANSWERS_BYTES_MAX {
            return Err(Unanswered::TooLong { limit: ANSWERS_BYTES_MAX });
        }
        answers.push((rank, answer.payload));
    }
    answers.sort_unstable_by_key(|(rank, _)| *rank);
    Ok(answers)
}

/// On a connection of its own: what the leader tells the node on another one is not waited for.
async fn ask(calls: &Calls, place: &str, rank: u32) -> Result<Answer, Failed> {
    let _turn = calls.turn(Standing::Sound).await;
    let mut connection = calls.connect(place).await?;
    let call = Call::query(Query::Instance, rank, Bytes::new());
    let request = connection.send(&call).await?;
    connection.answer(&call, request).await
}
