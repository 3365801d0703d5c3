//! What is done to the network.

use super::{Arena, Begun, Fault, Target, Undo, Way};
use crate::cluster::Cluster;
use crate::proxy::{Flow, LinkEnd, Network};

pub(super) async fn inject(fault: &Fault, arena: &mut Arena<'_>) -> anyhow::Result<Option<Begun>> {
    let Some(target) = target(fault) else { return bridge(arena).await };
    let Some(node) = arena.resolve(target).await else { return Ok(None) };
    let network = arena.cluster.network()?;
    let mut reset_after = Vec::new();
    match fault {
        Fault::Isolate { reset, .. } => {
            for other in others(network, node) {
                network.set_flow_between(LinkEnd::Node(node), other, Flow::Swallow);
            }
            reset_after.extend(reset.then_some(node));
        }
        Fault::OneWay { way, .. } => {
            for other in others(network, node) {
                match way {
                    Way::Inbound => network.set_flow(other, LinkEnd::Node(node), Flow::Swallow),
                    Way::Outbound => network.set_flow(LinkEnd::Node(node), other, Flow::Swallow),
                }
            }
        }
        Fault::CutClients(_) => {
            network.set_flow_between(LinkEnd::Clients, LinkEnd::Node(node), Flow::Swallow);
        }
        Fault::Delay { least_ms, jitter_ms, .. } => {
            let flow = Flow::Delay { least_ms: *least_ms, jitter_ms: *jitter_ms };
            everybody(network, node).for_each(|one| network.set_flow_between(LinkEnd::Node(node), one, flow));
        }
        Fault::Slow { bytes_per_second, .. } => {
            let flow = Flow::Slow { bytes_per_second: *bytes_per_second };
            everybody(network, node).for_each(|one| network.set_flow_between(LinkEnd::Node(node), one, flow));
        }
        Fault::Loss { lifetime_max_ms, .. } => everybody(network, node)
            .for_each(|one| network.limit_lifetime(LinkEnd::Node(node), one, Some(*lifetime_max_ms))),
        Fault::Refuse(_) => everybody(network, node).for_each(|one| {
            network.refuse_new(LinkEnd::Node(node), one, true);
            network.refuse_new(one, LinkEnd::Node(node), true);
            network.reset(LinkEnd::Node(node), one);
        }),
        _ => anyhow::bail!("{fault} is not done to the network"),
    }
    Ok(Begun::new(format!("node {node}"), Undo::HealNetwork { reset: reset_after }))
}

/// A good network, and resets for the connections of `reset`.
pub(super) fn heal(cluster: &Cluster, reset: &[u64]) -> anyhow::Result<()> {
    let network = cluster.network()?;
    // Before it heals, or what was held back would arrive after all.
    for node in reset {
        others(network, *node).for_each(|other| network.reset(LinkEnd::Node(*node), other));
    }
    network.heal();
    Ok(())
}

/// The leader's side and the other side hear each other only through the node in the middle, which does not
/// pass anything on: both sides have a majority with it.
async fn bridge(arena: &mut Arena<'_>) -> anyhow::Result<Option<Begun>> {
    let Some(leader) = arena.leader().await else { return Ok(None) };
    let network = arena.cluster.network()?;
    let mut rest: Vec<u64> = network.nodes().iter().copied().filter(|node| *node != leader).collect();
    let Some(middle) = rest.pop() else { return Ok(None) };
    // Of five nodes one more stays with the leader.
    let with_leader = rest.len().saturating_sub(1) / 2;
    let (near, far) = rest.split_at(with_leader);
    for one in near.iter().chain([&leader]) {
        for other in far {
            network.set_flow_between(LinkEnd::Node(*one), LinkEnd::Node(*other), Flow::Swallow);
        }
    }
    let target = format!("node {leader} and {far:?} hear node {middle} and not each other");
    Ok(Begun::new(target, Undo::HealNetwork { reset: Vec::new() }))
}

/// The node that is hit, or `None` for the fault that concerns all.
fn target(fault: &Fault) -> Option<Target> {
    match fault {
        Fault::Isolate { target, .. }
        | Fault::OneWay { target, .. }
        | Fault::CutClients(target)
        | Fault::Delay { target, .. }
        | Fault::Slow { target, .. }
        | Fault::Loss { target, .. }
        | Fault::Refuse(target) => Some(*target),
        _ => None,
    }
}

fn others(network: &Network, node: u64) -> impl Iterator<Item = LinkEnd> + '_ {
    network.nodes().iter().copied().filter(move |other| *other != node).map(LinkEnd::Node)
}

fn everybody(network: &Network, node: u64) -> impl Iterator<Item = LinkEnd> + '_ {
    others(network, node).chain([LinkEnd::Clients])
}
