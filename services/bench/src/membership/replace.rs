//! The leader dies for good, and a new node takes its place: how long does nobody get an acknowledgement?

use std::time::Duration;

use anyhow::Context as _;
use tokio::time::Instant;
use tripod_client::wire::ReplaceMember;
use tripod_client::wire::change_members_request::Change;

use super::operator;
use super::{Goal, Row};
use crate::stats::Samples;
use crate::writers::{self, Writers};

/// Acknowledgements of every writer before the kill, and of every surviving one between two steps.
const ENOUGH: usize = 50;
const PATIENCE: Duration = Duration::from_secs(120);
/// Of the longest gap, in seconds: the election is in it.
const GOAL: Goal = Goal::AtMost(1.5);
/// Of the longest gap after the election.
const CHANGE_GOAL: Goal = Goal::AtMost(0.3);
/// The machine of the new node.
const SPARE: u64 = 4;

/// Replaces so many dead leaders, each of a cluster of its own.
pub(super) async fn run(times: u64) -> anyhow::Result<Vec<Row>> {
    let (mut gap, mut after, mut lost) = (Samples::default(), Samples::default(), 0);
    for number in 1..=times {
        let trial = trial().await.with_context(|| format!("replacement {number}"))?;
        eprintln!(
            "replacement {number} of {times}: {:.0} ms, {:.0} ms after the election",
            trial.gap.as_secs_f64() * 1e3,
            trial.after.as_secs_f64() * 1e3
        );
        gap.push(trial.gap.as_secs_f64());
        after.push(trial.after.as_secs_f64());
        lost += trial.lost;
    }
    Ok(vec![
        Row::new("replacing a dead leader: longest write gap, the worst", gap.max(), " s", Some(GOAL)),
        Row::new("the same after the election", after.max(), " s", Some(CHANGE_GOAL)),
        Row::new("acknowledged writes that are lost", lost as f64, "", Some(Goal::AtMost(0.0))),
    ])
}

struct Trial {
    gap: Duration,
    /// While the members changed.
    after: Duration,
    lost: usize,
}

async fn trial() -> anyhow::Result<Trial> {
    let mut cluster = operator::three_and(1).await?;
    let system = cluster.system();
    let endpoints: Vec<String> = (1..=3).map(|node| cluster.endpoint(node)).collect();
    let leader = cluster.wait_for_leader().await?;
    let dead = Some(usize::try_from(leader - 1)?);
    let running = Writers::start(&system, &endpoints, "replace")?;
    running.wait_for(ENOUGH, Instant::now(), None, PATIENCE).await.context("before the kill")?;

    let killed_at = Instant::now();
    cluster.kill(leader)?;
    running.wait_for(ENOUGH, killed_at, dead, PATIENCE).await.context("after the leader was killed")?;
    let change_at = Instant::now();
    cluster.restart(SPARE)?;
    let [peer_address, _] = cluster.peers(SPARE);
    operator::change(&mut cluster, Change::Replace(ReplaceMember { node_id: leader, peer_address })).await?;
    let replaced_at = Instant::now();
    running.wait_for(ENOUGH, replaced_at, dead, PATIENCE).await.context("after the replacement")?;
    let acknowledged = running.stop().await;

    let gap = writers::longest_gap(&acknowledged, killed_at).context("no write after the kill")?;
    let after = writers::longest_gap(&acknowledged, change_at).context("no write after the replacement")?;
    let left: Vec<String> =
        cluster.ids().filter(|node| *node != leader).map(|node| cluster.endpoint(node)).collect();
    let lost = writers::find_lost(&system, &left, &acknowledged).await?.len();
    Ok(Trial { gap, after, lost })
}
