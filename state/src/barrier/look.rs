//! Reads of barriers, for timers and for people.

use crate::barrier::REGISTER_BARRIER;
use crate::barrier::instance::Barrier;
use crate::barrier::report::{Gathering, Party, Report, What};
use crate::command::Scope;
use crate::fault::Fault;
use crate::ids::{BarrierCounter, BarrierName, JobId, JobName, TimeMs};
use crate::job::record::Job;
use crate::job::turn::Turn;
use crate::limits::WAITS_LOOKED_AT_MAX;
use crate::state::{OpenBarrier, State};

impl State {
    /// Every open barrier instance: what a new leader must time.
    #[must_use]
    pub fn open_barriers(&self) -> Vec<OpenBarrier> {
        let mut open = Vec::new();
        for job in self.jobs.iter() {
            for (name, barrier) in job.open_barriers() {
                open.push(OpenBarrier {
                    job: job.id,
                    barrier: name.clone(),
                    counter: barrier.current.counter,
                    timeout: barrier.current.timeout,
                });
            }
        }
        open
    }

    /// Whether that instance of a barrier is open, without a look at any other one.
    #[must_use]
    pub fn is_barrier_open(&self, job: JobId, barrier: &BarrierName, counter: BarrierCounter) -> bool {
        let job = self.jobs.get(job).filter(|job| job.barriers.open().contains(barrier));
        let known = job.and_then(|job| job.barriers.get(barrier));
        known.is_some_and(|barrier| barrier.current.counter == counter)
    }

    /// Whether somebody waits in a job at a barrier that opened before then. Of more than [`WAITS_LOOKED_AT_MAX`] open ones
    /// the first are looked at.
    #[must_use]
    pub fn waits_since(&self, job: JobId, before: TimeMs) -> bool {
        let since = self.jobs.get(job).and_then(Job::waits_since);
        since.is_some_and(|since| since < before)
    }

    /// Where the tasks of a job wait for each other, `limit` places at most, and before these the last ones
    /// at which they waited in vain, the newest first. Registration, shutdown and the exchange of devices
    /// are such places, too.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn barriers(&self, scope: Scope, limit: usize) -> Result<Vec<Report>, Fault> {
        let job = self.jobs.scoped(scope)?;
        let called = job.open_barriers().map(|(name, barrier)| job.report_of(name, barrier));
        let open = called.chain(job.runtime_reports()).take(limit);
        Ok(job.failed_barriers.iter().cloned().chain(open).collect())
    }

    /// How many jobs have tasks that wait for others since before `before`, and the name of the one that has waited longest.
    /// Of more than [`WAITS_LOOKED_AT_MAX`] open barriers of a job the first are looked at.
    #[must_use]
    pub fn jobs_waiting(&self, before: TimeMs) -> (u64, Option<&JobName>) {
        let jobs = self.jobs.iter().filter_map(|job| Some((job.waits_since()?, job.id)));
        let waiting: Vec<_> = jobs.filter(|(since, _)| *since < before).collect();
        let longest = waiting.iter().min().and_then(|(_, job)| self.job_name(*job));
        (waiting.len() as u64, longest)
    }

    /// Who has come to each open barrier of a job, all of them, at `limit` places at most: those that were opened first, and
    /// behind them those where nobody waits any more. Of more than [`WAITS_LOOKED_AT_MAX`] the first by name are looked at. It
    /// costs as much as the barriers have members.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn gatherings(&self, scope: Scope, limit: usize) -> Result<Vec<Gathering>, Fault> {
        let job = self.jobs.scoped(scope)?;
        let mut open: Vec<_> = job.open_barriers().take(WAITS_LOOKED_AT_MAX).collect();
        // They come by name.
        open.sort_by_key(|(_, barrier)| (barrier.current.arrived.is_empty(), barrier.current.opened_at));
        let called = open.into_iter().map(|(name, barrier)| job.gathering_at(name, barrier));
        let of_runtime = job.runtime_reports().map(|report| Gathering {
            arrived: report.arrived.first.clone(),
            missing: report.missing.first.clone(),
            report,
        });
        Ok(called.chain(of_runtime).take(limit).collect())
    }
}

impl Job {
    fn gathering_at(&self, name: &BarrierName, barrier: &Barrier) -> Gathering {
        let came = &barrier.current.arrived;
        let members = barrier.members.as_ref().into_iter().flat_map(|members| members.iter());
        let (arrived, missing) = members.partition(|task| came.contains_key(task));
        Gathering { report: self.report_of(name, barrier), arrived, missing }
    }

    fn open_barriers(&self) -> impl Iterator<Item = (&BarrierName, &Barrier)> {
        let open = self.barriers.open().iter();
        open.map(|name| (name, self.barriers.get(name).expect("open barriers are known")))
    }

    /// Since when somebody waits at a barrier.
    fn waits_since(&self) -> Option<TimeMs> {
        let open = self.open_barriers().take(WAITS_LOOKED_AT_MAX);
        let waiting = open.filter(|(_, barrier)| !barrier.current.arrived.is_empty());
        waiting.map(|(_, barrier)| barrier.current.opened_at).min()
    }

    fn report_of(&self, name: &BarrierName, barrier: &Barrier) -> Report {
        let instance = &barrier.current;
        let members = barrier.members.as_ref();
        let all = members.into_iter().flat_map(|members| members.iter());
        let (arrived, missing) = Party::split(all, instance.arrived.keys().copied());
        Report {
            what: self.meaning_of(name),
            counter: instance.counter,
            opened: Some(instance.opened_at),
            timeout: Some(instance.timeout),
            arrived,
            missing,
            failure: None,
        }
    }

    fn meaning_of(&self, name: &BarrierName) -> What {
        if name.as_str() == REGISTER_BARRIER {
            What::Registration
        } else if *name == self.shutdown_barrier() {
            What::Shutdown
        } else if *name == self.devices_barrier() {
            What::Devices
        } else {
            What::Called(name.clone())
        }
    }
}

impl Turn<'_> {
    /// Remembers who waits at an instance that is about to fail.
    pub(crate) fn keep_failed(&mut self, name: &BarrierName, fault: &Fault) {
        let barrier = self.job.barriers.get(name).filter(|barrier| !barrier.current.ended());
        let Some(report) = barrier.map(|barrier| self.job.report_of(name, barrier)) else { return };
        self.job.failed_barriers.keep(report, self.context.now_ms, fault);
    }
}
