//! Notices tasks that are done though nobody said so: a worker of 2016 reports the end of a task once, ignores what it
//! is answered, and waits for the next task. When the node that it reported to died with the report, it waits for ever.

use std::collections::BTreeMap;

use tripod_state::ray::{Decision, Ray, Run};

use super::leader_term::LeaderTerm;

/// Looks in the time in which stores are asked once.
const LOOKS: u32 = 12;
/// So many looks in a row without a report: the report is lost. One less than there are in that time, so that the
/// worker is idle again before the time is over. Looks are counted and not time: while this process does not run,
/// reports wait for it.
const LOST_AFTER: u32 = LOOKS - 1;

/// Runs until the job has no scheduler any more. Whether the workers live is the watchdog's business.
pub(super) async fn run(led: LeaderTerm) {
    let mut seen = Seen::default();
    loop {
        tokio::time::sleep(led.patience.reconcile_every / LOOKS).await;
        let Some(unreported) = led.look(Ray::unreported).await else { return };
        let runs = seen.overdue(&unreported);
        if !runs.is_empty() {
            tracing::info!(
                job = led.job.0,
                ?runs,
                "tasks made all their results and were not reported; they are taken for done"
            );
            led.decide(Decision::Unreported { runs }).await;
        }
    }
}

/// In how many looks in a row a task was seen.
#[derive(Debug, Default)]
struct Seen(BTreeMap<Run, u32>);

impl Seen {
    fn overdue(&mut self, unreported: &[Run]) -> Vec<Run> {
        let looks = |run: &Run| (*run, self.0.get(run).copied().unwrap_or(0) + 1);
        self.0 = unreported.iter().map(looks).collect();
        self.0.iter().filter(|(_, looks)| **looks >= LOST_AFTER).map(|(run, _)| *run).collect()
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ray::ids::{Attempt, OperationId};

    use super::*;

    fn run(operation: u64) -> Run {
        Run { operation: OperationId(operation), attempt: Attempt(1) }
    }

    #[test]
    fn a_task_is_overdue_when_it_was_seen_in_many_looks_in_a_row() {
        let mut seen = Seen::default();
        for _ in 1..LOST_AFTER {
            assert_eq!(seen.overdue(&[run(1), run(2)]), []);
        }
        assert_eq!(seen.overdue(&[run(2)]), [run(2)]);
        assert_eq!(seen.overdue(&[run(1), run(2)]), [run(2)], "the other one was reported in between");
    }
}
