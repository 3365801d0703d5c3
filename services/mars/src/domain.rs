//! The state's words for sessions, and all questions to it, in one place.

use bytes::Bytes;
use tripod_state::ids::{JobId, TimeMs};
use tripod_state::{Fault, Scope, State};

pub(crate) use tripod_state::ids::DurationMs;
pub(crate) use tripod_state::mars::{
    Answer, Chunk, ChunkView, Column, Command, Counts, Decision, Definition, Digest, Graph, GraphError,
    GraphKind, GraphName, GraphNo, GraphState, GraphView, Input, MutableEntry, MutableNo, MutableState,
    MutableView, Options, Part, Place, Refusal, Request, Scalar, SealOrder, SessionView, Tileable,
    TileableKind, TileableView, arrange, key_says_index, limits, mutable_chunk_numbers,
};
pub(crate) use tripod_state::ray::Needs;
pub(crate) use tripod_state::ray::ids::ObjectId;
pub(crate) use tripod_state::ray::limits::RESOURCE_MILLI_MAX;

use crate::chunk_keys::ChunkKeys;

/// What a client asks, as it is replicated.
pub(crate) fn asks(scope: Scope, request_id: String, request: Request) -> tripod_state::Command {
    tripod_state::Command::Mars(Command::Ask { scope, request_id, request })
}

/// Whether a job has sessions, or has had some.
pub(crate) fn has_sessions(state: &State, job: JobId) -> bool {
    state.mars_jobs().contains(&job)
}

/// What is to be proposed now.
pub(crate) fn due(state: &State, job: JobId, now: TimeMs, most: usize) -> Vec<Decision> {
    let mut due = state.mars_due(job, now);
    due.truncate(most);
    due
}

/// Whether a job has something that is written in place.
pub(crate) fn has_mutables(state: &State, job: JobId) -> bool {
    let scope = Scope { job, service: None };
    state.mars_totals(scope).is_ok_and(|totals| totals.mutables > 0)
}

/// What stores are to seal now. All chunks of what is being sealed are looked at: it is for a fork of the state.
pub(crate) fn seal_orders(state: &State, job: JobId) -> Vec<SealOrder> {
    state.mars_seal_orders(job)
}

/// Whether the scheduler knows what became of each of these objects.
pub(crate) fn came_to_be(state: &State, job: JobId, objects: &[ObjectId]) -> bool {
    state.mars_came_to_be(job, objects)
}

pub(crate) fn has_session(state: &State, scope: Scope, session: &str) -> Result<bool, Fault> {
    match state.mars_session(scope, session) {
        Ok(_) => Ok(true),
        Err(Fault::Mars(Refusal::SessionUnknown { .. })) => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// All sessions, by their ids. The state shows a page at a time, and has a few pages at most.
pub(crate) fn sessions(state: &State, scope: Scope) -> Result<Vec<SessionView>, Fault> {
    let mut all: Vec<SessionView> = Vec::new();
    loop {
        let after = all.last().map(|last| last.session.as_str());
        let page = state.mars_sessions(scope, after)?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

/// The ids of all sessions; of a job that is not there: none.
pub(crate) fn session_names(state: &State, job: JobId) -> Vec<String> {
    let scope = Scope { job, service: None };
    let sessions = sessions(state, scope).unwrap_or_default();
    sessions.into_iter().map(|session| session.session).collect()
}

pub(crate) fn graph(state: &State, scope: Scope, graph: &GraphName) -> Result<GraphView, Fault> {
    state.mars_graph(scope, graph)
}

/// Where a graph's chunks are on their way, in words. Of one whose bytes are coming: none.
pub(crate) fn node_states(
    state: &State,
    scope: Scope,
    graph: &GraphName,
) -> Result<Vec<(String, &'static str)>, Fault> {
    match state.mars_node_states(scope, graph) {
        Ok(states) => Ok(states.into_iter().map(|(key, state)| (key, state.word())).collect()),
        Err(Fault::Mars(Refusal::GraphUnknown { .. })) => Ok(Vec::new()),
        Err(fault) => Err(fault),
    }
}

/// The parts of a graph whose last one has come.
pub(crate) fn upload(state: &State, scope: Scope, graph: &GraphName) -> Result<Vec<Bytes>, Fault> {
    state.mars_upload(scope, graph)
}

pub(crate) fn tileables(
    state: &State,
    scope: Scope,
    session: &str,
    keys: &[String],
) -> Result<Vec<Option<TileableView>>, Fault> {
    state.mars_tileables(scope, session, keys)
}

pub(crate) fn chunks(
    state: &State,
    scope: Scope,
    session: &str,
    keys: &[String],
) -> Result<Vec<Option<ChunkView>>, Fault> {
    state.mars_chunks(scope, session, keys)
}

pub(crate) fn mutable(state: &State, scope: Scope, session: &str, name: &str) -> Result<MutableView, Fault> {
    state.mars_mutable(scope, session, name)
}

/// How far mutables are; `None`: there is none of that number.
pub(crate) fn mutable_states(
    state: &State,
    scope: Scope,
    mutables: &[MutableNo],
) -> Result<Vec<Option<MutableState>>, Fault> {
    state.mars_mutable_states(scope, mutables)
}

/// The mutable of a session that has a chunk of that key.
pub(crate) fn mutable_of_chunk(
    state: &State,
    scope: Scope,
    session: &str,
    chunk: &str,
    keys: &ChunkKeys,
) -> Result<MutableView, Fault> {
    let entries = state.mars_mutable_entries(scope, session)?;
    for entry in keys.candidates(scope.job, session, &entries, chunk) {
        let view = state.mars_mutable(scope, session, &entry.name)?;
        if view.chunks.iter().any(|known| known.key == chunk) {
            return Ok(view);
        }
    }
    let shown = chunk.chars().take(limits::KEY_BYTES_MAX).collect();
    Err(Fault::Mars(Refusal::MutableUnknown { name: shown }))
}
