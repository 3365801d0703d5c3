//! Groups of callers that ask which tasks of a set are connected. A group is answered as soon as
//! every connected task of its set has called.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};

use crate::barrier::members::Members;
use crate::command::{Answer, Reply};
use crate::fault::Fault;
use crate::ids::{CallId, Incarnation, TaskId};
use crate::job::turn::Turn;
use crate::limits::{ALIVE_ANSWERS_KEPT, ALIVE_SETS_MAX, within};
use crate::memory::{Weigh, Weighed, of_list, of_set};
use crate::task::Phase;
use crate::task::table::Table;
use crate::wait::Ticket;

/// The connected tasks of a set, ascending, with their incarnations.
pub(crate) type Alive = Arc<[(TaskId, Incarnation)]>;

/// All groups of a job, by their sets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Groups {
    open: Weighed<Members, Open>,
    answered: Weighed<CallId, Answered>,
    /// The open groups by the call that opened them. Derived.
    ids: OrdMap<CallId, Members>,
}

/// A group that waits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Open {
    /// The call that opened the group.
    pub(crate) id: CallId,
    pub(crate) called: OrdSet<TaskId>,
    /// How many connected tasks of the set have not called. Derived.
    pub(crate) awaited: usize,
}

/// A group's answer, for members that were slow to look.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Answered {
    pub(crate) set: Members,
    pub(crate) alive: Alive,
}

impl Groups {
    /// A task became connected.
    pub(crate) fn joined(&mut self, task: TaskId) {
        self.recount(task, |awaited| awaited + 1);
    }

    /// A task is no longer connected. Groups that waited for it only are answered by
    /// [`Turn::refresh_alive`].
    pub(crate) fn lost(&mut self, task: TaskId) {
        self.recount(task, |awaited| awaited - 1);
    }

    pub(crate) fn open(&self) -> &OrdMap<Members, Open> {
        &self.open
    }

    pub(crate) fn answered(&self) -> &OrdMap<CallId, Answered> {
        &self.answered
    }

    /// What they take, roughly.
    pub(crate) fn bytes(&self) -> u64 {
        self.open.bytes().saturating_add(self.answered.bytes())
    }

    /// The same from all of them.
    pub(crate) fn recounted(&self) -> u64 {
        self.open.recounted().saturating_add(self.answered.recounted())
    }

    /// The group's answer, or `None` while it waits.
    pub(crate) fn outcome(&self, group: CallId) -> Option<Reply> {
        match self.answered.get(&group) {
            Some(answered) => Some(Ok(Answer::Alive(answered.alive.to_vec()))),
            None if self.ids.contains_key(&group) => None,
            None => Some(Err(Fault::ReplyForgotten)),
        }
    }

    /// Puts back an open group of a snapshot.
    pub(crate) fn restore_open(
        &mut self,
        set: Members,
        id: CallId,
        called: OrdSet<TaskId>,
        tasks: &Table,
    ) -> bool {
        let awaited = set.iter().filter(|task| connected(tasks, *task) && !called.contains(task)).count();
        let ascending = self.open.get_max().is_none_or(|(last, _)| *last < set);
        self.ids.insert(id, set.clone());
        self.open.insert(set, Open { id, called, awaited });
        ascending
    }

    /// Puts back an answer of a snapshot.
    pub(crate) fn restore_answered(&mut self, id: CallId, answered: Answered) -> bool {
        let ascending = self.answered.get_max().is_none_or(|(last, _)| *last < id);
        self.answered.insert(id, answered);
        ascending
    }

    fn recount(&mut self, task: TaskId, change: impl Fn(usize) -> usize) {
        let affected: Vec<Members> = self
            .open
            .iter()
            .filter(|(set, group)| set.contains(task) && !group.called.contains(&task))
            .map(|(set, _)| set.clone())
            .collect();
        for set in affected {
            let mut group = self.open.edit(&set).expect("just found");
            group.awaited = change(group.awaited);
        }
    }

    fn answer(&mut self, set: &Members, tasks: &Table) {
        let group = self.open.remove(set).expect("only an open group is answered");
        self.ids.remove(&group.id);
        let alive = set.iter().filter(|task| connected(tasks, *task));
        let alive = alive.map(|task| (task, tasks.get(task).incarnation)).collect();
        self.answered.insert(group.id, Answered { set: set.clone(), alive });
        self.forget(set);
    }

    /// Keeps the newest answers of the set, and of all sets together.
    fn forget(&mut self, set: &Members) {
        let of_set: Vec<CallId> =
            self.answered.iter().filter(|(_, answer)| answer.set == *set).map(|(id, _)| *id).collect();
        let surplus = of_set.len().saturating_sub(ALIVE_ANSWERS_KEPT);
        for id in of_set.into_iter().take(surplus) {
            self.answered.remove(&id);
        }
        while self.answered.len() > ALIVE_SETS_MAX {
            let oldest = self.answered.get_min().map(|(id, _)| *id).expect("not empty");
            self.answered.remove(&oldest);
        }
    }
}

impl Weigh for Open {
    /// With its place among the groups by their calls.
    fn outside(&self) -> u64 {
        of_set::<TaskId>(self.called.len()).saturating_add(of_list::<(CallId, Members)>(2))
    }
}

impl Weigh for Answered {
    fn outside(&self) -> u64 {
        self.set.outside().saturating_add(of_list::<(TaskId, Incarnation)>(self.alive.len()))
    }
}

impl Turn<'_> {
    /// Joins or opens the group of a set. The answer is always read by the ticket: it can be as long
    /// as the set, and replies are remembered.
    pub(crate) fn ask_alive(&mut self, task: TaskId, tasks: &[TaskId]) -> Reply {
        let set = Members::of(tasks);
        if !set.contains(task) {
            return Err(Fault::NotInAliveSet { task });
        }
        let call = self.call();
        let groups = &mut self.job.alive;
        if !groups.open.contains_key(&set) {
            within("sets of tasks that are asked for", groups.open.len() as u64 + 1, ALIVE_SETS_MAX as u64)?;
            let awaited = set.iter().filter(|task| connected(&self.job.tasks, *task)).count();
            groups.ids.insert(call, set.clone());
            groups.open.insert(set.clone(), Open { id: call, called: OrdSet::new(), awaited });
        }
        let mut group = groups.open.edit(&set).expect("opened above");
        if group.called.insert(task).is_none() && connected(&self.job.tasks, task) {
            group.awaited -= 1;
        }
        let (id, complete) = (group.id, group.awaited == 0);
        drop(group);
        if complete {
            groups.answer(&set, &self.job.tasks);
            self.alive_answered();
        }
        Ok(Answer::Waiting(Ticket::Alive { job: self.job.id, group: id }))
    }

    /// Answers the groups that wait for nobody any more.
    pub(crate) fn refresh_alive(&mut self) {
        let complete: Vec<Members> = self
            .job
            .alive
            .open
            .iter()
            .filter(|(_, group)| group.awaited == 0)
            .map(|(set, _)| set.clone())
            .collect();
        for set in complete {
            self.job.alive.answer(&set, &self.job.tasks);
            self.alive_answered();
        }
    }
}

fn connected(tasks: &Table, task: TaskId) -> bool {
    tasks.get(task).phase() == Phase::Connected
}
