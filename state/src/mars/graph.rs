//! One graph.

use std::sync::Arc;

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::ids::{DurationMs, TimeMs};
use crate::mars::chunk::{ChunkMeta, NONE, Stage, Tables};
use crate::mars::command::{Digest, Options};
use crate::mars::ids::{GraphKind, Name, Place, SessionNo};
use crate::mars::key::ChunkKey;
use crate::mars::tileable::TileableMeta;
use crate::memory::{Weigh, Weighed, of_list, of_map, of_shared, of_text};
use crate::ray::ids::OperationId;

/// Where chunks that other graphs made have their places: behind all that can be made.
pub(crate) const FETCHED_FIRST: u32 = 1 << 31;

/// How far a graph is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum GraphState {
    /// No subtask was given to the scheduler yet: it has no room.
    Unscheduled,
    /// Its parts are coming.
    Preparing,
    Running,
    Succeeded,
    Failed,
    /// Subtasks that run are waited for.
    Cancelling,
    Cancelled,
}

impl GraphState {
    /// In words.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Unscheduled => "unscheduled",
            Self::Preparing => "preparing",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelling => "cancelling",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing happens any more.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

/// How many subtasks are where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    /// Not given to the scheduler yet.
    pub pending: u64,
    /// The scheduler has them: they wait there, or a worker has them.
    pub running: u64,
    pub succeeded: u64,
    pub errored: u64,
    pub cancelled: u64,
}

impl Counts {
    fn of(&mut self, stage: Stage) -> Option<&mut u64> {
        Some(match stage {
            Stage::Pending => &mut self.pending,
            Stage::Running => &mut self.running,
            Stage::Succeeded => &mut self.succeeded,
            Stage::Errored => &mut self.errored,
            Stage::Cancelled => &mut self.cancelled,
            Stage::Fetched => return None,
        })
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.pending + self.running + self.succeeded + self.errored + self.cancelled
    }
}

/// Why a graph failed: the first of its subtasks that did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GraphError {
    /// `EXCEPTION`, `WORKER_DIED`, `DEPENDENCY_FAILED`, `TIMEOUT` and what else the scheduler says.
    pub code: String,
    /// The last line of the text.
    pub message: String,
    /// What the worker said.
    pub traceback: String,
    pub subtask: String,
    pub chunks: Vec<String>,
    /// Its address, if it is known.
    pub worker: String,
    pub attempt: u32,
    /// The tileable whose chunk it is, if its key says so.
    pub tileable: String,
}

/// A graph, from its first part until it is deleted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Graph {
    pub(crate) head: Head,
    pub(crate) tables: Tables,
    pub(crate) chunks: Weighed<Place, ChunkMeta>,
    pub(crate) tileables: Weighed<Name, Arc<TileableMeta>>,
    // Derived.
    pub(crate) counts: Counts,
    /// The tasks that the scheduler has.
    pub(crate) running: OrdMap<OperationId, Place>,
    /// Chunks of other graphs.
    pub(crate) fetched: OrdMap<ChunkKey, Place>,
    /// Those of them that were given up in this command, until the list of keys has forgotten them too.
    pub(crate) let_go: Vec<Place>,
    /// What chunks take of which no task was submitted yet.
    pub(crate) waiting_bytes: u64,
    /// What key and targets take.
    fixed_bytes: u64,
}

/// What is known besides chunks and tileables.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) session: SessionNo,
    pub(crate) kind: GraphKind,
    pub(crate) key: Name,
    pub(crate) digest: Digest,
    pub(crate) options: Options,
    pub(crate) targets: Arc<Vec<Name>>,
    pub(crate) state: GraphState,
    /// When its last part came; then, when it was committed.
    pub(crate) started: TimeMs,
    pub(crate) ended: Option<TimeMs>,
    pub(crate) error: Option<Arc<GraphError>>,
    /// The first chunk of which no task was submitted.
    pub(crate) next: u32,
}

impl Graph {
    pub(crate) fn new(head: Head) -> Self {
        let targets = head.targets.iter().map(Weigh::outside);
        let fixed = of_list::<Name>(head.targets.len()).saturating_add(head.key.outside());
        let fixed_bytes = targets.fold(fixed, u64::saturating_add);
        Self {
            head,
            tables: Tables::default(),
            chunks: Weighed::default(),
            tileables: Weighed::default(),
            counts: Counts::default(),
            running: OrdMap::new(),
            fetched: OrdMap::new(),
            let_go: Vec::new(),
            waiting_bytes: 0,
            fixed_bytes,
        }
    }

