//! All tasks make one step, each of which waits for all others.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tripod_load::agents::{PlayedAgent, Step, Waits};

/// How long a step may take: far longer than any that is worth a figure.
const PATIENCE: Duration = Duration::from_secs(600);

/// How a step went.
#[derive(Debug, Clone)]
pub(super) struct Phase {
    /// How long each task waited, in the order of their numbers, in seconds.
    pub(super) waits_s: Vec<f64>,
    /// From the first call to the last answer.
    pub(super) whole_s: f64,
    pub(super) ended: Instant,
    /// From the leader's death to the last answer, if it died.
    pub(super) after_kill_s: Option<f64>,
}

/// All agents' tasks make a step. With a `word`, every second agent waits for it.
///
/// # Errors
/// A task was refused, or waits for too long.
pub(super) async fn run(
    agents: &[Arc<PlayedAgent>],
    step: Step,
    word: Option<watch::Receiver<bool>>,
) -> anyhow::Result<Phase> {
    let begin = Instant::now();
    let mut acting = JoinSet::new();
    for agent in agents {
        let agent = Arc::clone(agent);
        let word = word.clone().filter(|_| agent.number() % 2 == 1);
        acting.spawn(async move {
            if let Some(mut word) = word {
                word.wait_for(|said| *said).await.context("nobody gives the word")?;
            }
            anyhow::Ok((agent.number(), agent.all(step).await))
        });
    }
    let collected = tokio::time::timeout(PATIENCE, collect(acting)).await;
    let collected =
        collected.with_context(|| format!("{step:?}: some tasks still wait after {PATIENCE:?}"))?;
    let ended = Instant::now();
    let waits_s = all_passed(step, collected?)?;
    Ok(Phase { waits_s, whole_s: (ended - begin).as_secs_f64(), ended, after_kill_s: None })
}

/// By the numbers of the agents.
async fn collect(mut acting: JoinSet<anyhow::Result<(u32, Waits)>>) -> anyhow::Result<Vec<(u32, Waits)>> {
    let mut collected = Vec::with_capacity(acting.len());
    while let Some(acted) = acting.join_next().await {
        collected.push(acted.context("a played agent panicked")??);
    }
    collected.sort_by_key(|(agent, _)| *agent);
    Ok(collected)
}

fn all_passed(step: Step, collected: Vec<(u32, Waits)>) -> anyhow::Result<Vec<f64>> {
    let mut waits_s = Vec::new();
    let mut refused = 0_usize;
    let mut first = None;
    for (agent, waits) in collected {
        for wait in waits {
            match wait {
                Ok(wait_s) => waits_s.push(wait_s),
                Err(status) => {
                    refused += 1;
                    first.get_or_insert_with(|| {
                        format!("agent {agent}: {:?}: {}", status.code(), status.message())
                    });
                }
            }
        }
    }
    let all = waits_s.len() + refused;
    ensure!(
        refused == 0,
        "{step:?}: {refused} of {all} tasks were refused; the first: {}",
        first.unwrap_or_default()
    );
    Ok(waits_s)
}

/// The wait that this part of all waits is not above, in seconds. Not a number if there are none.
pub(super) fn quantile(waits_s: &[f64], part: f64) -> f64 {
    let mut sorted = waits_s.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (sorted.len() as f64 * part) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal() -> tonic::Status {
        tonic::Status::aborted("declared dead")
    }

    #[test]
    fn one_task_that_is_refused_is_told_with_its_agent() {
        let collected = vec![(0, vec![Ok(1.0), Ok(2.0)]), (1, vec![Ok(3.0), Err(refusal())])];
        let refused = all_passed(Step::Register, collected).unwrap_err().to_string();
        assert_eq!(
            refused,
            "Register: 1 of 4 tasks were refused; the first: agent 1: Aborted: declared dead"
        );
        let passed = vec![(0, vec![Ok(1.0), Ok(2.0)]), (1, vec![Ok(3.0)])];
        assert_eq!(all_passed(Step::Leave, passed).unwrap(), [1.0, 2.0, 3.0]);
    }

    #[test]
    fn a_quantile_is_one_of_the_waits() {
        let waits: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(
            (quantile(&waits, 0.5), quantile(&waits, 0.99), quantile(&waits, 1.0)),
            (51.0, 100.0, 100.0)
        );
        assert_eq!(quantile(&[4.0], 0.99), 4.0);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
