//! Graphs are stopped, run for too long, and are deleted.

use std::sync::Arc;

use crate::mars::act::Act;
use crate::mars::answer::Answer;
use crate::mars::apply::Answered;
use crate::mars::graph::{GraphError, GraphState};
use crate::mars::ids::{GraphName, GraphNo};
use crate::mars::limits::{CANCEL_GRACE_MS, UPLOAD_IDLE_MS};
use crate::mars::refusal::Refusal;
use crate::planted::{Bug, is_planted};

impl Act<'_> {
    /// One that has ended stays as it is.
    pub(super) fn stop_graph(&mut self, name: &GraphName) -> Answered {
        let (number, graph) = self.mars.graph(name)?;
        let state = graph.head.state;
        if state == GraphState::Preparing {
            return Ok(Answer::Stopped { state: self.stop_draft(number) });
        }
        if is_planted(Bug::GraphEndsTwice) && state == GraphState::Succeeded {
            self.mars.change_head(number, |graph| graph.head.state = GraphState::Cancelled);
        }
        if !state.is_terminal() && state != GraphState::Cancelling {
            self.cancel_rest(number);
            self.settle();
            self.end_if_done(number);
        }
        let state = self.mars.graphs.get(&number).map_or(state, |graph| graph.head.state);
        Ok(Answer::Stopped { state })
    }

    /// One whose parts were coming is seen like others then, and has nothing.
    fn stop_draft(&mut self, number: GraphNo) -> GraphState {
        let state = GraphState::Cancelled;
        if let Some(mut graph) = self.mars.take_graph(number) {
            let stopped = Arc::make_mut(&mut graph);
            stopped.cancel_pending();
            stopped.head.state = state;
            stopped.head.ended = Some(self.now);
            self.mars.put_graph(number, stopped.clone());
        }
        state
    }

    pub(super) fn delete_graph(&mut self, name: &GraphName) -> Answered {
        let (number, graph) = self.mars.graph(name)?;
        let state = graph.head.state;
        if !state.is_terminal() && state != GraphState::Preparing {
            let (kind, key) = (graph.head.kind, graph.head.key.clone());
            return Err(Refusal::GraphRuns { kind, key, state }.into());
        }
        Ok(Answer::Freed { chunks: self.forget_graph(number) })
    }

    /// What runs of it is cancelled, and what it has is dropped; how many chunks that were.
    pub(super) fn forget_graph(&mut self, number: GraphNo) -> u64 {
        let Some(mut graph) = self.mars.take_graph(number) else { return 0 };
        for operation in graph.running.keys() {
            self.ray.cancel_for_graph(self.now, *operation, CANCEL_GRACE_MS);
            self.is_ray_changed = true;
        }
        let objects = Arc::make_mut(&mut graph).give_up_all();
        self.drop_objects(&objects);
        objects.len() as u64
    }

    /// The scheduler does not take a subtask, whatever happens.
    pub(super) fn fail_refused(&mut self, number: GraphNo, refusal: &crate::ray::Refusal) {
        let (code, message) = ("REFUSED".to_owned(), format!("the scheduler refused a subtask: {refusal:?}"));
        self.fail_graph(number, GraphError { code, message, ..GraphError::default() });
    }

    fn fail_graph(&mut self, number: GraphNo, error: GraphError) {
        self.mars.change_head(number, |graph| graph.head.error = Some(Arc::new(error)));
        self.cancel_rest(number);
        self.settle();
        self.end_if_done(number);
    }

    pub(super) fn graph_timed_out(&mut self, number: GraphNo) -> bool {
        let Some(graph) = self.mars.graphs.get(&number) else { return false };
        let Some(deadline) = graph.deadline().filter(|deadline| *deadline <= self.now) else { return false };
        let ran = deadline.0.saturating_sub(graph.head.started.0);
        let error = GraphError {
            code: "TIMEOUT".to_owned(),
            message: format!("the graph did not end within its timeout of {ran} ms"),
            ..GraphError::default()
        };
        self.fail_graph(number, error);
        true
    }

    pub(super) fn graph_expired(&mut self, number: GraphNo) -> bool {
        let expiry = self.mars.graphs.get(&number).and_then(|graph| graph.expiry(UPLOAD_IDLE_MS));
        let is_due = expiry.is_some_and(|expiry| expiry <= self.now);
        if is_due {
            self.forget_graph(number);
        }
        is_due
    }
}
