//! The death of whoever leads, where workers know only one node.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tripod_client::Client;
use tripod_processes::cluster::Cluster;
use tripod_tests::wait;

/// Until somebody else leads.
const SETTLE_LIMIT: Duration = Duration::from_secs(60);
const TRANSFER_LIMIT: Duration = Duration::from_secs(5);

/// Kills the leader, but not the node that workers without agents are attached to, whose death would end
/// them: if that one leads, it hands over first. Gives the node that is dead now.
pub(super) async fn kill_leader_but(cluster: &mut Cluster, spared: u64) -> Result<u64> {
    let begin = Instant::now();
    loop {
        let leader = cluster.wait_for_leader().await?;
        if leader != spared {
            cluster.kill(leader)?;
            return Ok(leader);
        }
        ensure!(begin.elapsed() < wait::scaled(SETTLE_LIMIT), "node {spared} leads again and again");
        let heir = cluster.ids().find(|node| *node != spared);
        // Whether it worked is seen by who leads then.
        let _ = Client::transfer_leader(&cluster.endpoint(spared), heir, TRANSFER_LIMIT).await;
    }
}
