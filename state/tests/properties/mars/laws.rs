//! What must hold after every command, seen from outside.

use std::collections::BTreeMap;

use tripod_state::mars::{ChunkState, GraphNo, GraphState, GraphView, Request};
use tripod_state::{Command, Reply, State, mars};

use super::generate::SESSIONS;
use super::{SCOPE, graphs};

/// What was seen so far.
#[derive(Default)]
pub(super) struct Laws {
    /// Graphs by number. A number is never given twice.
    seen: BTreeMap<GraphNo, GraphView>,
}

impl Laws {
    pub(super) fn check(&mut self, command: &Command, reply: &Reply, state: &State) -> Result<(), String> {
        for graph in graphs(state) {
            self.check_graph(command, &graph)?;
            if let Some(number) = graph.graph {
                self.seen.insert(number, graph);
            }
        }
        for session in SESSIONS {
            check_session(state, session)?;
        }
        if let Some(ray) = state.ray(SCOPE.job) {
            ray.check()?;
        }
        refused_for_a_reason(command, reply)
    }

    fn check_graph(&self, command: &Command, graph: &GraphView) -> Result<(), String> {
        let counts = graph.counts;
        let over = graph.state.is_terminal();
        if over && (counts.pending > 0 || counts.running > 0) {
            return Err(format!("something is left of a graph that has ended: {graph:?}"));
        }
        let goes_on = matches!(graph.state, GraphState::Running | GraphState::Unscheduled);
        if goes_on && (counts.errored > 0 || counts.cancelled > 0 || counts.pending + counts.running == 0) {
            return Err(format!("a graph goes on that should have ended: {graph:?}"));
        }
        if graph.state == GraphState::Cancelling && counts.running == 0 {
            return Err(format!("nothing is waited for: {graph:?}"));
        }
        if graph.state == GraphState::Succeeded && graph.progress_millionths != 1_000_000 {
            return Err(format!("progress is no success: {graph:?}"));
        }
        if (graph.state == GraphState::Failed) != graph.error.is_some()
            && graph.state != GraphState::Cancelling
        {
            return Err(format!("an error is no failure: {graph:?}"));
        }
        let Some(before) = graph.graph.and_then(|number| self.seen.get(&number)) else { return Ok(()) };
        if before.state.is_terminal() && before != graph {
            return Err(format!("a graph that had ended changed: {before:?} {graph:?}"));
        }
        if before.counts.total() != counts.total() && before.state != GraphState::Preparing {
            return Err(format!("subtasks came or went: {before:?} {graph:?} {command:?}"));
        }
        Ok(())
    }
}

fn check_session(state: &State, session: &str) -> Result<(), String> {
    let Ok(view) = state.mars_session(SCOPE, session) else { return Ok(()) };
    let graphs = state.mars_graphs(SCOPE, session, None).expect("the session is there");
    let runs = |graph: &&GraphView| !graph.state.is_terminal() && graph.state != GraphState::Preparing;
    let busy = graphs.iter().filter(runs).count();
    if view.last_idle_ms.is_none() != (busy > 0) || view.graphs != graphs.len() as u64 {
        return Err(format!("{view:?} has {graphs:?}"));
    }
    // What is kept for a client can be had.
    for key in ["g", "h", "i"] {
        let tileable = state.mars_tileables(SCOPE, session, &[key.to_owned()]).expect("the session is there");
        let Some(Some(tileable)) = tileable.into_iter().next() else { continue };
        if tileable.count == 0 || tileable.state != GraphState::Succeeded {
            continue;
        }
        let chunks = state.mars_chunks(SCOPE, session, &tileable.chunk_keys).expect("the session is there");
        let kept = chunks.iter().flatten().all(|chunk| {
            chunk.state == ChunkState::Succeeded && (chunk.object.is_some() || chunk.graph.0 == 0)
        });
        if !kept && chunks.iter().flatten().all(|chunk| of_that_graph(state, session, &tileable, chunk)) {
            return Err(format!("{tileable:?} has lost {chunks:?}"));
        }
    }
    Ok(())
}

/// A newer graph may have a chunk of the same key.
fn of_that_graph(
    state: &State,
    session: &str,
    tileable: &mars::TileableView,
    chunk: &mars::ChunkView,
) -> bool {
    let graph = mars::GraphName {
        session: session.to_owned(),
        kind: tileable.graph_kind,
        key: tileable.graph_key.clone(),
    };
    state.mars_graph(SCOPE, &graph).is_ok_and(|view| view.graph == Some(chunk.graph))
}

/// Ends are not refused where there is something to end.
fn refused_for_a_reason(command: &Command, reply: &Reply) -> Result<(), String> {
    let Command::Mars(mars::Command::Ask { request: Request::Stop { .. }, .. }) = command else {
        return Ok(());
    };
    match reply {
        Ok(_) => Ok(()),
        Err(tripod_state::Fault::Mars(
            mars::Refusal::SessionUnknown { .. } | mars::Refusal::GraphUnknown { .. },
        )) => Ok(()),
        Err(fault) => Err(format!("a stop was refused: {fault:?}")),
    }
}
