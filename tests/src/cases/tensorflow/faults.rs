//! The faults of these tests: the leader dies, and with it whatever agents are attached to.
//!
//! On a busy machine a leader may be taken for dead and lose its office, and an agent may leave a node that
//! does not answer. So nobody relies on who led or was attached to whom when a scenario began.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tripod_processes::cluster::Cluster;
use tripod_processes::cluster::connections::connections_to;
use tripod_tests::jobs::port_of;
use tripod_tests::wait;

/// Until every agent is attached to a node.
const SETTLE_LIMIT: Duration = Duration::from_secs(60);

/// Kills the leader and every node that one of these agents is attached to, mostly one and the same. All but
/// the last one run again before the next one dies; the last one stays dead and is the answer. An agent is
/// whichever of the processes in its list is connected to a node.
pub(super) async fn kill_leader_and_attached(cluster: &mut Cluster, agents: &[Vec<u32>]) -> Result<u64> {
    let mut victims = BTreeSet::from([cluster.wait_for_leader().await?]);
    for agent in agents {
        let what = format!("a connection of the agent among the processes {agent:?} to a node");
        victims.extend(wait::until(&what, SETTLE_LIMIT, || attached(cluster, agent)).await?);
    }
    let last = victims.pop_last().context("a cluster without a leader")?;
    for victim in victims {
        cluster.kill(victim)?;
        cluster.restart(victim)?;
        cluster.wait_until_ready().await?;
    }
    cluster.kill(last)?;
    Ok(last)
}

/// The nodes that one of these processes is connected to, if any.
fn attached(cluster: &Cluster, processes: &[u32]) -> Result<Option<BTreeSet<u64>>> {
    let mut nodes = BTreeSet::new();
    for node in cluster.ids() {
        let port = port_of(&cluster.endpoint(node))?;
        for process in processes {
            if connections_to(*process, port)? > 0 {
                nodes.insert(node);
            }
        }
    }
    Ok((!nodes.is_empty()).then_some(nodes))
}
