//! One command's work on one job.

use crate::command::Effect;
use crate::context::ApplyContext;
use crate::ids::{BarrierName, CallId, FeatureLevel, Incarnation, TaskId};
use crate::job::record::Job;

/// A job while a command changes it, with the effects so far. Every domain adds its own methods.
pub(crate) struct Turn<'a> {
    pub(crate) job: &'a mut Job,
    /// At which it is applied.
    pub(crate) level: FeatureLevel,
    pub(crate) context: ApplyContext,
    effects: &'a mut Vec<Effect>,
    // These three concern the whole job, so one command needs to tell them once only.
    tasks_changed: bool,
    polls_changed: bool,
    alive_answered: bool,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(
        job: &'a mut Job,
        level: FeatureLevel,
        context: ApplyContext,
        effects: &'a mut Vec<Effect>,
    ) -> Self {
        Self {
            job,
            level,
            context,
            effects,
            tasks_changed: false,
            polls_changed: false,
            alive_answered: false,
        }
    }

    /// The id of the wait that this command may begin.
    pub(crate) fn call(&self) -> CallId {
        self.context.call()
    }

    /// Counts one change of the task states.
    pub(crate) fn tasks_changed(&mut self) {
        self.job.tasks.bump_version();
        self.tasks_changed = true;
    }

    pub(crate) fn polls_changed(&mut self) {
        self.polls_changed = true;
    }

    pub(crate) fn alive_answered(&mut self) {
        self.alive_answered = true;
    }

    pub(crate) fn task_connected(&mut self, task: TaskId, incarnation: Incarnation) {
        self.effects.push(Effect::TaskConnected { job: self.job.id, task, incarnation });
    }

    pub(crate) fn barrier_changed(&mut self, barrier: &BarrierName) {
        self.effects.push(Effect::BarrierChanged { job: self.job.id, barrier: barrier.clone() });
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Ends the command: tells what concerns the whole job.
    pub(crate) fn finish(mut self) {
        self.tell_scheduler();
        let job = self.job.id;
        if self.tasks_changed {
            self.effects.push(Effect::TasksChanged { job });
        }
        if self.polls_changed {
            self.effects.push(Effect::PollsChanged { job });
        }
        if self.alive_answered {
            self.effects.push(Effect::AliveAnswered { job });
        }
    }
}
