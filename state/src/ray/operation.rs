//! Operations: tasks, puts and gets.

use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::ids::TimeMs;
use crate::memory::{Weigh, of_list, of_map, of_shared, of_text};
use crate::ray::command::{Argument, Run, Task, TaskOptions};
use crate::ray::ids::{Attempt, ObjectId, OperationId, OrderId, StoreId, WorkerId};
use crate::ray::view::Creator;
use crate::snapshot::unpresumed;

/// What a task's record costs besides its bytes, roughly.
const RECORD_BYTES: u64 = 512;

/// An operation with its place in the computation graph.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Operation {
    pub(crate) creator: Creator,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Kind {
    Task(Box<Entry>),
    Put(ObjectId),
    Get {
        worker: WorkerId,
        object: ObjectId,
        /// The object cannot be had yet.
        waits: bool,
    },
}

/// A task with what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) task: Arc<Task>,
    pub(crate) results: Vec<ObjectId>,
    pub(crate) options: TaskOptions,
    pub(crate) submitter: WorkerId,
    pub(crate) stage: Stage,
    /// The last attempt that was begun; 0: none.
    pub(crate) attempt: Attempt,
    /// Attempts that failed and count against the retries.
    pub(crate) spent: u32,
    /// Workers that died with it.
    pub(crate) deaths: u32,
    /// It waits until then, whatever else it waits for.
    pub(crate) not_before: Option<TimeMs>,
    /// How attempts ended, for people.
    pub(crate) history: Vec<String>,
    /// References that the task itself owns, once for each, while it is queued.
    pub(crate) holds: Vec<ObjectId>,
    /// References that the task owns to what earlier attempts put and submitted, once for each, until the next one
    /// has come to its end.
    pub(crate) kept: Vec<ObjectId>,
    /// What it submitted and put, by its place among its calls.
    #[serde(deserialize_with = "unpresumed::map")]
    pub(crate) children: OrdMap<u32, Child>,
    pub(crate) error: Bytes,
    /// It is among those that succeeded.
    pub(crate) counted: bool,
    /// It was given up as a means to make its results again.
    pub(crate) evicted: bool,
}

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Stage {
    Queued,
    Running {
        worker: WorkerId,
        order: OrderId,
    },
    /// The worker is done with it, and results are still to come from its store.
    Reported {
        succeeded: bool,
        store: StoreId,
    },
    Done,
    Failed,
    Cancelled,
}

/// What a task made with one of its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Child {
    pub(crate) operation: OperationId,
    /// Of a task: what was called with what. Equal calls have equal ones.
    pub(crate) digest: u64,
    pub(crate) object: Option<ObjectId>,
}

impl Entry {
    pub(crate) fn new(task: Task, results: Vec<ObjectId>, options: TaskOptions, submitter: WorkerId) -> Self {
        Self {
            task: Arc::new(task),
            results,
            options,
            submitter,
            stage: Stage::Queued,
            attempt: Attempt(0),
            spent: 0,
            deaths: 0,
            not_before: None,
            history: Vec::new(),
            holds: Vec::new(),
            kept: Vec::new(),
            children: OrdMap::new(),
            error: Bytes::new(),
            counted: false,
            evicted: false,
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.stage, Stage::Done | Stage::Failed | Stage::Cancelled)
    }

    /// Whether somebody wanted it to end. What is taken out of the queue when its driver ends has no error: nobody is
    /// there to be told.
    pub(crate) fn was_cancelled(&self) -> bool {
        self.stage == Stage::Cancelled && !self.error.is_empty()
    }

