//! What a run waits for, and for how long: whatever takes longer is a violation.

use std::time::Duration;

use tripod_wait::scaled;

use super::recovery::SERVE_PATIENCE;
use super::run::{EQUAL_PATIENCE, READ_PATIENCE, STOP_PATIENCE};
use tripod_checkers::check::Rules;
use tripod_checkers::history::Micros;
use tripod_checkers::report::Bound;

/// The bounds of a whole run: those of its history, and those after the last fault, in the order in which they are
/// waited for.
pub(super) fn of_run(rules: &Rules) -> Vec<Bound> {
    let after = [
        ("after the last fault: one node leads, and every node serves", SERVE_PATIENCE),
        ("then: every kind of write that clients made before is acknowledged again", SERVE_PATIENCE),
        ("then: the last call of every client ends", STOP_PATIENCE),
        ("then: everything is read once more", READ_PATIENCE),
        ("then: all nodes have applied equally much", EQUAL_PATIENCE),
    ];
    let after = after.into_iter().map(|(what, patience)| bound(what, micros(scaled(patience))));
    of_history(rules).into_iter().chain(after).collect()
}

/// Those that the checkers apply to a history.
pub(super) fn of_history(rules: &Rules) -> Vec<Bound> {
    let mut bounds = Vec::new();
    if let Some(heartbeat) = rules.heartbeat {
        let late = heartbeat.timeout.plus(heartbeat.bound);
        bounds.push(bound(
            "a task that is silent is declared dead; counted anew from the end of each fault",
            late,
        ));
        bounds.push(bound("a task that lives beats again, or may be declared dead", heartbeat.timeout));
    }
    if let Some(release) = rules.release {
        let calm = release.aftermath.as_secs_f64();
        let what =
            format!("a read of a key that was written is answered, with no fault in the {calm:.0} s before");
        bounds.push(bound(&what, release.bound));
    }
    if let Some(settles) = rules.arrival_settles {
        bounds.push(bound(
            "an arrival at a barrier counts, with no fault for as long before and after it",
            settles,
        ));
    }
    bounds
}

fn bound(what: &str, within_us: Micros) -> Bound {
    Bound { what: what.to_owned(), within_us }
}

fn micros(time: Duration) -> Micros {
    Micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::run::rules;

    #[test]
    fn every_rule_with_a_bound_is_among_the_bounds() {
        assert_eq!(of_history(&Rules::default()), []);
        let told = of_run(&rules());
        for within in [RELEASE, SILENCE, scaled(SERVE_PATIENCE), scaled(STOP_PATIENCE)] {
            assert!(
                told.iter().any(|bound| bound.within_us == micros(within)),
                "{within:?} is not in {told:?}"
            );
        }
    }

    const RELEASE: Duration = Duration::from_secs(6);
    const SILENCE: Duration = Duration::from_secs(25);
}
