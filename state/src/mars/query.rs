//! Sessions and graphs as they are shown.

use bytes::Bytes;

use crate::command::Scope;
use crate::fault::Fault;
use crate::mars::chunk::Stage;
use crate::mars::command::Options;
use crate::mars::graph::{Counts, Graph, GraphState};
use crate::mars::ids::{GraphName, GraphNo};
use crate::mars::limits::{NODE_STATES_MAX, PAGE_MAX};
use crate::mars::record::Mars;
use crate::mars::refusal::Refusal;
use crate::mars::session::Session;
use crate::mars::view::{ChunkState, GraphView, SessionView, Totals};
use crate::state::State;

impl State {
    pub(super) fn mars_of(&self, scope: Scope) -> Result<Option<&Mars>, Fault> {
        Ok(self.jobs.scoped(scope)?.domains.mars.as_deref())
    }

    /// As [`Self::mars_of`], for what asks about a session.
    pub(super) fn mars_with(&self, scope: Scope, session: &str) -> Result<&Mars, Fault> {
        let unknown = || Refusal::SessionUnknown { session: session.to_owned() };
        Ok(self.mars_of(scope)?.ok_or_else(unknown)?)
    }

    /// A session.
    ///
    /// # Errors
    /// The scope's faults, or that there is no such session.
    pub fn mars_session(&self, scope: Scope, session: &str) -> Result<SessionView, Fault> {
        let mars = self.mars_with(scope, session)?;
        let number = mars.session(session)?;
        let unknown = || Refusal::SessionUnknown { session: session.to_owned() };
        Ok(session_view(mars.sessions.get(&number).ok_or_else(unknown)?))
    }

    /// At most 1,000 sessions, by name, after the one named.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn mars_sessions(&self, scope: Scope, after: Option<&str>) -> Result<Vec<SessionView>, Fault> {
        let Some(mars) = self.mars_of(scope)? else { return Ok(Vec::new()) };
        let names =
            mars.session_names.iter().filter(|(name, _)| after.is_none_or(|after| name.as_str() > after));
        let sessions = names.filter_map(|(_, number)| mars.sessions.get(number));
        Ok(sessions.take(PAGE_MAX).map(|session| session_view(session)).collect())
    }

    /// How much a job's sessions hold.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn mars_totals(&self, scope: Scope) -> Result<Totals, Fault> {
        let Some(mars) = self.mars_of(scope)? else { return Ok(Totals::default()) };
        let tally = mars.tally;
        Ok(Totals {
            sessions: mars.sessions.len() as u64,
            graphs: tally.graphs,
            running: tally.running,
            chunks: tally.chunks,
            tasks: mars.tasks.len() as u64,
            uploads: tally.uploads,
            upload_bytes: tally.upload_bytes,
            mutables: tally.mutables,
            remembered: mars.replies.len() as u64,
        })
    }

    /// A graph: one that is there, or whose bytes are being uploaded.
    ///
    /// # Errors
    /// The scope's faults, or that the session or the graph is not there.
    pub fn mars_graph(&self, scope: Scope, graph: &GraphName) -> Result<GraphView, Fault> {
        let mars = self.mars_with(scope, &graph.session)?;
        if let Some((number, found)) = mars.find_graph(graph)? {
            return Ok(graph_view(number, found));
        }
        let session = mars.session(&graph.session)?;
        let upload = mars.uploads.get(&(session, graph.kind, graph.key.as_str().into()));
        let unknown = || Refusal::GraphUnknown { kind: graph.kind, key: graph.key.clone() };
        let upload = upload.ok_or_else(unknown)?;
        Ok(GraphView {
            graph: None,
            kind: graph.kind,
            key: graph.key.clone(),
            state: GraphState::Preparing,
            progress_millionths: 0,
            start_ms: upload.touched,
            end_ms: None,
            error: None,
            targets: Vec::new(),
            counts: Counts::default(),
            graph_size: 0,
            options: Options::default(),
        })
    }

    /// At most 1,000 graphs of a session, by kind and key, after the one named.
    ///
    /// # Errors
    /// The scope's faults, or that the session is not there.
    pub fn mars_graphs(
        &self,
        scope: Scope,
        session: &str,
        after: Option<&GraphName>,
    ) -> Result<Vec<GraphView>, Fault> {
        let mars = self.mars_with(scope, session)?;
        let number = mars.session(session)?;
        let behind =
            |kind, key: &str| after.is_none_or(|after| (kind, key) > (after.kind, after.key.as_str()));
        let named = mars
            .graph_names
            .iter()
            .filter(|((of, kind, key), _)| *of == number && behind(*kind, key.as_str()));
        let found = named.filter_map(|(_, graph)| Some(graph_view(*graph, mars.graphs.get(graph)?)));
        Ok(found.take(PAGE_MAX).collect())
    }

    /// Where at most 10,000 of a graph's chunks are on their way, by their places.
    ///
    /// # Errors
    /// The scope's faults, or that the session or the graph is not there.
    pub fn mars_node_states(
        &self,
        scope: Scope,
        graph: &GraphName,
    ) -> Result<Vec<(String, ChunkState)>, Fault> {
        let (_, graph) = self.mars_with(scope, &graph.session)?.graph(graph)?;
        let made = graph.chunks.iter().filter(|(_, chunk)| chunk.stage != Stage::Fetched);
        let states = made.map(|(_, chunk)| (graph.tables.key_text(chunk), state_of(chunk.stage)));
        Ok(states.take(NODE_STATES_MAX).collect())
    }

    /// The parts of an upload whose last one came. Each is a part of the node's own memory: none is copied.
    ///
    /// # Errors
    /// The scope's faults, or that the session or such an upload is not there.
    pub fn mars_upload(&self, scope: Scope, graph: &GraphName) -> Result<Vec<Bytes>, Fault> {
        let mars = self.mars_with(scope, &graph.session)?;
        let session = mars.session(&graph.session)?;
        let upload = mars.uploads.get(&(session, graph.kind, graph.key.as_str().into()));
        let upload = upload.filter(|upload| upload.is_complete);
        let not_open = || Refusal::NotOpen { kind: graph.kind, key: graph.key.clone() };
        Ok(upload.ok_or_else(not_open)?.parts.iter().cloned().collect())
    }
}

fn session_view(session: &Session) -> SessionView {
    SessionView {
        session: session.name.as_str().to_owned(),
        labels: session.labels.clone(),
        created_ms: session.created,
        last_idle_ms: (session.tally.running == 0).then_some(session.last_idle),
        graphs: session.tally.graphs,
        chunks: session.tally.chunks,
    }
}

fn graph_view(number: GraphNo, graph: &Graph) -> GraphView {
    let head = &graph.head;
    GraphView {
        graph: Some(number),
        kind: head.kind,
        key: head.key.as_str().to_owned(),
        state: head.state,
        progress_millionths: graph.progress_millionths(),
        start_ms: head.started,
        end_ms: head.ended,
        error: head.error.as_deref().cloned(),
        targets: head.targets.iter().map(|key| key.as_str().to_owned()).collect(),
        counts: graph.counts,
        graph_size: u64::from(graph.nodes()),
        options: head.options.clone(),
    }
}

pub(super) fn state_of(stage: Stage) -> ChunkState {
    match stage {
        Stage::Pending => ChunkState::Pending,
        Stage::Running => ChunkState::Running,
        Stage::Succeeded | Stage::Fetched => ChunkState::Succeeded,
        Stage::Errored => ChunkState::Errored,
        Stage::Cancelled => ChunkState::Cancelled,
    }
}
