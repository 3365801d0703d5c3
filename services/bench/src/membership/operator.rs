//! What is done to the members, and waiting for its end.

use std::time::Duration;

use anyhow::Context as _;
use tokio::time::Instant;
use tripod_client::wire::change_members_request::Change;
use tripod_client::wire::{ChangeMembersRequest, ListMembersResponse};
use tripod_client::{Client, Error};

use tripod_processes::cluster::{Cluster, ClusterOptions};

/// How long a change may take until it has ended. A node that joins may have to be sent all keys.
const CHANGE_PATIENCE: Duration = Duration::from_secs(180);
const CALL_LIMIT: Duration = Duration::from_secs(5);
const LOOK_PAUSE: Duration = Duration::from_millis(20);
/// Refusals that pass.
const PASSING: [&str; 4] = ["member-lagging", "member-silent", "not-leader", "change-in-progress"];

/// Three nodes that serve, and so many machines more on which none was started yet.
pub(super) async fn three_and(spares: u64) -> anyhow::Result<Cluster> {
    let mut cluster = Cluster::prepare(ClusterOptions { spares, ..ClusterOptions::tripod()? })?;
    for node in 1..=3 {
        cluster.restart(node)?;
    }
    cluster.wait_until_ready().await?;
    Ok(cluster)
}

/// The members once nothing is under way and they are as wanted.
pub(super) async fn until(
    cluster: &mut Cluster,
    wanted: impl Fn(&ListMembersResponse) -> bool,
) -> anyhow::Result<ListMembersResponse> {
    let deadline = Instant::now() + CHANGE_PATIENCE;
    loop {
        let leader = cluster.wait_for_leader().await?;
        if let Ok(list) = Client::members(&cluster.endpoint(leader), CALL_LIMIT).await
            && list.by_leader
            && list.open.is_none()
            && wanted(&list)
        {
            return Ok(list);
        }
        anyhow::ensure!(
            Instant::now() < deadline,
            "the members are not as wanted within {CHANGE_PATIENCE:?}"
        );
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}

/// Has a change made, again while the leader is not able to yet, and waits for its end.
pub(super) async fn change(cluster: &mut Cluster, change: Change) -> anyhow::Result<()> {
    let what = format!("{change:?}");
    let request = ChangeMembersRequest {
        change: Some(change),
        by: "the benchmark".into(),
        ..ChangeMembersRequest::default()
    };
    let deadline = Instant::now() + CHANGE_PATIENCE;
    loop {
        let leader = cluster.wait_for_leader().await?;
        match Client::change_members(&cluster.endpoint(leader), &request, CALL_LIMIT).await {
            Ok(_) => break,
            // Done, by an attempt whose answer was lost.
            Err(Error::Refused { reason, .. }) if reason == "nothing-to-change" => break,
            Err(Error::Refused { reason, message, .. }) if !PASSING.contains(&reason.as_str()) => {
                anyhow::bail!("{what}: {message}")
            }
            Err(error) if Instant::now() >= deadline => return Err(error).context(what),
            Err(_) => tokio::time::sleep(LOOK_PAUSE).await,
        }
    }
    until(cluster, |_| true).await.with_context(|| format!("the end of {what}"))?;
    Ok(())
}

/// Starts a node on a machine that has none, and waits until it is a member and has everything; its id.
pub(super) async fn join(cluster: &mut Cluster, machine: u64) -> anyhow::Result<u64> {
    cluster.restart(machine)?;
    let peers = cluster.peers(machine);
    let came = |list: &ListMembersResponse| {
        let mut members = list.members.iter();
        members
            .find(|member| {
                peers.contains(&member.peer_address) && member.lag_entries.is_some_and(|lag| lag < 100)
            })
            .filter(|member| !member.client_address.is_empty())
            .map(|member| member.node_id)
    };
    let list = until(cluster, |list| came(list).is_some()).await?;
    came(&list).context("it was just seen")
}

/// Waits until a node that was removed has ended, and makes its machine free.
pub(super) async fn vacate(cluster: &mut Cluster, machine: u64) -> anyhow::Result<()> {
    let deadline = Instant::now() + CHANGE_PATIENCE;
    while !cluster.take_ended().iter().any(|(ended, _)| *ended == machine) {
        anyhow::ensure!(
            Instant::now() < deadline,
            "the node on machine {machine} was removed and still runs"
        );
        tokio::time::sleep(LOOK_PAUSE).await;
    }
    cluster.vacate(machine)
}
