//! From an order of the state to what the node is told.

use std::collections::HashMap;

use bytes::Bytes;
use prost::Message as _;
use tripod_proto::mindspore::ps_core::{self as pb, NodeRole, SendMetadataMessage, ServersMeta};
use tripod_state::mindspore::cluster::{ClusterState, NodeView, Order};
use tripod_state::mindspore::{Expected, Member, Role};
use tripod_state::{Scope, State};

use super::{Call, Query};

/// The rank of a node that has none.
const NO_RANK: u32 = u32::MAX;

/// What orders are about, as one look at the state shows it.
pub(crate) struct Contents<'a> {
    state: &'a State,
    scope: Scope,
    /// Made when the first node is told of the others.
    nodes: Option<Nodes>,
}

/// All nodes, for all of them.
struct Nodes {
    /// Most of a message of thousands of nodes is the same for each of them.
    listed: Bytes,
    ranks: HashMap<Member, u32>,
    expected: Expected,
}

impl<'a> Contents<'a> {
    pub(crate) fn new(state: &'a State, scope: Scope) -> Self {
        Self { state, scope, nodes: None }
    }

    /// What the node is told for an order; `None`: nothing, as what it was about is over.
    pub(crate) fn call(&mut self, member: Member, order: Order) -> Option<Call> {
        Some(match order {
            Order::Scale { scaling, workers, servers, leaving, .. } => {
                Call::scale(scaling, (workers, servers), leaving)
            }
            Order::Metadata { state, .. } => self.metadata(member, state)?,
            Order::ScaleDone { scaling } => Call::scale_done(scaling),
            Order::Switch { switch } => {
                let (_, said, body) =
                    self.state.cluster_switch(self.scope.job).filter(|(number, ..)| *number == switch)?;
                let rank = self.nodes()?.ranks.get(&member).copied()?;
                Call::query(Query::from(said), rank, body)
            }
            Order::Event { event, .. } => Call::event(event),
            Order::Finish => Call::finish(),
        })
    }

    fn metadata(&mut self, member: Member, state: ClusterState) -> Option<Call> {
        let Nodes { listed, ranks, expected } = self.nodes()?;
        let rank = ranks.get(&member).copied();
        let own = SendMetadataMessage {
            servers_meta: Vec::new(),
            worker_num: expected.workers,
            server_num: expected.servers,
            cluster_state: told_state(state).into(),
            rank_id: rank.unwrap_or(NO_RANK),
        };
        Some(Call::metadata(listed.clone(), &own, rank.is_some()))
    }

    fn nodes(&mut self) -> Option<&Nodes> {
        if self.nodes.is_none() {
            let nodes = self.state.cluster_nodes(self.scope).ok()?;
            let expected = self.state.cluster(self.scope).ok()?.expected;
            self.nodes = Some(Nodes::of(&nodes, expected));
        }
        self.nodes.as_ref()
    }
}

impl Nodes {
    /// Those that stay. Nodes before 2.0 take each for a server, and the last one of a rank for the one that has it: so
    /// workers come first.
    fn of(nodes: &[NodeView], expected: Expected) -> Self {
        let mut staying: Vec<(&NodeView, u32)> =
            nodes.iter().filter_map(|node| Some((node, node.rank?))).collect();
        staying.sort_by_key(|(node, rank)| (node.role == Role::Server, *rank));
        let servers_meta = staying.iter().map(|(node, rank)| listed(node, *rank)).collect();
        let listed = SendMetadataMessage { servers_meta, ..SendMetadataMessage::default() };
        let ranks = staying.iter().map(|(node, rank)| (node.member, *rank)).collect();
        Self { listed: listed.encode_to_vec().into(), ranks, expected }
    }
}

fn listed(node: &NodeView, rank: u32) -> ServersMeta {
    let role = match node.role {
        Role::Worker => NodeRole::Worker,
        Role::Server => NodeRole::Server,
    };
    ServersMeta {
        rank_id: rank,
        ip: node.ip.clone(),
        port: node.port,
        is_alive: node.is_alive,
        role: role.into(),
        node_id: node.node.as_str().to_owned(),
        persistent_state: 0,
    }
}

/// As nodes of all releases understand it: those before 1.8 do not know that scaling out can be taken back, and all do
/// what it takes when they are told the numbers of before as if they were those of scaling.
fn told_state(state: ClusterState) -> pb::ClusterState {
    match state {
        ClusterState::Starting => pb::ClusterState::ClusterStarting,
        ClusterState::Ready => pb::ClusterState::ClusterReady,
        ClusterState::Exit => pb::ClusterState::ClusterExit,
        ClusterState::NodeTimeout => pb::ClusterState::NodeTimeout,
        ClusterState::ScaleOut | ClusterState::ScaleOutRollback => pb::ClusterState::ClusterScaleOut,
        ClusterState::ScaleIn => pb::ClusterState::ClusterScaleIn,
        ClusterState::NewInstance => pb::ClusterState::ClusterNewInstance,
        ClusterState::EnableFls => pb::ClusterState::ClusterEnableFls,
        ClusterState::DisableFls => pb::ClusterState::ClusterDisableFls,
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::NodeName;
    use tripod_state::mindspore::cluster::Incarnation;

    use super::*;

    fn node(name: &str, role: Role, rank: Option<u32>) -> NodeView {
        NodeView {
            node: NodeName::from(name),
            member: Member(u64::from(rank.unwrap_or(9)) + if role == Role::Worker { 100 } else { 0 }),
            incarnation: Incarnation(1),
            role,
            rank,
            ip: "10.0.0.1".to_owned(),
            port: 7,
            is_alive: name != "dead",
            is_entered: true,
            is_finished: false,
            state: ClusterState::Ready,
        }
    }

    #[test]
    fn workers_are_listed_before_the_servers_of_their_ranks_and_those_that_leave_are_not() {
        let nodes = [
            node("s0", Role::Server, Some(0)),
            node("gone", Role::Server, None),
            node("dead", Role::Server, Some(1)),
            node("w0", Role::Worker, Some(0)),
        ];
        let made = Nodes::of(&nodes, Expected { workers: 1, servers: 2 });
        let message = SendMetadataMessage::decode(made.listed).unwrap();
        let told: Vec<_> = message
            .servers_meta
            .iter()
            .map(|node| (node.node_id.as_str(), node.role, node.rank_id, node.is_alive))
            .collect();
        assert_eq!(told, [("w0", 1, 0, true), ("s0", 0, 0, true), ("dead", 0, 1, false)]);
        assert_eq!(made.ranks.len(), 3);
    }
}
