//! What somebody who only looked saw of an open instance.

use super::instance::Instance;
use crate::check::Violation;
use crate::history::TaskId;

/// Judges the looks at an instance.
pub(super) fn check(
    instance: &Instance<'_>,
    subject: &str,
    stays: &dyn Fn(TaskId) -> bool,
    violations: &mut Vec<Violation>,
) {
    if instance.members.is_empty() {
        return;
    }
    for (look, seen) in &instance.looks {
        for task in &seen.arrived {
            let call = instance.first_call(*task);
            if call.is_none_or(|call| call.invoked >= look.completed) {
                let text = format!("operation {} saw task {task} there, which had not called", look.id);
                let mut shown = vec![*look];
                shown.extend(call);
                violations.push(Violation::new("phantom-arrival", subject, text, &shown));
            }
        }
        for (earlier, before) in &instance.looks {
            let forgotten = before.arrived.iter().find(|task| seen.missing.contains(task) && stays(**task));
            if let (true, Some(task)) = (earlier.completed < look.invoked, forgotten) {
                let text = format!(
                    "operation {} saw task {task} there, and later operation {} did not",
                    earlier.id, look.id
                );
                violations.push(Violation::new("lost-arrival", subject, text, &[earlier, look]));
                break;
            }
        }
    }
}
