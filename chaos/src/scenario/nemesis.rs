//! Carries a plan out.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::plan::Plan;
use tripod_checkers::history::{Micros, OpenFault, Recorder};
use tripod_processes::fault::{Arena, Begun, Subsystem};
use tripod_processes::workload::Clock;

/// How long nodes are left unwatched at most.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A fault that is to end.
struct Running {
    subsystem: Subsystem,
    until: Instant,
    begun: Begun,
    noted: OpenFault,
    kind: &'static str,
    began: Micros,
}

/// What of a plan came about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) injected: usize,
    /// There was nobody to whom it could be done, such as no leader; by kind.
    pub(super) skipped: BTreeMap<String, u64>,
}

/// Does everything that the plan says, and heals it all, the last of it at the plan's end.
///
/// # Errors
/// The harness failed.
pub(super) async fn carry_out(
    plan: &Plan,
    arena: &mut Arena<'_>,
    recorder: &Recorder,
    clock: Clock,
) -> anyhow::Result<Done> {
    let begin = Instant::now();
    let end = begin + Duration::from_millis(plan.length_ms);
    let mut done = Done::default();
    let mut running: Vec<Running> = Vec::new();
    let mut steps = plan.steps.iter().peekable();
    loop {
        let now = Instant::now();
        heal(&mut running, now, arena, clock).await?;
        arena.look_for_the_dead()?;
        let next = steps.peek().map(|step| {
            let planned = begin + Duration::from_millis(step.at_ms);
            let others = running.iter().map(|running| (running.subsystem, running.until));
            begins(planned, step.fault.subsystem(), others)
        });
        if let Some(step) = steps.next_if(|_| next.is_some_and(|next| next <= now)) {
            let noted_at = clock.now();
            let (kind, subsystem) = (step.fault.kind(), step.fault.subsystem());
            match step.fault.inject(arena).await? {
                None => *done.skipped.entry(kind.to_owned()).or_default() += 1,
                Some(begun) => {
                    done.injected += 1;
                    let planned = Micros::from_millis(step.lasts_ms);
                    let noted = recorder.fault(noted_at, kind, begun.target.clone()).planned(planned);
                    eprintln!("{}", began(kind, &begun.target));
                    let until = Instant::now() + Duration::from_millis(step.lasts_ms);
                    running.push(Running { subsystem, until, begun, noted, kind, began: noted_at });
                }
            }
            continue;
        }
        if next.is_none() && running.is_empty() && now >= end {
            return Ok(done);
        }
        let soonest = running.iter().map(|running| running.until).chain(next).chain([now + LOOK_EVERY]).min();
        tokio::time::sleep_until(soonest.unwrap_or(now)).await;
    }
}

/// When a step is carried out. One that came late, because nobody led or an answer took its time, may last into
/// what is planned behind it for its subsystem, and then that waits: who is paused must not be killed.
fn begins(
    planned: Instant,
    subsystem: Subsystem,
    running: impl IntoIterator<Item = (Subsystem, Instant)>,
) -> Instant {
    let same_subsystem = running.into_iter().filter(|(other, _)| *other == subsystem);
    same_subsystem.map(|(_, until)| until).max().map_or(planned, |until| until.max(planned))
}

async fn heal(
    running: &mut Vec<Running>,
    now: Instant,
    arena: &mut Arena<'_>,
    clock: Clock,
) -> anyhow::Result<()> {
    while let Some(place) = running.iter().position(|running| running.until <= now) {
        let Running { begun, noted, kind, began, .. } = running.swap_remove(place);
        let target = begun.target.clone();
        begun.heal(arena).await?;
        let healed = clock.now();
        noted.heal(healed);
        eprintln!("{}", over(kind, &target, healed.since(began)));
    }
    Ok(())
}

/// Progress for whoever watches: how long a fault will last is not known yet, since healing it takes its time, too.
fn began(kind: &str, target: &str) -> String {
    format!("  {kind}: {target}")
}

/// Progress when it is over.
fn over(kind: &str, target: &str, lasted: Micros) -> String {
    format!("  {kind}: {target}, over after {:.1} s", lasted.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_waits_for_the_one_before_it_in_its_lane_and_for_no_other() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let running = [(Subsystem::Machine, at(9)), (Subsystem::Network, at(30))];
        assert_eq!(begins(at(5), Subsystem::Machine, running), at(9));
        assert_eq!(begins(at(10), Subsystem::Machine, running), at(10));
        assert_eq!(begins(at(5), Subsystem::Members, running), at(5));
        assert_eq!(begins(at(5), Subsystem::Members, []), at(5));
    }
}
