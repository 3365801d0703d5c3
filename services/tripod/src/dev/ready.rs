//! When a started cluster may be used.

use std::time::Duration;

use tokio::time::Instant;
use tripod_client::{Client, Config, NodeAnswer};
use tripod_proto::code::Code;

use crate::dev::Plan;
use crate::failure::Failure;

/// How long a cluster may take to be ready: it may have a long log to read.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
const ASK_TIMEOUT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

/// Waits until every node follows the same leader, knows where all nodes listen, and has job `default`;
/// tells who leads.
pub(crate) async fn wait(plan: &Plan) -> Result<u64, Failure> {
    let client = Client::new(&Config::new(plan.clients()))?;
    let deadline = Instant::now() + READY_TIMEOUT;
    loop {
        let answers = client.status(ASK_TIMEOUT, false).await;
        match leader(&answers) {
            Ok(leader) => return Ok(leader),
            Err(missing) if Instant::now() >= deadline => {
                let seconds = READY_TIMEOUT.as_secs();
                return Err(Failure::new(
                    Code::DevNotReady,
                    format!("the cluster is not ready after {seconds} s: {missing}"),
                ));
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// The leader that all nodes agree on, or what is still missing.
fn leader(answers: &[NodeAnswer]) -> Result<u64, String> {
    let mut leader = None;
    for answer in answers {
        let status = answer.status.as_ref().map_err(ToString::to_string)?;
        let node = status.node_id;
        if status.leader_id == 0 {
            return Err(format!("node {node} knows no leader"));
        }
        if *leader.get_or_insert(status.leader_id) != status.leader_id {
            return Err("the nodes do not agree on a leader yet".to_owned());
        }
        if status.jobs == 0 {
            return Err(format!("node {node} does not know job default yet"));
        }
        if status.members.len() < answers.len()
            || status.members.iter().any(|member| member.client_address.is_empty())
        {
            return Err(format!("node {node} does not know where all nodes listen yet"));
        }
    }
    leader.ok_or_else(|| "no node".to_owned())
}

#[cfg(test)]
mod tests {
    use tripod_client::wire;

    use super::*;

    fn answer(node: u64, leader: u64) -> NodeAnswer {
        let member = |node_id| wire::Member { node_id, client_address: "a:1".into(), ..Default::default() };
        let status = wire::StatusResponse {
            node_id: node,
            leader_id: leader,
            jobs: 1,
            members: vec![member(1), member(2)],
            ..Default::default()
        };
        NodeAnswer { endpoint: "a:1".into(), status: Ok(status) }
    }

    #[test]
    fn ready_means_that_all_agree() {
        assert_eq!(leader(&[answer(1, 2), answer(2, 2)]), Ok(2));
        assert!(leader(&[answer(1, 2), answer(2, 1)]).is_err());
        assert_eq!(leader(&[answer(1, 0), answer(2, 2)]), Err("node 1 knows no leader".into()));
    }

    #[test]
    fn a_node_without_the_default_job_or_addresses_is_not_ready() {
        let mut fresh = answer(1, 2);
        fresh.status.as_mut().expect("told").jobs = 0;
        assert!(leader(&[fresh, answer(2, 2)]).is_err());
        let mut silent = answer(1, 2);
        silent.status.as_mut().expect("told").members[1].client_address.clear();
        assert!(leader(&[silent, answer(2, 2)]).is_err());
    }
}