    /// How many chunks it makes.
    pub(crate) fn nodes(&self) -> u32 {
        u32::try_from(self.counts.total()).unwrap_or(NONE)
    }

    /// The place of the next chunk of another graph.
    pub(crate) fn next_fetched(&self) -> Place {
        Place(FETCHED_FIRST.saturating_add(u32::try_from(self.fetched.len()).unwrap_or(NONE)))
    }

    /// Adds a chunk behind the others.
    pub(crate) fn add_chunk(&mut self, place: Place, chunk: ChunkMeta) {
        if let Some(count) = self.counts.of(chunk.stage) {
            *count += 1;
        } else {
            self.fetched.insert(self.tables.key(&chunk), place);
        }
        if let Some(work) = &chunk.work {
            if chunk.stage == Stage::Pending {
                self.waiting_bytes = self.waiting_bytes.saturating_add(work.outside());
            }
            if let Some(operation) = work.operation {
                self.running.insert(operation, place);
            }
        }
        self.chunks.insert(place, chunk);
    }

    /// Changes where a chunk is on its way; what it was before.
    pub(crate) fn set_stage(&mut self, place: Place, stage: Stage) {
        let Some(mut chunk) = self.chunks.edit(&place) else { return };
        let before = std::mem::replace(&mut chunk.stage, stage);
        if before == Stage::Pending
            && let Some(work) = &chunk.work
        {
            self.waiting_bytes = self.waiting_bytes.saturating_sub(work.outside());
        }
        drop(chunk);
        if let Some(count) = self.counts.of(before) {
            *count -= 1;
        }
        if let Some(count) = self.counts.of(stage) {
            *count += 1;
        }
    }

    /// The part of its subtasks that are finished, in millionths.
    pub(crate) fn progress_millionths(&self) -> u32 {
        let (all, finished) = (self.counts.total(), self.counts.succeeded);
        let done = self.head.state == GraphState::Succeeded;
        match (finished.saturating_mul(1_000_000)).checked_div(all) {
            Some(part) => u32::try_from(part).unwrap_or(1_000_000),
            None if done => 1_000_000,
            None => 0,
        }
    }

    /// Whether the scheduler may have more of it.
    pub(crate) fn may_advance(&self) -> bool {
        matches!(self.head.state, GraphState::Running | GraphState::Unscheduled)
            && self.head.next < self.nodes()
    }

    /// When it has run for too long.
    pub(crate) fn deadline(&self) -> Option<TimeMs> {
        let runs = matches!(self.head.state, GraphState::Running | GraphState::Unscheduled);
        self.head.options.timeout_ms.filter(|_| runs).map(|timeout| self.head.started.plus(timeout))
    }

    /// When it is deleted by itself.
    pub(crate) fn expiry(&self, idle: DurationMs) -> Option<TimeMs> {
        match (self.head.state, self.head.ended) {
            (GraphState::Preparing, _) => Some(self.head.started.plus(idle)),
            (_, Some(ended)) => self.head.options.result_ttl_ms.map(|kept| ended.plus(kept)),
            (_, None) => None,
        }
    }
}

impl Weigh for Graph {
    fn outside(&self) -> u64 {
        self.around().saturating_add(self.chunks.bytes()).saturating_add(self.tileables.bytes())
    }
}

impl Graph {
    /// The same from every single element.
    pub(crate) fn recounted(&self) -> u64 {
        self.around().saturating_add(self.chunks.recounted()).saturating_add(self.tileables.recounted())
    }

    fn around(&self) -> u64 {
        let error = self.head.error.as_ref().map_or(0, |error| {
            let texts = [
                &error.code,
                &error.message,
                &error.traceback,
                &error.subtask,
                &error.worker,
                &error.tileable,
            ];
            let texts = texts.into_iter().chain(&error.chunks).map(|text| of_text(text.len()));
            texts.fold(of_shared::<GraphError>(), u64::saturating_add)
        });
        self.tables
            .bytes()
            .saturating_add(self.fixed_bytes)
            .saturating_add(error)
            .saturating_add(of_map::<OperationId, Place>(self.running.len()))
            .saturating_add(of_map::<ChunkKey, Place>(self.fetched.len()))
    }
}
