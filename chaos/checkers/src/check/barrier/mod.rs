//! Nobody passes a barrier before all have come; all pass or all fail; and who is said to be missing is
//! missing.
//!
//! One name and one generation is one instance, and instances have nothing to do with each other.

mod instance;
mod missing;
mod seen;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::{Checked, Rules};
use crate::history::{Barrier, Call, Generation, History, Incarnation, Job, Operation, Reply, TaskId};

use instance::Instance;

const CHECKER: &str = "barrier";

/// What instances are told apart by.
type Id<'a> = (&'a Job, &'a Barrier, Generation);

/// Judges each instance apart from the others.
#[must_use]
pub fn check(history: &History, rules: &Rules) -> Checked {
    let mut instances: BTreeMap<Id<'_>, Instance<'_>> = BTreeMap::new();
    let mut examined = 0;
    for operation in &history.operations {
        match &operation.call {
            Call::Arrive { job, barrier, generation, members, timeout_ms, task: _ } => {
                examined += 1;
                let id = (job, barrier, *generation);
                let instance = instances.entry(id).or_default();
                if instance.members.is_empty() {
                    instance.members.clone_from(members);
                }
                if instance.members != *members {
                    let reason = format!(
                        "operation {} names other members of barrier {barrier} #{generation} than earlier \
                        ones",
                        operation.id
                    );
                    return Checked::void(CHECKER, examined, reason);
                }
                instance.arrive(operation, *timeout_ms);
            }
            Call::ReadBarrier { job, barrier } => {
                examined += 1;
                if let Some(Reply::BarrierSeen(Some(seen))) = operation.reply() {
                    let instance = instances.entry((job, barrier, seen.generation)).or_default();
                    instance.looks.push((operation, seen));
                }
            }
            _ => {}
        }
    }
    let restless = restless(history);
    let mut violations = Vec::new();
    for ((job, barrier, generation), instance) in &instances {
        let subject = format!("{barrier} #{generation} of {job}");
        let stays = |task: TaskId| !restless.contains(&(*job, task));
        instance.release(&subject, &mut violations);
        missing::check(instance, &subject, &stays, (history, rules), &mut violations);
        seen::check(instance, &subject, &stays, &mut violations);
    }
    Checked::told(CHECKER, examined, violations)
}

/// Tasks that left or began another life: what they did at a barrier before may have been taken back.
fn restless(history: &History) -> BTreeSet<(&Job, TaskId)> {
    let mut lives: BTreeMap<(&Job, TaskId), Incarnation> = BTreeMap::new();
    let mut restless = BTreeSet::new();
    for Operation { call, .. } in &history.operations {
        let (task, gone) = match call {
            Call::Register { job, task, incarnation } => {
                let before = lives.insert((job, *task), *incarnation);
                ((job, *task), before.is_some_and(|before| before != *incarnation))
            }
            Call::Leave { job, task, .. } => ((job, *task), true),
            _ => continue,
        };
        if gone {
            restless.insert(task);
        }
    }
    restless
}
