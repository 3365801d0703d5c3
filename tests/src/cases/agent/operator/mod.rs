//! An operator looks after a running cluster by the command line, while a program trains behind agents and
//! others count: three nodes become five and three others, and nobody notices.

mod seldom;
mod site;
mod upgrade;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use site::Site;
pub(super) use upgrade::run as upgrade;

/// The first voters: machines 1 up to this one.
const FIRST: u64 = 3;
/// The machines that come.
const NEW: [u64; 3] = [4, 5, 6];
/// How long it may take until a node has caught up, or a command's effect is seen everywhere.
const PATIENCE: Duration = Duration::from_secs(60);
/// Refusals that pass by themselves: the node is behind, or does not answer yet.
const NOT_YET: [&str; 2] = ["T4306 member-lagging", "T4305 member-silent"];
/// What a transfer is refused with whose heir did not take over in time: everything stays as it was.
const NOT_TAKEN: [&str; 1] = ["leadership was not handed over"];
/// What a change of the level is refused with while a member is slow to answer, or leadership moves.
const NOT_ASKED: [&str; 3] =
    ["T4407 level-silent", "the level is changed by the leader", "no node that answers knows a leader"];

/// Runs it; the remark tells the longest calls meanwhile.
pub(super) async fn run(python: &Path, folder: &Path) -> Result<String> {
    let mut site = Site::open(python, folder, NEW.len() as u64, "").await?;
    grow(&mut site).await.context("three become five")?;
    maintain(&mut site).await.context("maintenance of five")?;
    seldom::move_house(&mut site).await.context("a voter moves")?;
    back_up(&mut site).await.context("a backup")?;
    pin(&mut site).await.context("a pin")?;
    shrink(&mut site).await.context("five become three others")?;
    let list = site.terminal.done(&["member", "list"]).await?;
    ensure!(list[0]["votes"]["voters"] == json!(NEW), "others vote in the end: {}", list[0]);
    site.close(&NEW).await
}

/// Two nodes come and vote. The id of one is given before it is started; it gets its vote twice.
async fn grow(site: &mut Site) -> Result<()> {
    let peer = site.peer(NEW[0]);
    let added = site.command(&["member", "add", &peer]).await?;
    ensure!(added[0]["node"] == NEW[0], "it got another id: {}", added[0]);
    site.join(NEW[0]).await?;
    promote(site, NEW[0]).await?;
    site.command(&["member", "demote", &NEW[0].to_string()]).await?;
    promote(site, NEW[0]).await?;
    site.join(NEW[1]).await?;
    promote(site, NEW[1]).await
}

async fn promote(site: &mut Site, node: u64) -> Result<()> {
    let promoted = site.command_when_allowed(&["member", "promote", &node.to_string()], &NOT_YET).await?;
    let votes = promoted[0]["after"]["voters"].as_array().is_some_and(|voters| voters.contains(&node.into()));
    ensure!(votes, "node {node} was promoted and does not vote: {}", promoted[0]);
    Ok(())
}

/// Leadership moves, and the node that most agents are attached to is drained, which leads by then.
async fn maintain(site: &mut Site) -> Result<()> {
    // What a drain needs is there once the level was raised.
    site.terminal.shows_within(PATIENCE, &["level", "show"], at_newest_level).await?;
    let (node, agents) = site.stage.most_attached()?;
    let id = node.to_string();
    let leader = site.stage.cluster.wait_for_leader().await?;
    if leader == node {
        let away = site.command_when_allowed(&["leader", "transfer"], &NOT_TAKEN).await?;
        ensure!(away[0]["leader"] != away[0]["from"], "leadership stayed: {}", away[0]);
    }
    let moved = site.command_when_allowed(&["leader", "transfer", "--to", &id], &NOT_TAKEN).await?;
    ensure!(moved[0]["leader"] == node, "leadership went elsewhere: {}", moved[0]);
    let drained = site.command(&["node", "drain", &id]).await?;
    ensure!(drained[0]["leader"] != node, "node {node} is drained and leads: {}", drained[0]);
    site.wait_until_left(node).await.with_context(|| format!("{agents} agents were attached to it"))?;
    site.command(&["node", "undrain", &id]).await?;
    Ok(())
}

/// The state is saved while everybody writes, and the file is whole.
async fn back_up(site: &mut Site) -> Result<()> {
    let folder = tempfile::tempdir().context("a folder for the backup")?;
    let file = folder.path().join("backup.snap");
    let file = file.to_str().context("the folder is no text")?;
    let before = site.counting.acknowledged();
    let saved = site.command(&["snapshot", "save", file]).await?;
    let verified = site.terminal.done(&["snapshot", "verify", file]).await?;
    ensure!(saved[0]["hash"] == verified[0]["hash"], "saved {}, found {}", saved[0], verified[0]);
    let index = saved[0]["index"].as_u64().unwrap_or_default();
    ensure!(index > before, "{before} increments were acknowledged, and the backup ends at entry {index}");
    Ok(())
}

/// The level is lowered to that of the build before, and rises again.
async fn pin(site: &mut Site) -> Result<()> {
    let pinned = site.command_when_allowed(&["level", "pin", "1"], &NOT_ASKED).await?;
    let members = pinned[0]["members"].as_array().context("no members")?;
    let back = members.iter().all(|member| member["back_to"] == 1 && member["pinned"] == 1);
    ensure!(pinned[0]["level"] == 1 && back, "pinned and not back: {}", pinned[0]);
    site.command_when_allowed(&["level", "unpin"], &NOT_ASKED).await?;
    site.terminal.shows_within(PATIENCE, &["level", "show"], at_newest_level).await?;
    site.go_on("level raised again").await
}

/// Whether the level is the highest that every member supports.
fn at_newest_level(shown: &Value) -> bool {
    let members = shown["members"].as_array().map_or(&[][..], Vec::as_slice);
    let all_at_it = members.iter().all(|member| member["supports"][1] == shown["level"]);
    !members.is_empty() && all_at_it && shown["next"].is_null()
}

/// All go that everybody began with, those first that agents are attached to and the leader: one as a
/// learner, one as it is, and one by being replaced, at the second attempt.
async fn shrink(site: &mut Site) -> Result<()> {
    let goes = next_to_go(site).await?;
    site.command(&["member", "demote", &goes.to_string()]).await?;
    remove(site, goes).await?;
    seldom::come_back(site, goes).await.context("a node comes back that was taken out")?;
    let goes = next_to_go(site).await?;
    remove(site, goes).await?;
    let goes = next_to_go(site).await?;
    seldom::give_up(site, goes).await.context("a replacement is given up")?;
    site.join(NEW[2]).await?;
    let peer = site.peer(NEW[2]);
    site.command(&["member", "replace", &goes.to_string(), &peer, "--yes"]).await?;
    site.wait_until_ended(goes).await
}

async fn remove(site: &mut Site, node: u64) -> Result<()> {
    site.command(&["member", "remove", &node.to_string(), "--yes"]).await?;
    site.wait_until_ended(node).await
}

/// One of the first nodes: that to which most agents are attached, else the leader.
async fn next_to_go(site: &mut Site) -> Result<u64> {
    if let Ok((node, _)) = site.stage.most_attached()
        && node <= FIRST
    {
        return Ok(node);
    }
    let leader = site.stage.cluster.wait_for_leader().await?;
    if leader <= FIRST {
        return Ok(leader);
    }
    let left = site.stage.cluster.running();
    left.into_iter().find(|node| *node <= FIRST).context("all of the first nodes are gone")
}
