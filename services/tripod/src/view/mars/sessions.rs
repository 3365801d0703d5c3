//! `tripod mars sessions`.

use std::collections::BTreeMap;

use serde::Serialize;
use tripod_client::mars_wire;

use super::in_ms;
use crate::output::Table;
use crate::view::time;

/// A session. A contract: fields may be added, never renamed.
#[derive(Debug, Serialize)]
pub(crate) struct SessionView {
    session: String,
    labels: BTreeMap<String, String>,
    created_ms: Option<u64>,
    /// Since when nothing runs; `null`: something does.
    idle_since_ms: Option<u64>,
    graphs: u64,
    chunks: u64,
}

impl SessionView {
    pub(crate) fn of(session: mars_wire::SessionInfo) -> Self {
        Self {
            session: session.session_id,
            labels: session.labels.into_iter().collect(),
            created_ms: in_ms(session.created_time),
            idle_since_ms: in_ms(session.last_idle_time),
            graphs: session.graphs,
            chunks: session.chunks,
        }
    }
}

/// All of them, a line each.
pub(crate) fn render(sessions: &[SessionView], now_ms: u64) -> String {
    if sessions.is_empty() {
        return "no sessions".to_owned();
    }
    let mut table = Table::new(&["SESSION", "GRAPHS", "CHUNKS", "AGE", "IDLE FOR", "LABELS"]);
    for session in sessions {
        let labels = session.labels.iter().map(|(name, value)| format!("{name}={value}"));
        let since = |then: Option<u64>| then.map(|then| time::since(then, now_ms));
        table.row(vec![
            session.session.clone(),
            session.graphs.to_string(),
            session.chunks.to_string(),
            since(session.created_ms).unwrap_or_default(),
            since(session.idle_since_ms).unwrap_or_else(|| "busy".to_owned()),
            labels.collect::<Vec<_>>().join(" "),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_in_which_something_runs_is_busy() {
        let at = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        let session = |id: &str, idle| {
            SessionView::of(mars_wire::SessionInfo {
                session_id: id.to_owned(),
                labels: [("team".to_owned(), "a".to_owned())].into(),
                created_time: at(10),
                last_idle_time: idle,
                graphs: 2,
                chunks: 30,
            })
        };
        let shown = render(&[session("a", None), session("b", at(95))], 100_000);
        let wanted = "SESSION  GRAPHS  CHUNKS  AGE   IDLE FOR  LABELS\n\
                      a        2       30      90 s  busy      team=a\n\
                      b        2       30      90 s  5 s       team=a";
        assert_eq!(shown, wanted);
        assert_eq!(render(&[], 0), "no sessions");
    }
}
