//! What the coordination service's refusals say.

use tonic::{Code, Status};

use super::life::Life;
use tripod_checkers::history::{Missing, Outcome, Refusal, Reply, TaskId};

/// What a refusal says of the task itself.
///
/// A life that was outlived is refused with ABORTED; the same words in another code would be a change of the
/// protocol. The life that took its place may be told of the refused beat too, which does not fence it.
pub(super) fn refusal(status: &Status, life: &Life) -> Option<Refusal> {
    let (text, task) = (status.message(), life.task);
    let outlived = text.contains("Incarnation ID mismatch: expecting ")
        && text.contains(&format!(" but got {}.", life.incarnation));
    if status.code() == Code::Aborted && (outlived || text.contains("with a different incarnation")) {
        return Some(Refusal::Fenced);
    }
    text.contains(&format!("Task {task} heartbeat timeout")).then_some(Refusal::Dead)
}

/// What a barrier's refusal says: the instance failed, the call was replaced, or it was no good.
///
/// A call for another instance than the one that is open is no good, and makes that one fail for those who wait.
pub(super) fn barrier_refused(status: &Status, generation: i64) -> Outcome {
    let text = status.message();
    let reason = format!("{:?}: {text}", status.code());
    if text.contains("more recent barrier call") {
        return Outcome::Ok(Reply::Superseded);
    }
    let failed = |missing| Outcome::Ok(Reply::BarrierFailed { reason: reason.clone(), missing });
    match status.code() {
        Code::DeadlineExceeded => failed(missing(text)),
        Code::Internal if text.starts_with("Barrier failed because") => failed(None),
        Code::Internal if text.contains("is invoked by the task, but the service thinks") => {
            if text.contains(&format!("::{generation})")) { Outcome::Fail(reason) } else { failed(None) }
        }
        _ => Outcome::Fail(reason),
    }
}

/// Reads who is missing out of upstream's text.
fn missing(text: &str) -> Option<Missing> {
    let (_, counts) = text.split_once("# of tasks that reached the barrier: ")?;
    let (arrived, rest) = counts.split_once('/')?;
    let (total, _) = rest.split_once('.')?;
    let count = total.parse::<u32>().ok()?.checked_sub(arrived.parse().ok()?)?;
    let (_, names) = rest.split_once("Some timed out task names:\n")?;
    let named = names.lines().filter_map(|line| line.trim().parse().ok().map(TaskId)).collect();
    Some(Missing { count, named })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::dialect::Dialect;
    use tripod_checkers::history::{Incarnation, Job};

    #[test]
    fn the_missing_are_read_from_the_text() {
        let text = "Barrier timed out. Id: step::4. This usually happens because ...\n# of tasks that reached the \
                    barrier: 1/3.\nThe first task at the barrier: 0. Some timed out task names:\n1\n2\n";
        assert_eq!(missing(text), Some(Missing { count: 2, named: vec![TaskId(1), TaskId(2)] }));
        assert_eq!(missing("Barrier timed out"), None);
    }

    #[test]
    fn a_call_for_another_instance_fails_the_open_one() {
        let text = "Barrier (step::3) is invoked by the task, but the service thinks it is the 4-th instance. One task";
        let status = Status::internal(text);
        assert!(matches!(barrier_refused(&status, 3), Outcome::Fail(_)));
        assert!(matches!(
            barrier_refused(&status, 4),
            Outcome::Ok(Reply::BarrierFailed { missing: None, .. })
        ));
    }

    #[test]
    fn only_a_tasks_own_death_is_its_death() {
        let told = Status::aborted(
            "Unexpected heartbeat request from an already-in-error task: 1 with existing error: UNAVAILABLE: \
             Task 2 heartbeat timeout.",
        );
        assert_eq!(refusal(&told, &life(1, 7)), None);
        assert_eq!(refusal(&told, &life(2, 7)), Some(Refusal::Dead));
    }

    #[test]
    fn only_the_life_that_was_outlived_is_fenced() {
        let text = "Unexpected heartbeat request from an already-in-error task: 1 with existing error: ABORTED: 1 \
                    Heartbeat: Incarnation ID mismatch: expecting 8 but got 7. The task has restarted";
        assert_eq!(refusal(&Status::aborted(text), &life(1, 7)), Some(Refusal::Fenced));
        assert_eq!(refusal(&Status::aborted(text), &life(1, 8)), None);
        assert_eq!(refusal(&Status::internal(text), &life(1, 7)), None);
    }

    fn life(task: i32, incarnation: u64) -> Life {
        let (task, incarnation) = (TaskId(task), Incarnation(incarnation));
        Life { dialect: Dialect::T, job: Job::from("gang"), task, incarnation, service: 1 }
    }
}
