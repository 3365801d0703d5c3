//! Subtasks end, and graphs with them.

use std::sync::Arc;

use crate::mars::act::Act;
use crate::mars::chunk::Stage;
use crate::mars::graph::{Graph, GraphError, GraphState};
use crate::mars::ids::{GraphNo, Place};
use crate::mars::limits::{CANCEL_GRACE_MS, ERROR_MESSAGE_BYTES_MAX, ERROR_TEXT_BYTES_MAX};
use crate::ray::Ray;
use crate::ray::graph_task::Outcome;
use crate::ray::ids::{ObjectId, OperationId};

impl Act<'_> {
    /// What ended in this command, until nothing does: what is cancelled ends, too.
    pub(crate) fn settle(&mut self) {
        loop {
            let ended = self.ray.take_ended();
            if ended.is_empty() {
                return;
            }
            for (operation, outcome) in ended {
                self.ended(operation, &outcome);
            }
        }
    }

    fn ended(&mut self, operation: OperationId, outcome: &Outcome) {
        // Of a graph that is gone, or made again what was lost.
        let Some(number) = self.mars.tasks.remove(&operation) else { return };
        self.is_changed = true;
        let mut free = Vec::new();
        let mut has_failed = false;
        let ray = &*self.ray;
        self.mars.change_head(number, |graph| {
            let Some(place) = graph.running.remove(&operation) else { return };
            let stage = match outcome {
                Outcome::Succeeded => Stage::Succeeded,
                Outcome::Failed { .. } if graph.head.state != GraphState::Cancelling => Stage::Errored,
                Outcome::Failed { .. } if graph.head.error.is_some() => Stage::Errored,
                Outcome::Failed { .. } | Outcome::Cancelled => Stage::Cancelled,
            };
            graph.set_stage(place, stage);
            free = graph.end_chunk(place, stage != Stage::Succeeded);
            if graph.head.state != GraphState::Cancelling
                && let Some(error) = graph.error_of(place, outcome, ray)
            {
                graph.head.error = Some(Arc::new(error));
                has_failed = true;
            }
        });
        self.drop_objects(&free);
        if has_failed {
            self.cancel_rest(number);
        }
        self.end_if_done(number);
    }

    /// Nothing more of a graph begins, and what runs is to end.
    pub(super) fn cancel_rest(&mut self, number: GraphNo) {
        self.mars.change_head(number, |graph| {
            graph.head.state = GraphState::Cancelling;
            graph.cancel_pending();
        });
        let running = self.mars.graphs.get(&number).map(|graph| graph.running.clone()).unwrap_or_default();
        for operation in running.keys() {
            self.ray.cancel_for_graph(self.now, *operation, CANCEL_GRACE_MS);
            self.is_ray_changed = true;
        }
    }

    /// A graph of which nothing runs, and nothing is to begin, has ended.
    pub(super) fn end_if_done(&mut self, number: GraphNo) {
        let Some(graph) = self.mars.graphs.get(&number) else { return };
        let state = match graph.head.state {
            GraphState::Cancelling if graph.head.error.is_some() => GraphState::Failed,
            GraphState::Cancelling => GraphState::Cancelled,
            GraphState::Running | GraphState::Unscheduled if !graph.may_advance() => GraphState::Succeeded,
            _ => return,
        };
        if !graph.running.is_empty() {
            return;
        }
        let session = graph.head.session;
        let (now, mut free) = (self.now, Vec::new());
        self.mars.change_head(number, |graph| {
            graph.head.state = state;
            graph.head.ended = Some(now);
            if state != GraphState::Succeeded {
                free = graph.give_up_all();
            }
        });
        self.drop_objects(&free);
        if let Some(mut session) = self.mars.session_mut(session)
            && session.tally.running == 0
        {
            session.last_idle = now;
        }
        self.is_changed = true;
    }
}

impl Graph {
    /// What has not begun will not.
    pub(super) fn cancel_pending(&mut self) {
        let pending = self.chunks.iter().filter(|(_, chunk)| chunk.stage == Stage::Pending);
        let pending: Vec<Place> = pending.map(|(place, _)| *place).collect();
        for place in pending {
            self.set_stage(place, Stage::Cancelled);
            if let Some(mut chunk) = self.chunks.edit(&place) {
                chunk.work = None;
            }
        }
    }

    /// A chunk's subtask is over; the objects that nobody needs any more.
    fn end_chunk(&mut self, place: Place, even_if_needed: bool) -> Vec<ObjectId> {
        let work = self.chunks.edit(&place).and_then(|mut chunk| chunk.work.take());
        let mut free: Vec<ObjectId> = self.give_up(place, even_if_needed).into_iter().collect();
        if let Some(work) = work {
            free.extend(self.read(&work.inputs));
        }
        free
    }

    fn error_of(&self, place: Place, outcome: &Outcome, ray: &Ray) -> Option<GraphError> {
        let Outcome::Failed { reason, error, worker, attempt } = outcome else {
            // Somebody else cancelled it.
            let is_cancelled = matches!(outcome, Outcome::Cancelled);
            let message = "the subtask was cancelled".to_owned();
            let key = self.key_at(place);
            let error = GraphError { code: "CANCELLED".to_owned(), message, ..self.error_at(place, key) };
            return is_cancelled.then_some(error);
        };
        let worker = worker.and_then(|worker| ray.workers.get(&worker)).map(|worker| worker.address());
        let traceback = beginning(error, ERROR_TEXT_BYTES_MAX);
        let last = traceback.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let message = beginning(last.as_bytes(), ERROR_MESSAGE_BYTES_MAX);
        let (code, attempt) = (reason.clone(), attempt.0);
        let worker = worker.unwrap_or_default();
        let key = self.key_at(place);
        Some(GraphError { code, message, traceback, worker, attempt, ..self.error_at(place, key) })
    }

    fn key_at(&self, place: Place) -> String {
        self.chunks.get(&place).map(|chunk| self.tables.key_text(chunk)).unwrap_or_default()
    }

    /// Of which chunk, and of which tileable.
    fn error_at(&self, place: Place, key: String) -> GraphError {
        let text = self.chunks.get(&place).map(|chunk| self.tables.text(chunk).to_string());
        let tileable = text.filter(|text| *text != key).unwrap_or_default();
        GraphError { subtask: key.clone(), chunks: vec![key], tileable, ..GraphError::default() }
    }
}

/// As much of a text as may be kept.
fn beginning(text: &[u8], most: usize) -> String {
    let text = String::from_utf8_lossy(text);
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.get(..end).unwrap_or_default().to_owned()
}
