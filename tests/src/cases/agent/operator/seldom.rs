//! What an operator does seldom: gives a change up, moves a node to another address, and starts one that was taken
//! out as if nothing had been.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tripod_processes::cluster::ReservedPorts;
use tripod_tests::wait::scaled;

use super::site::Site;
use super::{FIRST, NEW, NOT_TAKEN, PATIENCE};

/// Entries that a voter may lack that follows: others write all the time.
const LAG_MAX: u64 = 100;

/// A replacement by a node that does not come is given up. Another operator is told whose change it is, and none of
/// the two has changed who votes.
pub(super) async fn give_up(site: &mut Site, goes: u64) -> Result<()> {
    let (comes, old, peer) = (NEW[2], goes.to_string(), site.peer(NEW[2]));
    let votes = list(site).await?["votes"].take();
    let begun = site.command(&["member", "replace", &old, &peer, "--no-wait", "--yes"]).await?;
    let change = begun[0]["change"].as_u64().context("the change has no number")?;
    let member = |list: &Value| find(list, comes).is_some();
    site.terminal
        .shows_within(PATIENCE, &["member", "list"], member)
        .await
        .context("the new one gets the log")?;

    let told = site.colleague.refused(&["member", "demote", &NEW[0].to_string()]).await?;
    let owner = format!("change in progress by {}", site.terminal.user());
    let parts = ["T4301 change-in-progress", &owner, &format!("`tripod member cancel {change}`")];
    ensure!(parts.iter().all(|part| told.contains(part)), "another operator is told: {told}");

    let ended = site.command(&["member", "cancel", &change.to_string()]).await?;
    ensure!(ended[0] == json!({ "change": change, "ending": "cancelled" }), "given up: {}", ended[0]);
    let list = list(site).await?;
    let over = list["change"].is_null() && list["last_change"]["id"] == change;
    let same = ["voters", "quorum"].iter().all(|what| list["votes"][what] == votes[what]);
    ensure!(over && same, "before it was given up {votes}, then {list}");
    // What was done by then stays: the node that has not come only listens.
    ensure!(list["votes"]["learners"] == json!([comes]), "node {comes} is no learner: {list}");
    Ok(())
}

/// The voter that most agents are attached to gets another peer address, and leads there.
pub(super) async fn move_house(site: &mut Site) -> Result<()> {
    let (node, _) = site.stage.most_attached()?;
    let id = node.to_string();
    let place = ReservedPorts::reserve(1)?;
    let peer = format!("127.0.0.1:{}", place.first());
    site.hold(place);
    site.stop(node).await?;
    site.command(&["member", "move", &id, &peer]).await?;
    site.start_at(node, &peer)?;
    let back = |list: &Value| {
        let follows = |member: &Value| member["lag_entries"].as_u64().is_none_or(|lag| lag < LAG_MAX);
        find(list, node).is_some_and(|member| member["answers"] == true && follows(member))
    };
    let shown = site.terminal.shows_within(PATIENCE, &["member", "list"], back).await;
    let shown = shown.with_context(|| format!("node {node} at {peer}"))?;
    let there =
        find(&shown, node).is_some_and(|member| member["role"] == "voter" && member["peer_address"] == peer);
    ensure!(there, "node {node} was moved to {peer}: {shown}");
    site.go_on(&format!("node {node} at its other address")).await?;
    // Others follow it there, and it follows them.
    let begin = Instant::now();
    loop {
        let list = list(site).await?;
        if list["leader"] == node {
            return Ok(());
        }
        ensure!(
            begin.elapsed() < scaled(PATIENCE),
            "node {node} does not lead where it was moved to: {list}"
        );
        site.command_when_allowed(&["leader", "transfer", "--to", &id], &NOT_TAKEN).await?;
    }
}

/// A node that was taken out comes with its old id and an empty directory: it ends and says what to do instead.
pub(super) async fn come_back(site: &mut Site, node: u64) -> Result<()> {
    ensure!(node <= FIRST, "node {node} is started without its id");
    let before = list(site).await?["votes"].take();
    let data = site.stage.cluster.root().join(format!("node-{node}"));
    std::fs::remove_dir_all(&data).with_context(|| format!("cannot remove {}", data.display()))?;
    let told = site.refused_start(node).await?;
    let all = ["T4201 node-removed: ", "empty its data directory", "`tripod server --join "];
    ensure!(all.iter().all(|part| told.contains(part)), "node {node}, which was taken out, is told: {told}");
    let list = list(site).await?;
    let same = ["voters", "learners", "quorum"].iter().all(|what| list["votes"][what] == before[what]);
    let same = same && list["change"].is_null();
    ensure!(same && find(&list, node).is_none(), "node {node} came back: before {before}, then {list}");
    Ok(())
}

async fn list(site: &Site) -> Result<Value> {
    site.terminal.done(&["member", "list"]).await?.pop().context("`member list` shows nothing")
}

fn find(list: &Value, node: u64) -> Option<&Value> {
    list["members"].as_array()?.iter().find(|member| member["id"] == node)
}
