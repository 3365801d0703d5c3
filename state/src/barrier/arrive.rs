//! A task's arrival at a barrier. The order of the checks is upstream's.

use std::sync::Arc;

use crate::barrier::REGISTER_BARRIER;
use crate::barrier::instance::{Barrier, Instance, Verdict, Void};
use crate::barrier::members::Members;
use crate::command::Effect;
use crate::fault::BarrierFault;
use crate::ids::{BarrierCounter, BarrierName, DurationMs, TaskId};
use crate::job::turn::Turn;
use crate::planted::{Bug, is_planted};

/// A call that wants to pass a barrier.
pub(crate) struct Arrival<'a> {
    pub(crate) name: BarrierName,
    pub(crate) counter: BarrierCounter,
    pub(crate) timeout: DurationMs,
    /// Empty: every task of the job.
    pub(crate) tasks: &'a [TaskId],
    pub(crate) task: TaskId,
}

/// What an arrival comes to.
pub(crate) enum Arrived {
    Waiting(BarrierCounter),
    Over(BarrierCounter, Verdict),
}

impl Turn<'_> {
    /// Lets a task arrive, which may open, end or fail the instance.
    pub(crate) fn arrive(&mut self, mut arrival: Arrival<'_>) -> Arrived {
        let rejoins = arrival.counter.0 == 0 && self.job.recoverable(arrival.task);
        let opens = match self.job.barriers.get(&arrival.name).map(|barrier| &barrier.current) {
            None => arrival.counter.0 == 0,
            Some(current) if current.ended() => {
                let next = BarrierCounter(current.counter.0.saturating_add(1));
                // A recoverable task that restarted does not know how often the others came here.
                let restarted = rejoins && !self.once_only(&arrival.name);
                if restarted {
                    arrival.counter = next;
                }
                restarted || arrival.counter == next
            }
            Some(_) => false,
        };
        if opens {
            if let Err(fault) = self.open(&arrival) {
                return self.fail(&arrival.name, fault);
            }
        } else {
            self.begin_call(&arrival);
        }
        let barrier = self.job.barriers.get(&arrival.name).expect("opened, found or created above");
        let counter = barrier.current.counter;
        if arrival.counter != counter && !rejoins {
            return self.fail(&arrival.name, BarrierFault::CounterMismatch { called: arrival.counter });
        }
        if let Err(fault) = check_members(barrier.members.as_ref(), &arrival, self.job.spec.tasks) {
            return self.fail(&arrival.name, fault);
        }
        match &barrier.current.end {
            Some(end) => {
                let stored = end.stored.clone();
                Arrived::Over(counter, self.repeat(&arrival, stored))
            }
            None => self.reach(&arrival),
        }
    }

    /// Opens the next instance. The membership of an id is decided only once.
    fn open(&mut self, arrival: &Arrival<'_>) -> Result<(), BarrierFault> {
        let instance =
            Instance::new(arrival.counter, self.call(), self.context.now_ms, arrival.task, arrival.timeout);
        let (known, previous) = match self.job.barriers.get(&arrival.name) {
            Some(barrier) => (barrier.members.clone(), Some(Arc::new(barrier.current.clone()))),
            None => (None, None),
        };
        let members = known.map_or_else(|| self.members(arrival.tasks), Ok);
        let barrier = Barrier { members: members.as_ref().ok().cloned(), current: instance, previous };
        self.job.barriers.set(arrival.name.clone(), barrier);
        let members = members?;
        if let Some(task) = self.member_in_error(&members) {
            let existing = self.job.tasks.get(task).error().expect("found in error").cited();
            return Err(BarrierFault::MemberInError { task, existing });
        }
        self.tell_opened(&arrival.name, arrival.counter, arrival.task, arrival.timeout);
        self.effect(Effect::BarrierOpened {
            job: self.job.id,
            barrier: arrival.name.clone(),
            counter: arrival.counter,
            timeout: arrival.timeout,
        });
        Ok(())
    }

    fn members(&self, tasks: &[TaskId]) -> Result<Members, BarrierFault> {
        match tasks.iter().find(|task| !self.job.tasks.contains(**task)) {
            Some(task) => Err(BarrierFault::UnknownMember { task: *task }),
            None if tasks.is_empty() => Ok(Members::Everyone(self.job.spec.tasks)),
            None => Ok(Members::of(tasks)),
        }
    }

    /// The lowest member that is in error and not expected to recover.
    fn member_in_error(&self, members: &Members) -> Option<TaskId> {
        let in_error = self.job.tasks.in_error();
        let stays = |task: &TaskId| !self.job.recoverable(*task);
        match members {
            Members::Everyone(_) => in_error.iter().copied().find(stays),
            Members::Listed(list) => list.iter().copied().find(|task| in_error.contains(task) && stays(task)),
        }
    }

    /// A call on an id that it does not open: a waiting call of the same task ends. An unknown id
    /// comes into being, so that its failure is remembered.
    fn begin_call(&mut self, arrival: &Arrival<'_>) {
        let barrier = self.job.barriers.edit(&arrival.name);
        let replaced = barrier.map(|mut barrier| barrier.current.void(arrival.task, Void::Replaced));
        match replaced {
            Some(true) => self.barrier_changed(&arrival.name),
            Some(false) => {}
            None => self.unopened(&arrival.name, arrival.task),
        }
    }

    /// An id without members, to be ended at once by the caller.
    pub(crate) fn unopened(&mut self, name: &BarrierName, first: TaskId) {
        let current =
            Instance::new(BarrierCounter(0), self.call(), self.context.now_ms, first, DurationMs(0));
        self.job.barriers.set(name.clone(), Barrier { members: None, current, previous: None });
    }

    fn fail(&mut self, name: &BarrierName, fault: BarrierFault) -> Arrived {
        let (counter, verdict) = self.end_instance(name, Err(fault));
        Arrived::Over(counter, verdict)
    }

    /// A call for an instance that has ended. At the shutdown barrier the caller leaves alone, for
    /// it registered again, or the barrier failed without it.
    fn repeat(&mut self, arrival: &Arrival<'_>, stored: Verdict) -> Verdict {
        if arrival.name == self.job.shutdown_barrier() {
            self.disconnect(arrival.task).map_err(Arc::new)?;
        }
        stored
    }

    fn reach(&mut self, arrival: &Arrival<'_>) -> Arrived {
        let call = self.call();
        let mut barrier = self.job.barriers.edit(&arrival.name).expect("checked by the caller");
        // Not at the barrier of the registration: without that there would be nobody to arrive anywhere. Always
        // those of the same tasks: one that is forgotten by chance calls again after a while, and is let in then.
        let planted = is_planted(Bug::DroppedArrival) && arrival.name.as_str() != REGISTER_BARRIER;
        if planted && arrival.task.0 % 3 == 2 {
            return Arrived::Waiting(barrier.current.counter);
        }
        barrier.current.arrived.insert(arrival.task, call);
        let complete = barrier.members.as_ref().is_some_and(|all| all.len() == barrier.current.arrived.len());
        let counter = barrier.current.counter;
        drop(barrier);
        if complete {
            self.tell_passed(&arrival.name, arrival.task);
            let (counter, verdict) = self.end_instance(&arrival.name, Ok(()));
            Arrived::Over(counter, verdict)
        } else {
            Arrived::Waiting(counter)
        }
    }

    /// Whether a barrier has one instance in the life of a job, whoever restarts.
    fn once_only(&self, name: &BarrierName) -> bool {
        name.as_str() == REGISTER_BARRIER
            || *name == self.job.shutdown_barrier()
            || *name == self.job.devices_barrier()
    }
}

/// Whether the caller names the instance's members and is one of them.
fn check_members(members: Option<&Members>, arrival: &Arrival<'_>, tasks: u32) -> Result<(), BarrierFault> {
    let size = members.map_or(0, Members::len);
    let contains = |task: TaskId| members.is_some_and(|members| members.contains(task));
    if arrival.tasks.is_empty() {
        if size != tasks as usize {
            return Err(BarrierFault::ListMissing);
        }
    } else if size != arrival.tasks.len() || !arrival.tasks.iter().all(|task| contains(*task)) {
        return Err(BarrierFault::ConflictingTasks);
    }
    // Upstream counts a stranger without a list as an arrival; here nobody stands in for a member.
    if contains(arrival.task) { Ok(()) } else { Err(BarrierFault::NotAMember { task: arrival.task }) }
}
