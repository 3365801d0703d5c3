//! The list of those who did not come, and when it may be told.

use super::instance::Instance;
use crate::check::{Rules, Violation};
use crate::history::{History, Micros, Missing, Operation, Reply, TaskId};

/// A time-out is measured on a node and on a client by clocks of one machine that tick in milliseconds.
const TICK: Micros = Micros::from_millis(10);

/// Judges whatever list an instance told.
pub(super) fn check(
    instance: &Instance<'_>,
    subject: &str,
    stays: &dyn Fn(TaskId) -> bool,
    run: (&History, &Rules),
    violations: &mut Vec<Violation>,
) {
    let mut told: Vec<(&Operation, &Missing)> =
        instance.failed().filter_map(|(operation, missing)| Some((operation, missing?))).collect();
    told.sort_by_key(|(operation, _)| operation.completed);
    let Some((first, missing)) = told.first().copied() else { return };
    if let Some((other, list)) = told.iter().find(|(_, list)| *list != missing) {
        let text = format!(
            "operation {} was told that {} tasks are missing ({}), operation {} that {} are ({})",
            first.id,
            missing.count,
            names(&missing.named),
            other.id,
            list.count,
            names(&list.named)
        );
        violations.push(Violation::new("wrong-missing-list", subject, text, &[first, other]));
        return;
    }
    violations.extend(too_early(instance, subject, first));
    let before = violations.len();
    violations.extend(stranger(instance, subject, first, missing));
    violations.extend(omitted(instance, subject, first, missing));
    if violations.len() == before {
        violations.extend(arrived(instance, subject, stays, run, (first, missing)));
    }
}

fn too_early(instance: &Instance<'_>, subject: &str, first: &Operation) -> Option<Violation> {
    let earliest = instance.earliest_timeout()?;
    let early = earliest.since(first.completed) > TICK;
    early.then(|| {
        let text = format!(
            "operation {} was told that the time was up at {:.6} s, and it cannot have been up before {:.6} \
            s",
            first.id,
            first.completed.as_secs_f64(),
            earliest.as_secs_f64()
        );
        Violation::new("early-timeout", subject, text, &[first])
    })
}

/// The list names members only, and says how many they are.
fn stranger(
    instance: &Instance<'_>,
    subject: &str,
    first: &Operation,
    missing: &Missing,
) -> Option<Violation> {
    let strangers: Vec<TaskId> =
        missing.named.iter().copied().filter(|task| !instance.members.contains(task)).collect();
    let count = missing.count as usize;
    let possible = strangers.is_empty() && missing.named.len() <= count && count < instance.members.len();
    (!possible).then(|| {
        let text = format!(
            "operation {} was told that {count} are missing, among them {}; but the members are {}, and who \
            opened it was there",
            first.id,
            names(&missing.named),
            names(&instance.members)
        );
        Violation::new("wrong-missing-list", subject, text, &[first])
    })
}

/// Whoever is not on the list had called.
fn omitted(
    instance: &Instance<'_>,
    subject: &str,
    first: &Operation,
    missing: &Missing,
) -> Option<Violation> {
    let called =
        |task: &TaskId| instance.first_call(*task).is_some_and(|call| call.invoked < first.completed);
    let absent: Vec<TaskId> = instance.members.iter().copied().filter(|task| !called(task)).collect();
    let complete = missing.named.len() == missing.count as usize;
    let unnamed: Vec<TaskId> =
        absent.iter().copied().filter(|task| complete && !missing.named.contains(task)).collect();
    if unnamed.is_empty() && absent.len() <= missing.count as usize {
        return None;
    }
    let text = format!(
        "operation {} was told that {} tasks are missing ({}), but {} had not called by then",
        first.id,
        missing.count,
        names(&missing.named),
        names(&absent)
    );
    Some(Violation::new("wrong-missing-list", subject, text, &[first]))
}

/// Nobody is on the list who had surely come.
fn arrived(
    instance: &Instance<'_>,
    subject: &str,
    stays: &dyn Fn(TaskId) -> bool,
    run: (&History, &Rules),
    (first, missing): (&Operation, &Missing),
) -> Option<Violation> {
    let surely = |task: TaskId| stays(task).then(|| proof(instance, task, run)).flatten();
    let all: Vec<(TaskId, &Operation)> =
        instance.members.iter().filter_map(|task| Some((*task, surely(*task)?))).collect();
    let named = all.iter().find(|(task, _)| missing.named.contains(task));
    let too_many = all.len() + missing.count as usize > instance.members.len();
    let (task, evidence) = named.or_else(|| all.first().filter(|_| too_many))?;
    let text = format!(
        "operation {} was told that {} tasks are missing ({}), but task {task} had surely come, as operation \
        {} shows, and so had {} of {} tasks in all",
        first.id,
        missing.count,
        names(&missing.named),
        evidence.id,
        all.len(),
        instance.members.len()
    );
    Some(Violation::new("wrong-missing-list", subject, text, &[evidence, first]))
}

/// What proves that a task had come before the instance could time out.
fn proof<'a>(
    instance: &Instance<'a>,
    task: TaskId,
    (history, rules): (&History, &Rules),
) -> Option<&'a Operation> {
    // It was seen there while the instance was still open.
    let seen = instance.looks.iter().find(|(_, seen)| seen.arrived.contains(&task));
    if let Some((look, _)) = seen {
        return Some(look);
    }
    let end = instance.earliest_timeout()?;
    let mut calls = instance.arrivals.iter().filter(|(_, caller)| *caller == task).map(|(call, _)| *call);
    calls.find(|call| {
        // A newer call took its place before the end.
        let superseded = matches!(call.reply(), Some(Reply::Superseded)) && call.completed < end;
        let settled = rules.arrival_settles.is_some_and(|length| {
            let by = call.invoked.plus(length);
            // Who is told later than it called has waited: it is one of those whom the failure is told.
            by < end
                && call.completed >= end
                && call.reply().is_some()
                && quiet(history, call.invoked, length)
        });
        superseded || settled
    })
}

/// Whether nothing was disturbed around a moment.
fn quiet(history: &History, at: Micros, length: Micros) -> bool {
    history.faults.iter().all(|fault| {
        let ended = fault.ended.unwrap_or(Micros(u64::MAX));
        fault.began > at.plus(length) || ended.plus(length) < at
    })
}

fn names(tasks: &[TaskId]) -> String {
    if tasks.is_empty() {
        return "nobody by name".to_owned();
    }
    tasks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
