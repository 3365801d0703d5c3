//! How a command that works on a job says that something happened.

use std::sync::Arc;

use crate::barrier::instance::Instance;
use crate::events::{What, what};
use crate::fault::Fault;
use crate::ids::{BarrierCounter, BarrierName, DurationMs, Incarnation, TaskId};
use crate::job::turn::Turn;
use crate::level::Rule;
use crate::ray::Incident;
use crate::task::End;

impl Turn<'_> {
    fn tells(&self) -> bool {
        Rule::Events.holds_at(self.level)
    }

    fn happened(&mut self, what: What, task: Option<TaskId>) {
        if self.tells() {
            let now = (self.context.index, self.context.now_ms);
            let ring = &mut self.job.domains.events;
            if !ring.join(now, &what, task) {
                ring.add(now, what, task);
            }
        }
    }

    /// The same of a kind of which all within a second are one event: `words` makes the words only if they are needed, for
    /// one error can end all tasks of a large job.
    fn happened_in_words(
        &mut self,
        kind: impl Fn(Arc<str>) -> What,
        task: Option<TaskId>,
        words: impl Fn() -> String,
    ) {
        if self.tells() {
            let now = (self.context.index, self.context.now_ms);
            let ring = &mut self.job.domains.events;
            if !ring.join(now, &kind(Arc::default()), task) {
                ring.add(now, kind(what::text(&words())), task);
            }
        }
    }

    /// A registration is taken; `before`: the life that the task had until now.
    pub(crate) fn tell_registered(&mut self, task: TaskId, before: Incarnation, incarnation: Incarnation) {
        self.tell_life(task, before, incarnation);
        self.happened(What::Registered, Some(task));
    }

    pub(crate) fn tell_life(&mut self, task: TaskId, before: Incarnation, incarnation: Incarnation) {
        if before != Incarnation(0) && before != incarnation {
            self.happened(What::NewLife, Some(task));
        }
    }

    pub(crate) fn tell_connected(&mut self, task: TaskId) {
        self.happened(What::Connected, Some(task));
    }

    pub(crate) fn tell_left(&mut self, task: TaskId) {
        self.happened(What::Left, Some(task));
    }

    pub(crate) fn tell_ended(&mut self, task: TaskId, end: &End) {
        let words = || match end.last_line() {
            line if line.is_empty() => end.how.to_string(),
            line => format!("{}; its last line: {line}", end.how),
        };
        self.happened_in_words(|how| What::Ended { how }, Some(task), words);
    }

    /// A task is in error from now on.
    pub(crate) fn tell_error(&mut self, task: TaskId, fault: &Fault) {
        let words = || fault.text();
        match fault {
            Fault::HeartbeatTimeout { .. } => self.happened(What::GivenUp, Some(task)),
            fault if fault.comes_of_others() => {
                self.happened_in_words(|text| What::EndedByOthers { text }, Some(task), words);
            }
            _ => self.happened_in_words(|text| What::Failed { text }, Some(task), words),
        }
    }

    pub(crate) fn tell_latched(&mut self, fault: &Fault) {
        self.happened_in_words(|text| What::ErrorLatched { text }, None, || fault.text());
    }

    pub(crate) fn tell_opened(
        &mut self,
        barrier: &BarrierName,
        counter: BarrierCounter,
        first: TaskId,
        timeout: DurationMs,
    ) {
        let barrier = what::shared(&barrier.0);
        self.happened(What::BarrierOpened { barrier, counter, first, timeout }, None);
    }

    /// To be called before the instance ends.
    pub(crate) fn tell_passed(&mut self, name: &BarrierName, last: TaskId) {
        let Some(barrier) = self.job.barriers.get(name) else { return };
        let Instance { counter, opened_at, arrived, .. } = &barrier.current;
        let after = DurationMs(self.context.now_ms.0.saturating_sub(opened_at.0));
        let (counter, tasks) = (*counter, u32::try_from(arrived.len()).unwrap_or(u32::MAX));
        let barrier = what::shared(&name.0);
        self.happened(What::BarrierPassed { barrier, counter, last, after, tasks }, None);
    }

    pub(crate) fn tell_barrier_failed(&mut self, name: &BarrierName, counter: BarrierCounter, fault: &Fault) {
        let barrier = what::shared(&name.0);
        let failed = |text| What::BarrierFailed { barrier: Arc::clone(&barrier), counter, text };
        self.happened_in_words(failed, None, || fault.text());
    }

    /// What the scheduler's command has brought about. To be called at the end of every command that had the scheduler: what
    /// happened to it is in no snapshot.
    pub(crate) fn tell_scheduler(&mut self) {
        let incidents = self.job.domains.ray.as_deref_mut().map(|ray| std::mem::take(&mut ray.incidents));
        for incident in incidents.into_iter().flatten() {
            let told = match incident {
                Incident::WorkerLost { worker, why } => {
                    What::WorkerLost { worker: what::name(&worker), text: what::text(&why) }
                }
                Incident::TaskFailed { function, error } => {
                    let text = what::text(&String::from_utf8_lossy(&error));
                    What::SchedulerTaskFailed { function: what::name(&function.to_string()), text }
                }
                Incident::Rebuilt { function } => {
                    What::ObjectRebuilt { function: what::name(&function.to_string()) }
                }
            };
            self.happened(told, None);
        }
    }
}
