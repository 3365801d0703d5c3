//! What an operator does with members, asked of a cluster in this process.

use std::collections::BTreeSet;
use std::sync::Arc;

use tripod_raft::{ChangeError, Handle, MemberList, MembersAnswer, MembersRequest, Planned, Unwise};
use tripod_state::Command;
use tripod_state::ids::{ChangeId, NodeId};
use tripod_state::member::{Addresses, Change, Command as MemberCommand, Ending};
use tripod_wait::{until, until_async};

use super::Cluster;

pub(crate) fn request(change: Change, plan: bool, force: bool) -> MembersRequest {
    MembersRequest::Change { change, by: "test".to_owned(), plan, force }
}

/// Asks whoever leads until there is an answer that is not about who leads.
pub(crate) async fn ask(cluster: &Cluster, request: &MembersRequest) -> Result<MembersAnswer, ChangeError> {
    until_async("an answer of whoever leads", || async {
        let leader = cluster.leader().await;
        match cluster.node(leader).members(request.clone()).await {
            Err(ChangeError::NotLeader { .. } | ChangeError::Unavailable(_)) => None,
            answer => Some(answer),
        }
    })
    .await
}

pub(crate) async fn begin(cluster: &Cluster, change: Change) -> Result<Planned, ChangeError> {
    match ask(cluster, &request(change, false, false)).await? {
        MembersAnswer::Change(planned) => Ok(planned),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn list(node: &Handle) -> MemberList {
    match node.members(MembersRequest::List).await {
        Ok(MembersAnswer::List(list)) => list,
        other => panic!("{other:?}"),
    }
}

/// Waits until all running nodes know how the change ended.
pub(crate) async fn ended(cluster: &Cluster, change: ChangeId) -> Ending {
    let known = |node: u64| {
        let last = cluster.node(node).read(|state| state.registry().last().cloned());
        last.filter(|last| last.open.id == change).map(|last| last.ending)
    };
    until("an end of the change", || {
        let members = voters_and_learners(cluster);
        let asked = cluster.running().into_iter().filter(|node| members.contains(node));
        let told: Option<Vec<Ending>> = asked.map(known).collect();
        told.and_then(|told| told.first().cloned())
    })
    .await
}

/// As the running node with the newest state knows them.
pub(crate) fn voters_and_learners(cluster: &Cluster) -> BTreeSet<u64> {
    let newest = cluster.running().into_iter().max_by_key(|node| cluster.node(*node).applied_index());
    let newest = cluster.node(newest.unwrap());
    newest.read(|state| state.registry().nodes().map(|(node, _)| node.0).collect())
}

pub(crate) async fn done(cluster: &Cluster, change: Change) -> Planned {
    let what = change.to_string();
    let planned = begin(cluster, change).await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
    let ending = ended(cluster, planned.change.unwrap()).await;
    assert_eq!(ending, Ending::Done, "{what}");
    planned
}

/// Begins a change once the learner has caught up.
pub(crate) async fn done_when_caught_up(cluster: &Cluster, change: Change) -> Planned {
    until_async("a learner that has caught up", || async {
        match begin(cluster, change.clone()).await {
            Ok(planned) => {
                assert_eq!(ended(cluster, planned.change.unwrap()).await, Ending::Done);
                Some(planned)
            }
            Err(ChangeError::Unwise(Unwise::Silent { .. } | Unwise::Lagging { .. })) => None,
            Err(error) => panic!("{change}: {error:?}"),
        }
    })
    .await
}

/// Adds a node of the id that comes next, and starts it as one that joined.
pub(crate) async fn add(cluster: &mut Cluster) -> u64 {
    let peer = prepare(cluster);
    let planned = done(cluster, Change::Add { peer }).await;
    let node = u64::try_from(cluster.nodes.len()).unwrap();
    assert_eq!(planned.node, NodeId(node));
    assert_eq!(planned.before.voters, planned.after.voters, "a learner does not vote");
    cluster.start_node(node).await.unwrap();
    node
}

/// Options for a node of the id that comes next; gives its peer address.
pub(crate) fn prepare(cluster: &mut Cluster) -> String {
    let mut options = cluster.options[0].clone();
    let node = cluster.options.len() as u64 + 1;
    options.node = NodeId(node);
    options.data = cluster.ground.data(options.node);
    options.peer_listen = cluster.ground.new_peer();
    options.initial = Vec::new();
    let peer = options.peer_listen.clone();
    cluster.options.push(options);
    cluster.nodes.push(None);
    cluster.heard.push(Arc::default());
    peer
}

pub(crate) async fn voters(cluster: &Cluster) -> Vec<u64> {
    let leader = cluster.leader().await;
    list(cluster.node(leader)).await.votes.voters.iter().map(|node| node.0).collect()
}

/// What a node tells of itself.
pub(crate) fn announcement(node: u64) -> Command {
    let addresses = Addresses {
        client: format!("127.0.0.1:{node}"),
        http: String::new(),
        job_host: "127.0.0.1".into(),
        job_port_first: 1,
        job_port_count: 1,
    };
    Command::Member(MemberCommand::Announce { node: NodeId(node), addresses })
}
