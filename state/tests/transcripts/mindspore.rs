//! Commands to the schedulers of MindSpore and looks at them as lines. Nodes are named; what the leader finds out names
//! them, too.

use bytes::Bytes;
use tripod_state::mindspore::topology::{Dialect, Request, Role};
use tripod_state::mindspore::{Command, Decision, Member};
use tripod_state::{Scope, State};

use crate::script::Line;
use crate::{cluster, show};

/// The command of a line.
pub(crate) fn command(scope: Scope, state: &State, line: &Line<'_>) -> Command {
    if line.word(0).starts_with("ps-") {
        return cluster::command(scope, state, line);
    }
    match topology_decision(scope, state, line) {
        Some(decision) => Command::Lead { scope, decision },
        None => Command::Topology { scope, request: topology_request(line) },
    }
}

/// What a line that only looks is told.
pub(crate) fn look(scope: Scope, state: &State, line: &Line<'_>) -> Option<String> {
    if line.word(0).starts_with("ps") {
        return cluster::look(scope, state, line);
    }
    Some(match line.word(0) {
        "topo" => show::plain(&state.topology(scope)),
        "topo-node" => show::plain(&state.topology_node(scope, line.word(1))),
        "topo-nodes" => {
            let nodes = state.topology_nodes(scope).expect("the job is there");
            let lines = nodes.iter().map(|node| {
                format!("\n  {} {} rank {}, {}", node.node, node.role.name(), node.rank, node.host_name)
            });
            format!("nodes{}", lines.collect::<String>())
        }
        "topo-get" => show::plain(&state.topology_metadata(scope, line.word(1))),
        "topo-hosts" => show::plain(&state.topology_hosts(scope, line.word(1))),
        "topo-ports" => {
            let Some(ports) = state.topology_ports(scope).expect("the job is there") else {
                return Some("none".to_owned());
            };
            let lines = ports.iter().map(|(node, range)| format!(" {node}:{}-{}", range.first, range.last));
            format!("ports{}", lines.collect::<String>())
        }
        _ => return None,
    })
}

fn topology_decision(scope: Scope, state: &State, line: &Line<'_>) -> Option<Decision> {
    let nodes = || line.words_from(1).map(|name| topology_member(scope, state, name)).collect();
    Some(match line.word(0) {
        "topo-silent" => Decision::TopologySilent { nodes: nodes() },
        "topo-heard" => Decision::TopologyHeard { nodes: nodes() },
        "topo-timed-out" => {
            let current = state.topology(scope).map_or(0, |view| view.generation);
            Decision::TopologyTimedOut { generation: line.or("generation", current) }
        }
        _ => return None,
    })
}

/// One that is not there is nobody's.
fn topology_member(scope: Scope, state: &State, name: &str) -> Member {
    let node = state.topology_node(scope, name).expect("the job is there");
    node.map_or(Member(u64::MAX), |node| node.member)
}

fn topology_request(line: &Line<'_>) -> Request {
    let long = |text: String| text.repeat(line.or("times", 1));
    match line.word(0) {
        "topo-register" => Request::Register {
            node: long(line.text(1)),
            host_name: line.option("host").unwrap_or("vm").to_owned(),
            host_ip: line.option("ip").unwrap_or("").to_owned(),
            role: Role::named(line.word(2)).expect("a role"),
            wanted_rank: line.get("wanted"),
            dialect: if line.option("ip").is_some() { Dialect::V2_10 } else { Dialect::V2_0 },
        },
        "topo-leave" => Request::Unregister { node: line.text(1) },
        "topo-write" => Request::Write { name: line.text(1), value: Bytes::from(long(line.text(2))) },
        "topo-delete" => Request::Delete { name: line.text(1) },
        _ => line.unknown(),
    }
}
