//! MindSpore's clusters, as messages.

use tripod_proto::tripod::v1 as wire;
use tripod_state::mindspore::cluster::{
    self, EventView, Events, NodeLife, NodeReport, Plan, PlannedNode, Report, ScalingView,
};
use tripod_state::mindspore::topology::{self, Dialect};
use tripod_state::{Fault, Scope, State};

/// How far the clusters of a job are.
pub(crate) fn state(state: &State, scope: Scope) -> Result<wire::MindsporeState, Fault> {
    let topology = state.topology(scope)?;
    Ok(wire::MindsporeState {
        topology: (topology.generation > 0).then(|| self::topology(&topology)),
        cluster: state.cluster_report(scope)?.as_ref().map(cluster),
    })
}

/// Who belongs to them.
pub(crate) fn nodes(state: &State, scope: Scope) -> Result<wire::MindsporeNodes, Fault> {
    Ok(wire::MindsporeNodes {
        topology: state.topology_nodes(scope)?.into_iter().map(topology_node).collect(),
        topology_generation: state.topology(scope)?.generation,
        cluster: state.cluster_node_reports(scope)?.into_iter().map(cluster_node).collect(),
        cluster_generation: state.cluster(scope)?.generation,
    })
}

pub(crate) fn events(events: Events) -> wire::MindsporeEvents {
    let event = |event: EventView| wire::MindsporeEvent {
        number: event.number,
        event: event.event,
        from: event.from.map_or_else(String::new, |node| node.to_string()),
        untold: event.untold,
    };
    wire::MindsporeEvents {
        events: events.events.into_iter().map(event).collect(),
        missed: events.missed,
        next: events.next,
    }
}

pub(crate) fn plan(plan: Plan) -> wire::MindsporePlan {
    let leaving = plan.leaving().into_iter().map(ToString::to_string).collect();
    let node = |node: PlannedNode| wire::MindsporePlannedNode {
        node_id: node.node.to_string(),
        role: node.role.word().to_owned(),
        rank_before: node.before,
        rank_after: node.after,
    };
    wire::MindsporePlan {
        generation: plan.generation,
        workers: plan.before.workers,
        servers_before: plan.before.servers,
        servers_after: plan.after.servers,
        add_servers: plan.added,
        leave: Some(wire::MindsporeLeave { node_ids: leaving }),
        nodes: plan.nodes.into_iter().map(node).collect(),
        free_ranks: plan.free_ranks,
    }
}

fn topology(view: &topology::View) -> wire::MindsporeTopology {
    let release = match view.dialect {
        Some(Dialect::V2_0) => "2.0",
        Some(Dialect::V2_10) => "2.10",
        None => "",
    };
    wire::MindsporeTopology {
        state: view.state.word().to_owned(),
        generation: view.generation,
        expected: view.nodes,
        registered: view.registered,
        silent: view.silent,
        deadline_ms: view.deadline_ms.map_or(0, |at| at.0),
        release: release.to_owned(),
    }
}

fn cluster(report: &Report) -> wire::MindsporeCluster {
    let cluster::View { state, generation, published, expected, present, dead, events, .. } = report.view;
    wire::MindsporeCluster {
        state: state.word().to_owned(),
        generation,
        published,
        workers: expected.workers,
        servers: expected.servers,
        present,
        dead,
        given_up: report.given_up,
        finished: report.finished,
        events,
        next_event: report.next_event,
        deadline_ms: report.deadline_ms.map_or(0, |at| at.0),
        scaling: report.scaling.as_ref().map(scaling),
    }
}

fn scaling(view: &ScalingView) -> wire::MindsporeScaling {
    wire::MindsporeScaling {
        direction: view.scaling.word().to_owned(),
        workers_before: view.before.workers,
        servers_before: view.before.servers,
        begun: view.begun,
        taken_back: view.is_taken_back,
        complete: view.is_complete,
        undone: view.undone,
    }
}

fn topology_node(node: topology::NodeView) -> wire::MindsporeTopologyNode {
    wire::MindsporeTopologyNode {
        node_id: node.node.to_string(),
        role: node.role.name().to_owned(),
        rank: node.rank,
        host: node.host_name,
        address: node.host_ip,
        silent: node.silent,
        recovered: node.recovered,
    }
}

fn cluster_node(report: NodeReport) -> wire::MindsporeClusterNode {
    let NodeReport { view: node, life, told, next, events } = report;
    let (life, since, until) = match life {
        NodeLife::Alive => ("alive", 0, 0),
        NodeLife::Dead { since_ms, until_ms } => ("dead", since_ms.0, until_ms.0),
        NodeLife::GivenUp => ("given-up", 0, 0),
    };
    wire::MindsporeClusterNode {
        node_id: node.node.to_string(),
        role: node.role.word().to_owned(),
        rank: node.rank,
        address: address(&node.ip, node.port),
        incarnation: node.incarnation.0,
        life: life.to_owned(),
        silent_since_ms: since,
        place_until_ms: until,
        entered: node.is_entered,
        finished: node.is_finished,
        state: node.state.word().to_owned(),
        told,
        next: next.map_or("", cluster::Order::word).to_owned(),
        events,
    }
}

/// As one writes it: an address of IPv6 in brackets.
fn address(ip: &str, port: u32) -> String {
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_ipv6_stands_in_brackets() {
        assert_eq!([address("10.0.0.1", 7), address("fd00::1", 7)], ["10.0.0.1:7", "[fd00::1]:7"]);
    }
}
