//! `tripod mars graph`.

use serde::Serialize;
use tripod_client::mars_wire;

use super::{in_ms, state_word};

/// How a graph is. A contract: fields may be added, never renamed.
#[derive(Debug, Serialize)]
pub(crate) struct GraphView {
    session: String,
    graph: String,
    state: String,
    /// Between 0 and 1.
    progress: f64,
    started_ms: Option<u64>,
    ended_ms: Option<u64>,
    targets: Vec<String>,
    graph_size: u64,
    subtasks: SubtasksView,
    error: Option<ErrorView>,
}

#[derive(Debug, Serialize)]
struct SubtasksView {
    pending: u64,
    running: u64,
    succeeded: u64,
    errored: u64,
    cancelled: u64,
}

#[derive(Debug, Serialize)]
struct ErrorView {
    code: String,
    message: String,
    traceback: String,
    subtask: String,
    chunks: Vec<String>,
    tileable: String,
    worker: String,
    attempt: u32,
}

impl GraphView {
    pub(crate) fn of(session: &str, graph: &str, info: mars_wire::GraphInfo) -> Self {
        let counts = info.subtask_counts.unwrap_or_default();
        let error = |error: mars_wire::GraphError| ErrorView {
            code: error.code,
            message: error.message,
            traceback: error.traceback,
            subtask: error.subtask_id,
            chunks: error.chunk_keys,
            tileable: error.tileable_key,
            worker: error.worker_id,
            attempt: error.attempt,
        };
        Self {
            session: session.to_owned(),
            graph: graph.to_owned(),
            state: state_word(info.state()).to_owned(),
            progress: info.progress,
            started_ms: in_ms(info.start_time),
            ended_ms: in_ms(info.end_time),
            targets: info.targets,
            graph_size: info.graph_size,
            subtasks: SubtasksView {
                pending: counts.pending,
                running: counts.running,
                succeeded: counts.succeeded,
                errored: counts.errored,
                cancelled: counts.cancelled,
            },
            error: info.error.map(error),
        }
    }

    pub(crate) fn render(&self) -> String {
        let SubtasksView { pending, running, succeeded, errored, cancelled } = &self.subtasks;
        let mut text = format!(
            "graph {} of session {}: {}, {:.0} %\nsubtasks: {pending} pending, {running} running, {succeeded} succeeded, \
             {errored} errored, {cancelled} cancelled",
            self.graph,
            self.session,
            self.state,
            self.progress * 100.0,
        );
        if !self.targets.is_empty() {
            text.push_str(&format!("\ntargets: {}", self.targets.join(" ")));
        }
        if let Some(error) = &self.error {
            text.push_str(&error.render());
        }
        text
    }
}

impl ErrorView {
    fn render(&self) -> String {
        let mut text = format!("\nerror: {}: {}", self.code, self.message);
        let told = [("tileable", &self.tileable), ("subtask", &self.subtask), ("worker", &self.worker)];
        for (what, name) in told.into_iter().filter(|(_, name)| !name.is_empty()) {
            text.push_str(&format!("\n  {what}: {name}"));
        }
        if self.attempt > 0 {
            text.push_str(&format!("\n  attempt: {}", self.attempt));
        }
        for line in self.traceback.lines() {
            text.push_str(&format!("\n  | {line}"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_graph_is_shown_with_node_worker_and_traceback() {
        let info = mars_wire::GraphInfo {
            state: mars_wire::GraphState::Failed.into(),
            progress: 0.25,
            targets: vec!["t".into()],
            subtask_counts: Some(mars_wire::SubtaskCounts {
                succeeded: 1,
                errored: 1,
                cancelled: 2,
                ..Default::default()
            }),
            error: Some(mars_wire::GraphError {
                code: "EXCEPTION".into(),
                message: "ValueError: no".into(),
                traceback: "Traceback\n  line 3".into(),
                subtask_id: "12".into(),
                worker_id: "10.0.0.1:9000".into(),
                attempt: 4,
                tileable_key: "t".into(),
                ..Default::default()
            }),
            ..Default::default()
        };
        let wanted = "graph g of session s: failed, 25 %\n\
                      subtasks: 0 pending, 0 running, 1 succeeded, 1 errored, 2 cancelled\n\
                      targets: t\n\
                      error: EXCEPTION: ValueError: no\n  tileable: t\n  subtask: 12\n  worker: 10.0.0.1:9000\n  attempt: 4\n  | Traceback\n  |   line 3";
        assert_eq!(GraphView::of("s", "g", info).render(), wanted);
    }
}
