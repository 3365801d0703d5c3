//! Where the tasks of a runtime wait for each other, for people.

use crate::barrier::report::{Party, Report, What};
use crate::fault::Fault;
use crate::ids::{BarrierCounter, TaskId};
use crate::job::record::Job;
use crate::job::turn::Turn;
use crate::runtime::BarrierId;
use crate::runtime::leave::leaves_alone;
use crate::runtime::record::{Barrier, Phase, Runtime};

impl Job {
    /// Every place at which tasks wait in the runtime.
    pub(crate) fn runtime_reports(&self) -> impl Iterator<Item = Report> + '_ {
        self.runtime.as_deref().into_iter().flat_map(|runtime| {
            self.connecting(runtime)
                .into_iter()
                .chain(self.enumerating(runtime))
                .chain(self.leaving(runtime))
                .chain(self.arriving(runtime))
        })
    }

    /// An open barrier that the tasks call.
    pub(super) fn runtime_report(&self, id: &BarrierId) -> Option<Report> {
        let Barrier::Open(arrived) = self.runtime.as_deref()?.barrier(id)? else { return None };
        Some(self.met_by(What::CalledInRuntime(id.clone()), arrived.iter().copied()))
    }

    /// The tasks that leave together.
    pub(super) fn leaving(&self, runtime: &Runtime) -> Option<Report> {
        let leaving = runtime.phase == Phase::Running && runtime.shutdowns > 0 && !leaves_alone(&self.spec);
        leaving.then(|| {
            let missing = Party::nameless(self.spec.tasks.saturating_sub(runtime.shutdowns));
            report(What::Shutdown, Party::nameless(runtime.shutdowns), missing)
        })
    }

    fn connecting(&self, runtime: &Runtime) -> Option<Report> {
        let present = runtime.members().iter().filter(|(_, member)| member.present);
        let waits = runtime.phase == Phase::Initializing && runtime.present() > 0;
        waits.then(|| self.met_by(What::Registration, present.map(|(task, _)| *task)))
    }

    fn enumerating(&self, runtime: &Runtime) -> Option<Report> {
        let told = runtime.members().iter().filter(|(_, member)| member.topology.is_some());
        let waits = runtime.phase == Phase::Running && (1..self.spec.tasks).contains(&runtime.enumerated());
        waits.then(|| self.met_by(What::Devices, told.map(|(task, _)| *task)))
    }

    fn arriving<'a>(&'a self, runtime: &'a Runtime) -> impl Iterator<Item = Report> + 'a {
        let ended = matches!(runtime.phase, Phase::Closed { lost: Some(_) });
        let ids = (!ended).then(|| runtime.barriers().keys());
        ids.into_iter().flatten().filter_map(|id| self.runtime_report(id))
    }

    fn met_by(&self, what: What, came: impl Iterator<Item = TaskId>) -> Report {
        let (arrived, missing) = Party::split(self.tasks.ids(), came);
        report(what, arrived, missing)
    }
}

impl Turn<'_> {
    /// Remembers who waits at a place that is about to fail.
    pub(super) fn keep_failed_in_runtime(
        &mut self,
        reports: impl IntoIterator<Item = Report>,
        fault: &Fault,
    ) {
        for report in reports {
            self.job.failed_barriers.keep(report, self.context.now_ms, fault);
        }
    }
}

/// A runtime keeps no times: whoever holds a call watches the time.
fn report(what: What, arrived: Party, missing: Party) -> Report {
    Report { what, counter: BarrierCounter(0), opened: None, timeout: None, arrived, missing, failure: None }
}
