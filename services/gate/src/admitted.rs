//! A call that was let through, and is to pass something more that its head did not say.

use std::sync::Arc;

use http::Extensions;
use tripod_identity::JobName;

use crate::caller::Scope;
use crate::{Call, Caller, Check, Checks, Decision, Gate, Reason, Role, Rpc, Subject, decide};

/// What is left to be checked of a call, by whom and before which gate. Whoever reads its message finds it among the extensions of
/// its request, and asks it before anything is done; without one there is nothing to check.
#[derive(Debug, Clone)]
pub struct Admitted {
    gate: Arc<Gate>,
    caller: Arc<Caller>,
    rpc: Rpc,
    checks: Checks,
}

impl Admitted {
    pub(crate) fn new(gate: Arc<Gate>, caller: Arc<Caller>, rpc: Rpc, checks: Checks) -> Self {
        Self { gate, caller, rpc, checks }
    }

    /// That of a call, if something is left to be checked.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get()
    }

    /// What is left to be checked.
    #[must_use]
    pub fn checks(&self) -> Checks {
        self.checks
    }

    /// The call's message is about the job of this name.
    ///
    /// # Errors
    /// It is not the caller's, whether there is such a job or not.
    pub fn about_job(&self, name: &str) -> Result<(), Reason> {
        let is_own = !self.checks.has(Check::OwnJob) || self.owns(name);
        self.said(if is_own { Ok(()) } else { Err(Reason::OtherJob) })
    }

    /// Whether a job of this name is to be listed, or told of, to the caller.
    #[must_use]
    pub fn shows_job(&self, name: &str) -> bool {
        let is_confined = self.checks.has(Check::OwnJobsListed) || self.checks.has(Check::OwnJob);
        !is_confined || !self.gate.enforces() || self.owns(name)
    }

    /// Whether the answer may speak of a job of this name, though the call is about no job.
    #[must_use]
    pub fn may_hear_of(&self, name: &str) -> bool {
        !self.gate.enforces() || self.owns(name)
    }

    /// The call's message speaks of this task, as clients send it.
    ///
    /// # Errors
    /// The caller proved to be another one.
    pub fn speaks_of_task(&self, task: i32) -> Result<(), Reason> {
        let own = self.caller.task().filter(|_| self.checks.has(Check::OwnTask));
        let is_other = own.is_some_and(|own| own.get() != task);
        self.said(if is_other { Err(Reason::OtherTask) } else { Ok(()) })
    }

    /// The call asks for a digest of the whole state.
    ///
    /// # Errors
    /// The caller may have none made.
    pub fn asks_for_digest(&self) -> Result<(), Reason> {
        self.said(if self.checks.has(Check::NoDigest) { Err(Reason::Role) } else { Ok(()) })
    }

    /// The call registers a driver, or else a worker.
    ///
    /// # Errors
    /// The caller is the other of the two.
    pub fn registers(&self, is_driver: bool) -> Result<(), Reason> {
        let wanted = if is_driver { Role::Driver } else { Role::Worker };
        let is_other = self.checks.has(Check::AsRegistered) && self.caller.role() != Some(wanted);
        self.said(if is_other { Err(Reason::Role) } else { Ok(()) })
    }

    /// A part of the call stands for an RPC about the same job.
    ///
    /// # Errors
    /// The caller may not call that.
    pub fn has_part(&self, rpc: Rpc) -> Result<(), Reason> {
        if !self.checks.has(Check::EachPart) {
            return Ok(());
        }
        let call = Call { rpc, at: self.gate.at(), job: None, subject: Subject::Unread };
        match decide(&self.caller, &call) {
            Decision::Refused(reason) => {
                self.gate.refused(&self.caller, Some(rpc), reason);
                if self.gate.enforces() { Err(reason) } else { Ok(()) }
            }
            Decision::Allowed | Decision::InApply(_) => Ok(()),
        }
    }

    fn owns(&self, name: &str) -> bool {
        let name = name.parse::<JobName>();
        match (self.caller.scope(), &name) {
            (Scope::Everywhere, _) => true,
            (Scope::Job(own), Ok(name)) => own == name,
            (Scope::Jobs(own), Ok(name)) => own.contains(name),
            // It is nobody's.
            (Scope::Job(_) | Scope::Jobs(_), Err(_)) => false,
        }
    }

    /// Counts a refusal, which is none while that is only rehearsed.
    fn said(&self, outcome: Result<(), Reason>) -> Result<(), Reason> {
        let Err(reason) = outcome else { return Ok(()) };
        self.gate.refused(&self.caller, Some(self.rpc), reason);
        if self.gate.enforces() { Err(reason) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use tripod_identity::Identity;

    use super::*;
    use crate::{Mode, Port, Ray, RayScheduler, Tally};

    fn admitted(mode: Mode, path: &str, checks: &[Check]) -> Admitted {
        let gate = Arc::new(Gate::new(Port::Client, mode, Arc::new(Tally::default())));
        let identity: Identity = format!("spiffe://example.org/tripod/main/{path}").parse().unwrap();
        let checks = checks.iter().fold(Checks::NONE, |checks, check| checks.and(*check));
        Admitted::new(gate, Arc::new(Caller::by_path(identity)), Rpc::Ray(Ray::Batch), checks)
    }

    #[test]
    fn a_message_about_another_job_is_refused_also_if_no_job_can_be_called_so() {
        let task = admitted(Mode::Enforce, "job/own/task", &[Check::OwnJob]);
        assert_eq!(task.about_job("own"), Ok(()));
        for other in ["other", "", "Own", "own/..", "own "] {
            assert_eq!(task.about_job(other), Err(Reason::OtherJob), "{other:?}");
            assert!(!task.shows_job(other));
        }
        assert_eq!(admitted(Mode::Enforce, "job/own/task", &[]).about_job("other"), Ok(()), "it is checked");
        let rehearsed = admitted(Mode::Rehearse, "job/own/task", &[Check::OwnJob]);
        assert_eq!(rehearsed.about_job("other"), Ok(()));
        assert!(rehearsed.shows_job("other"));
    }

    #[test]
    fn whoever_is_of_a_job_hears_of_no_other_one_and_everybody_else_of_all() {
        for (path, hears) in [("job/own/agent", false), ("viewer/victor", true), ("operator/ann", true)] {
            let caller = admitted(Mode::Enforce, path, &[Check::NoDigest]);
            assert_eq!((caller.may_hear_of("own"), caller.may_hear_of("other")), (true, hears), "{path}");
            assert!(admitted(Mode::Rehearse, path, &[Check::NoDigest]).may_hear_of("other"), "{path}");
        }
    }

    #[test]
    fn a_task_that_has_a_number_speaks_of_that_one() {
        let third = admitted(Mode::Enforce, "job/own/task/3", &[Check::OwnTask]);
        for other in [4, 0, -3, i32::MAX, i32::MIN] {
            assert_eq!(third.speaks_of_task(other), Err(Reason::OtherTask), "{other}");
        }
        assert_eq!(third.speaks_of_task(3), Ok(()));
        let any = admitted(Mode::Enforce, "job/own/task", &[Check::OwnTask]);
        assert_eq!((any.speaks_of_task(4), any.speaks_of_task(-1)), (Ok(()), Ok(())));
    }

    #[test]
    fn a_part_is_judged_by_its_own_row_and_a_driver_registers_no_worker() {
        let checks = [Check::EachPart, Check::AsRegistered];
        let driver = admitted(Mode::Enforce, "job/own/driver", &checks);
        let worker = admitted(Mode::Enforce, "job/own/worker", &checks);
        let ready = Rpc::RayScheduler(RayScheduler::ReadyForNewTask);
        assert_eq!((driver.has_part(ready), worker.has_part(ready)), (Err(Reason::Role), Ok(())));
        assert_eq!((driver.registers(true), worker.registers(true)), (Ok(()), Err(Reason::Role)));
        assert_eq!((driver.registers(false), worker.registers(false)), (Err(Reason::Role), Ok(())));
        let rehearsed = admitted(Mode::Rehearse, "job/own/driver", &checks);
        assert_eq!((rehearsed.has_part(ready), rehearsed.registers(false)), (Ok(()), Ok(())));
    }
}
