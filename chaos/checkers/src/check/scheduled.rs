//! Each task that a scheduler accepted has a result: the right value, or a reason why there is none.

use std::collections::BTreeMap;

use super::{Checked, Rules, Violation};
use crate::history::{Call, History, NotMade, Operation, Reply, SchedulerSeen, Value, Work};

const CHECKER: &str = "scheduled";
/// Kinds of faults by which workers and stores end. Without them no task is lost or begun again.
const DEADLY: [&str; 2] = ["kill-worker", "kill-store"];

/// What became of one task.
#[derive(Default)]
struct Fate<'a> {
    submitted: Option<(&'a Operation, Option<Value>)>,
    reads: Vec<&'a Operation>,
}

/// Compares results with what was submitted, and looks at what is left in the end.
#[must_use]
pub fn check(history: &History, _rules: &Rules) -> Checked {
    let mut fates: BTreeMap<Work, Fate<'_>> = BTreeMap::new();
    let mut ends = Vec::new();
    for operation in &history.operations {
        match &operation.call {
            Call::Submit { work, makes } if operation.acknowledged() => {
                fates.entry(*work).or_default().submitted = Some((operation, *makes));
            }
            Call::ReadResult { work } => fates.entry(*work).or_default().reads.push(operation),
            Call::ReadScheduler => ends.push(operation),
            _ => {}
        }
    }
    let healthy = !history.faults.iter().any(|fault| DEADLY.contains(&fault.kind.as_str()));
    let examined = fates.len() + ends.len();
    let mut violations: Vec<Violation> =
        fates.iter().filter_map(|(work, fate)| judge(*work, fate, healthy)).collect();
    violations.extend(ends.iter().filter_map(|end| judge_end(end, healthy)));
    Checked::told(CHECKER, examined, violations)
}

fn judge(work: Work, fate: &Fate<'_>, healthy: bool) -> Option<Violation> {
    let (submitted, makes) = fate.submitted?;
    let told = |rule: &str, text: String, read: &Operation| {
        Some(Violation::new(rule, format!("task {work}"), text, &[submitted, read]))
    };
    for read in &fate.reads {
        match (makes, read.reply()) {
            (Some(made), Some(Reply::Value(Some(found)))) if found.value == made => {}
            (None, Some(Reply::NotMade { reason: NotMade::Failed, .. })) | (_, None) => {}
            (_, Some(Reply::NotMade { reason: NotMade::Lost, .. })) if !healthy => {}
            (_, Some(Reply::NotMade { reason: NotMade::Lost, text })) => {
                let text = format!("it was given up ({text}), and no worker and no store had died");
                return told("lost-task", text, read);
            }
            (_, Some(reply)) => return told("wrong-result", format!("it came to: {reply}"), read),
        }
    }
    if fate.reads.iter().any(|read| read.reply().is_some()) {
        return None;
    }
    let text = "it was accepted, and nobody was ever told what came of it".to_owned();
    let mut shown = vec![submitted];
    shown.extend(fate.reads.last());
    Some(Violation::new("no-result", format!("task {work}"), text, &shown))
}

fn judge_end(end: &Operation, healthy: bool) -> Option<Violation> {
    let told = |rule: &str, text: String| Some(Violation::new(rule, "the scheduler", text, &[end]));
    match end.reply() {
        Some(Reply::Scheduler(SchedulerSeen { objects: 0, open: 0, again })) => {
            let text = || format!("{again} tasks were begun again, and every worker was healthy");
            if healthy && *again > 0 { told("begun-again", text()) } else { None }
        }
        Some(reply) => told("left-over", format!("everything was read and dropped, and there are: {reply}")),
        None => told("left-over", "nobody says what is left".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{ClientId, Found, Header, Micros, Outcome, Recorder};

    /// Three tasks, one of which fails on purpose, and a look at the end.
    fn run() -> Vec<(Call, Outcome)> {
        let submit = |work: u64, makes: Option<u64>| {
            (Call::Submit { work: Work(work), makes: makes.map(Value) }, Outcome::Ok(Reply::Done))
        };
        let failed = Reply::NotMade { reason: NotMade::Failed, text: "on purpose".into() };
        vec![
            submit(1, Some(10)),
            submit(2, Some(20)),
            submit(3, None),
            read(1, value(10)),
            read(2, value(20)),
            read(3, failed),
            (Call::ReadScheduler, Outcome::Ok(Reply::Scheduler(SchedulerSeen::default()))),
        ]
    }

    fn value(value: u64) -> Reply {
        Reply::Value(Some(Found { value: Value(value), version: None, index: None }))
    }

    fn read(work: u64, reply: Reply) -> (Call, Outcome) {
        (Call::ReadResult { work: Work(work) }, Outcome::Ok(reply))
    }

    fn rules_broken(run: Vec<(Call, Outcome)>, fault: Option<&str>) -> Vec<String> {
        let recorder = Recorder::new(Header::default());
        if let Some(kind) = fault {
            recorder.fault(Micros(0), kind, "somebody").heal(Micros(1));
        }
        for (place, (call, outcome)) in (1..).zip(run) {
            recorder.invoke(Micros(place * 10), ClientId(1), call).complete(Micros(place * 10 + 1), outcome);
        }
        let checked = check(&recorder.history(Micros(1000)), &Rules::default());
        checked.violations().iter().map(|violation| violation.rule.clone()).collect()
    }

    #[test]
    fn a_run_that_kept_every_promise_holds() {
        assert_eq!(rules_broken(run(), None), [""; 0]);
    }

    #[test]
    fn a_result_that_is_dropped_is_missed() {
        let mut dropped = run();
        dropped.remove(4);
        assert_eq!(rules_broken(dropped, None), ["no-result"]);
        let mut late = run();
        late[4].1 = Outcome::Unknown("it did not come".into());
        assert_eq!(rules_broken(late, None), ["no-result"]);
    }

    #[test]
    fn another_value_and_a_failure_that_was_not_to_be_are_wrong() {
        let mut other = run();
        other[3].1 = Outcome::Ok(value(11));
        assert_eq!(rules_broken(other, Some("kill-worker")), ["wrong-result"]);
        let mut made = run();
        made[5].1 = Outcome::Ok(value(30));
        assert_eq!(rules_broken(made, None), ["wrong-result"]);
    }

    #[test]
    fn a_loss_and_a_second_attempt_need_somebody_who_died() {
        let mut lost = run();
        lost[4].1 = Outcome::Ok(Reply::NotMade { reason: NotMade::Lost, text: "RETRIES_EXHAUSTED".into() });
        let again = SchedulerSeen { again: 1, ..SchedulerSeen::default() };
        lost[6].1 = Outcome::Ok(Reply::Scheduler(again));
        assert_eq!(rules_broken(lost.clone(), None), ["lost-task", "begun-again"]);
        assert_eq!(rules_broken(lost.clone(), Some("kill-leader")), ["lost-task", "begun-again"]);
        assert_eq!(rules_broken(lost, Some("kill-store")), [""; 0]);
    }

    #[test]
    fn what_is_left_is_told() {
        let mut left = run();
        left[6].1 = Outcome::Ok(Reply::Scheduler(SchedulerSeen { objects: 2, ..SchedulerSeen::default() }));
        assert_eq!(rules_broken(left, Some("kill-store")), ["left-over"]);
    }
}
