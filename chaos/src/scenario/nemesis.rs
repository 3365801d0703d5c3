//! Carries a plan out.

use std::time::Duration;

use tokio::time::Instant;

use super::plan::Plan;
use crate::fault::{Arena, Begun};
use crate::history::{OpenFault, Recorder};
use crate::workload::Clock;

/// How long nodes are left unwatched at most.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A fault that is to end.
struct Running {
    until: Instant,
    begun: Begun,
    noted: OpenFault,
}

/// What of a plan came about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) injected: usize,
    /// There was nobody to whom it could be done, such as no leader.
    pub(super) skipped: usize,
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
        let next = steps.peek().map(|step| begin + Duration::from_millis(step.at_ms));
        if let Some(step) = steps.next_if(|_| next.is_some_and(|next| next <= now)) {
            let noted_at = clock.now();
            match step.fault.inject(arena).await? {
                None => done.skipped += 1,
                Some(begun) => {
                    done.injected += 1;
                    let noted = recorder.fault(noted_at, step.fault.kind(), begun.target.clone());
                    tell(step.fault.kind(), &begun.target, step.lasts_ms);
                    let until = Instant::now() + Duration::from_millis(step.lasts_ms);
                    running.push(Running { until, begun, noted });
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

async fn heal(
    running: &mut Vec<Running>,
    now: Instant,
    arena: &mut Arena<'_>,
    clock: Clock,
) -> anyhow::Result<()> {
    while let Some(place) = running.iter().position(|running| running.until <= now) {
        let Running { begun, noted, .. } = running.swap_remove(place);
        begun.heal(arena).await?;
        noted.heal(clock.now());
    }
    Ok(())
}

/// Progress for whoever watches.
fn tell(kind: &str, target: &str, lasts_ms: u64) {
    eprintln!("  {kind}: {target}, for {:.1} s", Duration::from_millis(lasts_ms).as_secs_f64());
}
