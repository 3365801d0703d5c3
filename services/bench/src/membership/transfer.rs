//! The leader hands over, again and again: how long does nobody get an acknowledgement?

use std::time::Duration;

use anyhow::Context as _;
use tokio::time::Instant;
use tripod_client::Client;

use super::{Goal, Row, operator, p99};
use crate::writers::{self, Writers};

/// Acknowledgements of every writer between two hand-overs.
const ENOUGH: usize = 20;
const PATIENCE: Duration = Duration::from_secs(60);
const TRANSFER_LIMIT: Duration = Duration::from_secs(10);
/// Of the gap that 99 of 100 hand-overs do not exceed, in seconds.
const GOAL: Goal = Goal::AtMost(0.3);

/// Has the leader hand over so many times.
pub(super) async fn run(times: u64) -> anyhow::Result<Vec<Row>> {
    let mut cluster = operator::three_and(0).await?;
    let running = Writers::start(&cluster.system(), &cluster.endpoints(), "transfer")?;
    running.wait_for(ENOUGH, Instant::now(), None, PATIENCE).await.context("before the first hand-over")?;
    let mut spans = Vec::new();
    for number in 1..=times {
        let leader = cluster.wait_for_leader().await?;
        let begun = Instant::now();
        Client::transfer_leader(&cluster.endpoint(leader), None, TRANSFER_LIMIT)
            .await
            .with_context(|| format!("hand-over {number}"))?;
        running.wait_for(ENOUGH, Instant::now(), None, PATIENCE).await?;
        spans.push((begun, Instant::now()));
    }
    let acknowledged = running.stop().await;
    let gaps = spans.into_iter().map(|(begun, ended)| {
        let gap = writers::longest_gap_until(&acknowledged, begun, ended);
        gap.map(|gap| gap.as_secs_f64()).context("no write after a hand-over")
    });
    let gaps = gaps.collect::<anyhow::Result<Vec<f64>>>()?;
    let worst = gaps.iter().copied().fold(f64::NAN, f64::max);
    Ok(vec![
        Row::new("leader hands over: write gap, p99", p99(gaps), " s", Some(GOAL)),
        Row::new("the same, the worst", worst, " s", None),
    ])
}
