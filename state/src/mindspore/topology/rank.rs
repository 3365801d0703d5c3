//! Which rank a node has.
//!
//! Clients before 2.2 go by the rank in the answer to their registration, so it is final: the lowest free one. Later ones
//! read the entry `<role><node id>` when all nodes are there. Then, for each role, the first of these rules that gives
//! every node a rank of its own below their number holds: the ranks that were given to all of them from outside; the
//! numbers that all of their ids are; their order by address and id.

use imbl::OrdSet;

use crate::ids::NodeName;
use crate::mindspore;
use crate::mindspore::topology::record::{Node, Topology};

/// The rank that a node is answered when it comes: final for clients that go by it, and else the likely one.
pub(super) fn on_arrival(
    topology: &Topology,
    name: &NodeName,
    host_ip: &str,
    (role, wanted): (mindspore::Role, Option<u32>),
    places: u32,
) -> u32 {
    let likely = if is_final(host_ip) { None } else { wanted.or_else(|| number(name)) };
    let free = likely.filter(|rank| *rank < places && topology.ranks().get(role, *rank).is_none());
    free.unwrap_or_else(|| topology.ranks().free(role))
}

/// The ranks that all nodes of one role have for good, in their order; `None`: as they are.
pub(super) fn when_complete(nodes: &[(NodeName, Node)]) -> Option<Vec<u32>> {
    if nodes.iter().any(|(_, node)| is_final(&node.host_ip)) {
        return None;
    }
    let wanted = nodes.iter().map(|(_, node)| node.wanted_rank).collect::<Option<Vec<u32>>>();
    let numbers = || nodes.iter().map(|(name, _)| number(name)).collect::<Option<Vec<u32>>>();
    let ranks = wanted.filter(|ranks| each_its_own(ranks));
    Some(ranks.or_else(|| numbers().filter(|ranks| each_its_own(ranks))).unwrap_or_else(|| by_address(nodes)))
}

fn is_final(host_ip: &str) -> bool {
    host_ip.is_empty()
}

/// The number that an id is.
fn number(name: &NodeName) -> Option<u32> {
    let text = name.as_str();
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn each_its_own(ranks: &[u32]) -> bool {
    let distinct: OrdSet<u32> = ranks.iter().copied().collect();
    distinct.len() == ranks.len() && ranks.iter().all(|rank| (*rank as usize) < ranks.len())
}

fn by_address(nodes: &[(NodeName, Node)]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by(|one, other| key(&nodes[*one]).cmp(&key(&nodes[*other])));
    let mut ranks = vec![0; nodes.len()];
    for (rank, place) in (0..).zip(order) {
        ranks[place] = rank;
    }
    ranks
}

fn key((name, node): &(NodeName, Node)) -> (&str, &str) {
    (&node.host_ip, name.as_str())
}
