//! Three nodes become five and three others while the program trains: nobody behind an agent notices.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tripod_chaos::cluster::{Cluster, ClusterOptions};
use tripod_client::wire::change_members_request::Change;
use tripod_client::wire::{ChangeMembersRequest, ListMembersResponse};
use tripod_client::{Client, Error};

use super::agents::{self, Agents, Setup};
use crate::cases::directed::stage::Stage;

/// The first voters; two more machines come.
const FIRST: u64 = 3;
/// Members that the cluster has in between.
const MOST: u64 = 5;
/// How long a change may take until it has ended.
const CHANGE_LIMIT: Duration = Duration::from_secs(60);
const CALL_LIMIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(100);

/// Runs it; the remark tells the longest call while members changed.
pub(super) async fn run(python: &Path, folder: &Path) -> Result<String> {
    let options = ClusterOptions { spares: MOST - FIRST, ..ClusterOptions::tripod()? };
    let mut cluster = Cluster::prepare(options)?;
    for node in 1..=FIRST {
        cluster.restart(node)?;
    }
    cluster.wait_until_ready().await?;
    let nodes: Vec<String> = (1..=FIRST).map(|node| cluster.endpoint(node)).collect();
    let mut stage = agents::stage_on(cluster, &nodes, python, folder, &Setup::default()).await?;
    let mark = stage.program.mark();
    for newcomer in FIRST + 1..=MOST {
        stage.cluster.restart(newcomer)?;
        let came = |list: &ListMembersResponse| {
            list.members.iter().any(|member| member.node_id == newcomer && !member.client_address.is_empty())
        };
        until(&mut stage.cluster, came).await.with_context(|| format!("node {newcomer} joins"))?;
        change(&mut stage.cluster, Change::Promote(newcomer)).await?;
        stage.program.go_on().await.with_context(|| format!("node {newcomer} votes"))?;
    }
    // Those go that everybody began with: the leader and, of the others, the one with most agents.
    for _ in FIRST..MOST {
        let goes = next_to_go(&mut stage).await?;
        change(&mut stage.cluster, Change::Remove(goes)).await?;
        wait_for_the_end(&mut stage.cluster, goes).await?;
        stage.program.go_on().await.with_context(|| format!("node {goes} is gone"))?;
    }
    let longest_ms = stage.program.longest_ms_since(&mark);
    // A call that failed would have ended its process: nothing is repeated here.
    stage.program.finish().await?;
    ensure!(!stage.way.all.iter().any(|agent| agent.output().contains("panicked")), "an agent panicked");
    Ok(format!("no call failed; longest call {longest_ms} ms"))
}

/// One of the first nodes: that to which most agents are attached, else the leader.
async fn next_to_go(stage: &mut Stage<Agents>) -> Result<u64> {
    match stage.most_attached() {
        Ok((node, _)) if node <= FIRST => Ok(node),
        _ => {
            let left = stage.cluster.running();
            let leader = stage.cluster.wait_for_leader().await?;
            let goes =
                if leader <= FIRST { Some(leader) } else { left.into_iter().find(|node| *node <= FIRST) };
            goes.context("all of the first nodes are gone")
        }
    }
}

/// The members as the leader lists them, once they are as wanted.
async fn until(
    cluster: &mut Cluster,
    wanted: impl Fn(&ListMembersResponse) -> bool,
) -> Result<ListMembersResponse> {
    let begin = Instant::now();
    loop {
        let leader = cluster.wait_for_leader().await?;
        let list = Client::members(&cluster.endpoint(leader), CALL_LIMIT).await;
        if let Ok(list) = list
            && list.by_leader
            && list.open.is_none()
            && wanted(&list)
        {
            return Ok(list);
        }
        ensure!(begin.elapsed() < CHANGE_LIMIT, "not within {CHANGE_LIMIT:?}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Has a change made, again while the node has not caught up or another one leads, and waits for its end.
async fn change(cluster: &mut Cluster, change: Change) -> Result<()> {
    let what = format!("{change:?}");
    let request =
        ChangeMembersRequest { change: Some(change), by: "a test".into(), ..ChangeMembersRequest::default() };
    let begin = Instant::now();
    loop {
        let leader = cluster.wait_for_leader().await?;
        match Client::change_members(&cluster.endpoint(leader), &request, CALL_LIMIT).await {
            Ok(_) => break,
            Err(error) if begin.elapsed() >= CHANGE_LIMIT => bail!("{what}: {error}"),
            Err(Error::Refused { reason, .. })
                if ["member-lagging", "member-silent", "not-leader"].contains(&reason.as_str()) => {}
            Err(error @ Error::Refused { .. }) => bail!("{what}: {error}"),
            Err(_) => {}
        }
        tokio::time::sleep(PAUSE).await;
    }
    until(cluster, |_| true).await.with_context(|| format!("the end of {what}"))?;
    Ok(())
}

/// A node that was removed ends by itself.
async fn wait_for_the_end(cluster: &mut Cluster, node: u64) -> Result<()> {
    let begin = Instant::now();
    while !cluster.take_ended().iter().any(|(ended, _)| *ended == node) {
        ensure!(begin.elapsed() < CHANGE_LIMIT, "node {node} was removed and still runs");
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}
