//! One instance of a barrier: who came, who was told what, and whether anybody was let through too early.

use crate::check::Violation;
use crate::history::{BarrierSeen, Call, Micros, Missing, Operation, Reply, TaskId};

/// Everything about one instance.
pub(super) struct Instance<'a> {
    /// None as long as only looks are known.
    pub(super) members: Vec<TaskId>,
    /// Calls that arrived or may have arrived.
    pub(super) arrivals: Vec<(&'a Operation, TaskId)>,
    /// Looks at it while it was open.
    pub(super) looks: Vec<(&'a Operation, &'a BarrierSeen)>,
    /// The shortest time-out of all calls.
    pub(super) timeout: Micros,
}

impl Default for Instance<'_> {
    fn default() -> Self {
        let (members, arrivals, looks) = (Vec::new(), Vec::new(), Vec::new());
        Self { members, arrivals, looks, timeout: Micros(u64::MAX) }
    }
}

impl<'a> Instance<'a> {
    pub(super) fn arrive(&mut self, operation: &'a Operation, timeout_ms: u64) {
        let Call::Arrive { task, .. } = &operation.call else { return };
        if operation.outcome.may_have_effect() {
            self.arrivals.push((operation, *task));
            self.timeout = self.timeout.min(Micros::from_millis(timeout_ms));
        }
    }

    /// The first call of a task, if it called at all.
    pub(super) fn first_call(&self, task: TaskId) -> Option<&'a Operation> {
        let calls = self.arrivals.iter().filter(|(_, caller)| *caller == task);
        calls.map(|(operation, _)| *operation).min_by_key(|operation| operation.invoked)
    }

    /// Those who were let through.
    pub(super) fn passed(&self) -> impl Iterator<Item = &'a Operation> {
        let arrivals = self.arrivals.iter().map(|(operation, _)| *operation);
        arrivals.filter(|operation| matches!(operation.reply(), Some(Reply::Passed)))
    }

    /// Those who were told that it failed, with the list of the missing if there was one.
    pub(super) fn failed(&self) -> impl Iterator<Item = (&'a Operation, Option<&'a Missing>)> {
        self.arrivals.iter().filter_map(|(operation, _)| match operation.reply() {
            Some(Reply::BarrierFailed { missing, .. }) => Some((*operation, missing.as_ref())),
            _ => None,
        })
    }

    /// It cannot have timed out before: nobody came earlier, and no time-out is shorter.
    pub(super) fn earliest_timeout(&self) -> Option<Micros> {
        let first = self.arrivals.iter().map(|(operation, _)| operation.invoked).min()?;
        Some(first.plus(self.timeout))
    }

    /// Nobody is let through before all have come, and not some are let through while others are failed.
    pub(super) fn release(&self, subject: &str, violations: &mut Vec<Violation>) {
        for passed in self.passed() {
            let absent: Vec<TaskId> = self
                .members
                .iter()
                .copied()
                .filter(|member| self.first_call(*member).is_none_or(|call| call.invoked >= passed.completed))
                .collect();
            let Some(first) = absent.first() else { continue };
            let text = format!(
                "operation {} passed though {} of {} tasks had not even called, task {first} among them",
                passed.id,
                absent.len(),
                self.members.len()
            );
            let mut shown = vec![passed];
            shown.extend(self.first_call(*first));
            violations.push(Violation::new("early-release", subject, text, &shown));
        }
        if let (Some(passed), Some((failed, _))) = (self.passed().next(), self.failed().next()) {
            let text = format!(
                "operation {} passed and operation {} was told that the same instance failed",
                passed.id, failed.id
            );
            violations.push(Violation::new("split-verdict", subject, text, &[passed, failed]));
        }
    }
}
