//! Subtasks are given to the scheduler: few at a time, in the order of their places, so inputs come first.

use std::sync::Arc;

use bytes::Bytes;

use crate::mars::CHUNK_FUNCTION;
use crate::mars::act::Act;
use crate::mars::chunk::{ChunkMeta, Stage, Work};
use crate::mars::graph::{Graph, GraphState};
use crate::mars::ids::{GraphNo, Place};
use crate::mars::limits::{IN_FLIGHT_MAX, WINDOW};
use crate::ray::graph_task::GraphTask;
use crate::ray::ids::{FunctionName, ObjectId, OperationId};
use crate::ray::{Argument, Ray, Refusal, Task, TaskOptions};

impl Act<'_> {
    /// Submits the next subtasks; whether there were any.
    pub(super) fn advance(&mut self, number: GraphNo) -> bool {
        let mut new = Vec::new();
        let mut refused = None;
        self.mars.change_head(number, |graph| {
            for _ in 0..WINDOW {
                if !has_room(graph, self.ray) {
                    break;
                }
                let place = Place(graph.head.next);
                let Some(task) = task(graph, place) else { break };
                match self.ray.submit_for_graph(self.now, task) {
                    Ok((operation, results)) => {
                        graph.begin(place, operation, results.first().copied());
                        new.push(operation);
                    }
                    // Room comes, and so does a worker that has the function.
                    Err(Refusal::Full { .. } | Refusal::FunctionUnknown { .. }) => break,
                    Err(refusal) => {
                        refused = Some(refusal);
                        break;
                    }
                }
            }
        });
        let any = !new.is_empty() || refused.is_some();
        for operation in new {
            self.mars.tasks.insert(operation, number);
        }
        self.is_ray_changed |= any;
        if let Some(refusal) = refused {
            self.fail_refused(number, &refusal);
        }
        any
    }
}

impl Graph {
    /// The scheduler has the task of the next chunk.
    fn begin(&mut self, place: Place, operation: OperationId, object: Option<ObjectId>) {
        self.set_stage(place, Stage::Running);
        if let Some(mut chunk) = self.chunks.edit(&place) {
            chunk.object = object;
            if let Some(work) = &mut chunk.work {
                let work = Arc::make_mut(work);
                work.argument = Bytes::new();
                work.operation = Some(operation);
            }
        }
        self.running.insert(operation, place);
        self.head.next += 1;
        self.head.state = GraphState::Running;
    }
}

/// Whether the scheduler can have one more of its subtasks: it has room, and some worker has had the function.
pub(super) fn has_room(graph: &Graph, ray: &Ray) -> bool {
    let is_known = || ray.functions.slot(&function()).is_some();
    let is_short = graph.running.len() < IN_FLIGHT_MAX as usize;
    graph.may_advance() && is_short && ray.room_for_graph(1).is_ok() && is_known()
}

fn function() -> FunctionName {
    FunctionName(Bytes::from_static(CHUNK_FUNCTION.as_bytes()))
}

/// The task that makes a chunk, if all that it is made from has begun.
fn task(graph: &Graph, place: Place) -> Option<GraphTask> {
    let chunk: &ChunkMeta = graph.chunks.get(&place)?;
    let work: &Work = chunk.work.as_ref()?;
    let object = |input: &Place| graph.chunks.get(input).and_then(|input| input.object);
    let inputs: Option<Vec<ObjectId>> = work.inputs.iter().map(object).collect();
    let first = Argument::Value { bytes: work.argument.clone(), nested: Vec::new() };
    let arguments = std::iter::once(first).chain(inputs?.into_iter().map(Argument::Object)).collect();
    let name = function();
    let options = &graph.head.options;
    let retries = options.max_reschedules.map_or(TaskOptions::default().max_retries, Some);
    let max_retries = if work.is_retryable { retries } else { Some(0) };
    let mut needs = work.needs.clone();
    needs.priority = options.priority;
    Some(GraphTask {
        task: Task { name, arguments, results_given: 0 },
        options: TaskOptions { max_retries, retry_exceptions: false },
        needs,
    })
}
