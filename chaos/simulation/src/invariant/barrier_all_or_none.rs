//! Nobody passes a barrier before all have come; all pass or nobody does; and who is named as missing is
//! missing.

use std::collections::{BTreeMap, BTreeSet};

use crate::observation::SimTime;

/// How an arrival ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    Passed,
    TimedOut {
        missing: BTreeSet<i32>,
    },
    /// Refused for another reason.
    Failed(String),
    /// The caller gave up.
    Unknown,
}

/// A task that came, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// When it first called.
    pub(crate) invoked: SimTime,
    /// When it had its last answer.
    pub(crate) ended: SimTime,
    pub(crate) end: End,
}

/// One instance of a barrier, after everybody who came has gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instance {
    pub(crate) name: String,
    pub(crate) tasks: BTreeSet<i32>,
    /// Those who came.
    pub(crate) arrivals: BTreeMap<i32, Arrival>,
    /// How long a call may take to be recorded at the latest; `None` while anything may happen to calls.
    pub(crate) recorded_within_ms: Option<u64>,
}

/// Judges an instance.
pub(crate) fn check(instance: &Instance) -> Result<(), String> {
    let Instance { name, arrivals, .. } = instance;
    let ended = |wanted: &dyn Fn(&End) -> bool| arrivals.iter().find(|(_, arrival)| wanted(&arrival.end));
    if let Some((task, passed)) = ended(&|end| *end == End::Passed) {
        nobody_early(instance, *task, passed)?;
        if let Some((other, failed)) = ended(&|end| matches!(end, End::TimedOut { .. } | End::Failed(_))) {
            return Err(format!(
                "task {task} passed barrier {name}, but task {other} was told {:?}",
                failed.end
            ));
        }
    }
    let mut told: Option<(i32, &BTreeSet<i32>)> = None;
    for (task, arrival) in arrivals {
        let End::TimedOut { missing } = &arrival.end else { continue };
        let (first, list) = *told.get_or_insert((*task, missing));
        if list != missing {
            return Err(format!(
                "at barrier {name} task {first} was told that {list:?} are missing, task {task} {missing:?}"
            ));
        }
    }
    told.map_or(Ok(()), |(_, missing)| missing_is_true(instance, missing))
}

fn nobody_early(instance: &Instance, task: i32, passed: &Arrival) -> Result<(), String> {
    for other in &instance.tasks {
        let late = instance.arrivals.get(other).is_none_or(|arrival| arrival.invoked >= passed.ended);
        if late {
            return Err(format!(
                "task {task} passed barrier {} at {} before task {other} came",
                instance.name, passed.ended
            ));
        }
    }
    Ok(())
}

fn missing_is_true(instance: &Instance, missing: &BTreeSet<i32>) -> Result<(), String> {
    let name = &instance.name;
    if missing.is_empty() {
        return Err(format!("barrier {name} timed out and nobody is named as missing"));
    }
    let unnamed =
        instance.tasks.iter().find(|task| !instance.arrivals.contains_key(task) && !missing.contains(task));
    if let Some(task) = unnamed {
        return Err(format!("task {task} never came to barrier {name} and is not named as missing"));
    }
    if let Some(stranger) = missing.iter().find(|task| !instance.tasks.contains(task)) {
        return Err(format!(
            "task {stranger} is named as missing at barrier {name} and is none of its tasks"
        ));
    }
    let Some(within_ms) = instance.recorded_within_ms else { return Ok(()) };
    let first_end = instance.arrivals.values().map(|arrival| arrival.ended).min().unwrap_or_default();
    for task in missing {
        let Some(arrival) = instance.arrivals.get(task) else { continue };
        if arrival.invoked.0 + within_ms < first_end.0 {
            return Err(format!(
                "task {task} is named as missing at barrier {name}, but came at {}, and the first was told at \
                 {first_end}",
                arrival.invoked
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(invoked: u64, ended: u64, end: End) -> Arrival {
        Arrival { invoked: SimTime(invoked), ended: SimTime(ended), end }
    }

    fn instance(arrivals: &[(i32, Arrival)]) -> Instance {
        Instance {
            name: "b".into(),
            tasks: [0, 1].into(),
            arrivals: arrivals.iter().cloned().collect(),
            recorded_within_ms: Some(100),
        }
    }

    fn timed_out(missing: &[i32]) -> End {
        End::TimedOut { missing: missing.iter().copied().collect() }
    }

    #[test]
    fn honest_ends_are_in_order() {
        for arrivals in [
            &[(0, arrival(1, 9, End::Passed)), (1, arrival(5, 9, End::Passed))][..],
            &[(0, arrival(1, 9, End::Passed)), (1, arrival(5, 9, End::Unknown))],
            &[(0, arrival(1, 900, timed_out(&[1])))],
            &[(0, arrival(1, 900, timed_out(&[1]))), (1, arrival(850, 900, timed_out(&[1])))],
        ] {
            assert_eq!(check(&instance(arrivals)), Ok(()), "{arrivals:?}");
        }
    }

    #[test]
    fn every_broken_promise_is_noticed() {
        for (arrivals, text) in [
            (&[(0, arrival(1, 9, End::Passed))][..], "before task 1 came"),
            (&[(0, arrival(1, 9, End::Passed)), (1, arrival(9, 12, End::Passed))], "before task 1 came"),
            (
                &[(0, arrival(1, 9, End::Passed)), (1, arrival(5, 9, timed_out(&[0])))],
                "task 0 passed barrier b, but task 1 was told",
            ),
            (&[(0, arrival(1, 900, timed_out(&[0])))], "task 1 never came to barrier b and is not named"),
            (&[(0, arrival(1, 900, timed_out(&[])))], "nobody is named as missing"),
            (&[(0, arrival(1, 900, timed_out(&[1, 7])))], "task 7 is named as missing"),
            (
                &[(0, arrival(1, 900, timed_out(&[1]))), (1, arrival(5, 900, timed_out(&[0, 1])))],
                "task 0 was told that {1} are missing",
            ),
            (
                &[(0, arrival(1, 900, timed_out(&[1]))), (1, arrival(5, 900, timed_out(&[1])))],
                "task 1 is named as missing at barrier b, but came at",
            ),
        ] {
            let broken = check(&instance(arrivals)).unwrap_err();
            assert!(broken.contains(text), "{broken}");
        }
    }

    #[test]
    fn a_call_that_may_be_late_may_be_named_as_missing() {
        let late = [(0, arrival(1, 900, timed_out(&[1]))), (1, arrival(5, 900, timed_out(&[1])))];
        assert_eq!(check(&Instance { recorded_within_ms: None, ..instance(&late) }), Ok(()));
    }
}
