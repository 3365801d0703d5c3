//! The state of one scheduler.

use crate::command::Reply;
use crate::ids::TimeMs;
use crate::job::turn::Turn;
use crate::ray::command::{Assignment, Command, Run};
use crate::ray::ids::{ExportId, ObjectId, OrderId, StoreId, WorkerId};
use crate::ray::order::Order;
use crate::ray::view;

/// A job's scheduler.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Ray {}

impl Ray {
    /// The assignments that are due now, at most `most`, by the rule of the job's algorithm.
    #[must_use]
    pub fn plan(&self, now: TimeMs, most: usize) -> Vec<Assignment> {
        let _ = (now, most);
        Vec::new()
    }

    /// When the next task may be tried again, if that is all that it waits for.
    #[must_use]
    pub fn next_due(&self) -> Option<TimeMs> {
        None
    }

    /// Orders that are still to be carried out, after the given one, in ascending order, at most `most`.
    #[must_use]
    pub fn orders(&self, after: Option<OrderId>, most: usize) -> Vec<(OrderId, Order)> {
        let _ = (after, most);
        Vec::new()
    }

    #[must_use]
    pub fn worker(&self, worker: WorkerId) -> Option<view::Worker> {
        let _ = worker;
        None
    }

    #[must_use]
    pub fn store(&self, store: StoreId) -> Option<view::Store> {
        let _ = store;
        None
    }

    /// All workers and drivers that are remembered, by id.
    #[must_use]
    pub fn workers(&self) -> Vec<view::Worker> {
        Vec::new()
    }

    /// All stores that are remembered, by id.
    #[must_use]
    pub fn stores(&self) -> Vec<view::Store> {
        Vec::new()
    }

    /// What an order to execute is about; `None` if that attempt is not the current one any more.
    #[must_use]
    pub fn execution(&self, run: Run) -> Option<view::Execution> {
        let _ = run;
        None
    }

    #[must_use]
    pub fn export(&self, export: ExportId) -> Option<view::Export> {
        let _ = export;
        None
    }

    /// What became of an object, or of the one that it means; `None`: there is no such id.
    #[must_use]
    pub fn availability(&self, object: ObjectId) -> Option<view::Availability> {
        let _ = object;
        None
    }

    #[must_use]
    pub fn info(&self) -> view::Info {
        view::Info::default()
    }

    #[must_use]
    pub fn task_info(&self) -> view::TaskInfo {
        view::TaskInfo::default()
    }

    /// Tasks, newest first, at most `most`; of one state or of all.
    #[must_use]
    pub fn tasks(&self, state: Option<view::TaskState>, most: usize) -> Vec<view::ListedTask> {
        let _ = (state, most);
        Vec::new()
    }

    #[must_use]
    pub fn totals(&self) -> view::Totals {
        view::Totals::default()
    }

    /// The living peers whose silence is measured.
    #[must_use]
    pub fn watched(&self) -> Vec<view::Watched> {
        Vec::new()
    }
}

impl Turn<'_> {
    pub(crate) fn ray(&mut self, command: Command) -> Reply {
        let _ = command;
        Ok(crate::Answer::Done)
    }
}
