//! Every node gets a newer build, one after the other, and the older one again, while a program trains behind agents
//! and others count.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::site::Site;
use super::{FIRST, PATIENCE, at_newest_level};

/// Has this build be the one before, which supports feature level 2 only.
const OLDER: &str = "--feature-level-max 2";
const NEWER: &str = "";

/// Runs it; the remark tells the longest calls meanwhile.
pub(in crate::cases::agent) async fn run(python: &Path, folder: &Path) -> Result<String> {
    let mut site = Site::open(python, folder, 0, OLDER).await?;
    shows(&site, 2, 2).await.context("before")?;
    roll(&mut site, NEWER).await.context("the upgrade")?;
    // Nobody says that it may rise.
    site.terminal.shows_within(PATIENCE, &["level", "show"], at_newest_level).await?;
    site.go_on("the level rises").await?;
    let newest = newest(&site).await.context("after the upgrade")?;
    shows(&site, newest, newest).await.context("after the upgrade")?;
    site.command(&["level", "pin", "2"]).await?;
    shows(&site, 2, newest).await.context("with the pin")?;
    roll(&mut site, OLDER).await.context("the way back")?;
    shows(&site, 2, 2).await.context("after the way back")?;
    let nodes: Vec<u64> = (1..=FIRST).collect();
    site.close(&nodes).await
}

/// Starts every node with these flags, the leader last; the level stays where it is until the last one.
async fn roll(site: &mut Site, flags: &str) -> Result<()> {
    let leader = site.stage.cluster.wait_for_leader().await?;
    for node in (1..=FIRST).filter(|node| *node != leader) {
        site.restart_with(node, flags).await?;
        let level = site.terminal.done(&["level", "show"]).await?;
        ensure!(level[0]["level"] == 2, "node {node} is back, others are to follow: {}", level[0]);
    }
    site.restart_with(leader, flags).await
}

/// The highest level that this build supports, which is above what the one before does.
async fn newest(site: &Site) -> Result<u64> {
    let shown = site.terminal.done(&["level", "show"]).await?;
    let newest = shown[0]["members"][0]["supports"][1].as_u64().unwrap_or_default();
    ensure!(newest > 2, "the newer build supports nothing new: {}", shown[0]);
    Ok(newest)
}

/// Checks at which level the cluster is, and which one every node supports at most.
async fn shows(site: &Site, level: u64, highest: u64) -> Result<()> {
    let every = |shown: &Value| {
        let members = shown["members"].as_array().map_or(&[][..], Vec::as_slice);
        members.len() as u64 == FIRST && members.iter().all(|member| member["supports"][1] == highest)
    };
    let shown = site.terminal.shows_within(PATIENCE, &["level", "show"], every).await?;
    ensure!(shown["level"] == level, "the cluster is at another level than {level}: {shown}");
    Ok(())
}