    /// The arguments that it waits for, each occurrence.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = ObjectId> + '_ {
        self.task.arguments.iter().filter_map(|argument| match argument {
            Argument::Object(object) => Some(*object),
            Argument::Value { .. } => None,
        })
    }

    /// The arguments that it waits for, each once, in ascending order.
    pub(crate) fn awaited_once(&self) -> Vec<ObjectId> {
        let mut awaited: Vec<ObjectId> = self.awaited().collect();
        awaited.sort_unstable();
        awaited.dedup();
        awaited
    }

    /// The ids in its arguments, nested ones included, each once, in ascending order.
    pub(crate) fn mentioned_once(&self) -> Vec<ObjectId> {
        let mut mentioned: Vec<ObjectId> = self.task.mentioned().map(|(_, object)| object).collect();
        mentioned.sort_unstable();
        mentioned.dedup();
        mentioned
    }

    pub(crate) fn is_run(&self, run: Run) -> bool {
        self.attempt == run.attempt
    }

    /// What it costs to remember it.
    pub(crate) fn bytes(&self) -> u64 {
        let argument = |argument: &Argument| match argument {
            Argument::Object(_) => 16,
            Argument::Value { bytes, nested } => 48 + bytes.len() + 8 * nested.len(),
        };
        let arguments: usize = self.task.arguments.iter().map(argument).sum();
        let history: usize = self.history.iter().map(String::len).sum();
        let others = self.task.name.0.len() + 8 * self.results.len() + self.error.len();
        RECORD_BYTES + (arguments + history + others) as u64 + 32 * self.children.len() as u64
    }
}

impl Weigh for Operation {
    fn outside(&self) -> u64 {
        self.entry().map_or(0, |entry| of_shared::<Entry>().saturating_add(entry.outside()))
    }

    fn changing(&self) -> u64 {
        self.entry().map_or(0, Entry::changing)
    }
}

impl Weigh for Entry {
    fn outside(&self) -> u64 {
        self.changing().saturating_add(of_shared::<Task>()).saturating_add(self.task.outside())
    }

    /// What its clients asked for never changes.
    fn changing(&self) -> u64 {
        let ids = [&self.results, &self.holds, &self.kept].map(|list| of_list::<ObjectId>(list.len()));
        let texts = self.history.iter().map(String::len).chain([self.error.len()]).map(of_text);
        ids.into_iter().chain(texts).fold(of_map::<u32, Child>(self.children.len()), u64::saturating_add)
    }
}

impl Weigh for Task {
    fn outside(&self) -> u64 {
        let of = |argument: &Argument| match argument {
            Argument::Object(_) => 0,
            Argument::Value { bytes, nested } => {
                of_text(bytes.len()).saturating_add(of_list::<ObjectId>(nested.len()))
            }
        };
        let own = of_text(self.name.0.len()).saturating_add(of_list::<Argument>(self.arguments.len()));
        self.arguments.iter().map(of).fold(own, u64::saturating_add)
    }
}

impl Task {
    /// Every id in the arguments, each occurrence, with the argument's place.
    pub(crate) fn mentioned(&self) -> impl Iterator<Item = (u64, ObjectId)> + '_ {
        self.arguments.iter().zip(0..).flat_map(|(argument, place)| {
            let (one, nested): (Option<ObjectId>, &[ObjectId]) = match argument {
                Argument::Object(object) => (Some(*object), &[]),
                Argument::Value { nested, .. } => (None, nested),
            };
            one.into_iter().chain(nested.iter().copied()).map(move |object| (place, object))
        })
    }
}

impl Operation {
    pub(crate) fn entry(&self) -> Option<&Entry> {
        match &self.kind {
            Kind::Task(entry) => Some(entry),
            Kind::Put(_) | Kind::Get { .. } => None,
        }
    }

    pub(crate) fn entry_mut(&mut self) -> Option<&mut Entry> {
        match &mut self.kind {
            Kind::Task(entry) => Some(entry),
            Kind::Put(_) | Kind::Get { .. } => None,
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        match &self.kind {
            Kind::Task(entry) => entry.is_finished(),
            Kind::Put(_) => true,
            Kind::Get { waits, .. } => !waits,
        }
    }
}
