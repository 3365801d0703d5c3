//! What the state shows, as messages.

use std::collections::HashMap;

use prost_types::Timestamp;
use tripod_proto::mars::v1 as pb;
use tripod_state::ids::TimeMs;

use crate::domain::{
    ChunkView, Column, Counts, GraphError, GraphState, GraphView, MutableState, MutableView, Scalar,
    SessionView, TileableKind, TileableView,
};
use crate::fields::Fields;

/// How chunks are laid out.
const ORDER: &str = "C";
/// The index of a frame: its rows are numbered.
const INDEX_KIND: &str = "range";
/// A band and a level, of which there is one each.
const BAND: &str = "numa-0";
const LEVEL: &str = "memory";
/// All subtasks of a graph are known when it begins: it has one stage.
const STAGE: &str = "0";

fn time(time: TimeMs) -> Timestamp {
    let seconds = i64::try_from(time.0 / 1_000).unwrap_or(i64::MAX);
    let nanos = i32::try_from(time.0 % 1_000 * 1_000_000).unwrap_or_default();
    Timestamp { seconds, nanos }
}

fn extents(extents: Vec<i64>) -> pb::Extents {
    pb::Extents { extents }
}

pub(crate) fn session(view: SessionView) -> pb::SessionInfo {
    pb::SessionInfo {
        session_id: view.session,
        labels: view.labels.into_iter().collect(),
        created_time: Some(time(view.created_ms)),
        last_idle_time: view.last_idle_ms.map(time),
        graphs: view.graphs,
        chunks: view.chunks,
    }
}

pub(crate) fn graph_state(state: GraphState) -> pb::GraphState {
    match state {
        GraphState::Unscheduled => pb::GraphState::Unscheduled,
        GraphState::Preparing => pb::GraphState::Preparing,
        GraphState::Running => pb::GraphState::Running,
        GraphState::Succeeded => pb::GraphState::Succeeded,
        GraphState::Failed => pb::GraphState::Failed,
        GraphState::Cancelling => pb::GraphState::Cancelling,
        GraphState::Cancelled => pb::GraphState::Cancelled,
    }
}

fn counts(counts: Counts) -> pb::SubtaskCounts {
    let Counts { pending, running, succeeded, errored, cancelled } = counts;
    pb::SubtaskCounts { pending, running, succeeded, errored, cancelled }
}

fn error(error: &GraphError) -> pb::GraphError {
    pb::GraphError {
        code: error.code.clone(),
        message: error.message.clone(),
        traceback: error.traceback.clone(),
        subtask_id: error.subtask.clone(),
        chunk_keys: error.chunks.clone(),
        worker_id: error.worker.clone(),
        attempt: error.attempt,
        tileable_key: error.tileable.clone(),
    }
}

/// A graph, with what is wanted of it. `nodes`: where its chunks are on their way.
pub(crate) fn graph(view: &GraphView, nodes: Vec<(String, &'static str)>, fields: &Fields) -> pb::GraphInfo {
    let progress = f64::from(view.progress_millionths) / 1_000_000.0;
    let stage = || {
        let subtasks = Some(counts(view.counts));
        vec![pb::Stage { stage_id: STAGE.to_owned(), subtasks, progress }]
    };
    let node_states: HashMap<String, String> =
        nodes.into_iter().map(|(key, state)| (key, state.to_owned())).collect();
    pb::GraphInfo {
        state: fields.only("state", graph_state(view.state).into()),
        progress: fields.only("progress", progress),
        start_time: fields.only("start_time", Some(time(view.start_ms))),
        end_time: fields.only("end_time", view.end_ms.map(time)),
        error: fields.only("error", view.error.as_ref().map(error)),
        targets: fields.only("targets", view.targets.clone()),
        subtask_counts: fields.only("subtask_counts", Some(counts(view.counts))),
        graph_size: fields.only("graph_size", view.graph_size),
        stages: if fields.want("stages") { stage() } else { Vec::new() },
        node_states: fields.only("node_states", node_states),
    }
}

fn kind(kind: TileableKind) -> pb::TileableKind {
    match kind {
        TileableKind::Tensor => pb::TileableKind::Tensor,
        TileableKind::Frame => pb::TileableKind::Frame,
    }
}

fn column(column: Column) -> pb::Column {
    pb::Column { name: column.name, dtype: column.element_type.into() }
}

/// What is known of the tileable of a key.
pub(crate) fn tileable(key: String, found: Option<TileableView>, fields: &Fields) -> pb::TileableMeta {
    let Some(view) = found else { return pb::TileableMeta { key, ..Default::default() } };
    let indexes = view
        .chunk_indexes
        .into_iter()
        .map(|index| extents(index.into_iter().map(|at| i64::try_from(at).unwrap_or(i64::MAX)).collect()));
    let index_kind = match view.kind {
        TileableKind::Frame => INDEX_KIND,
        TileableKind::Tensor => "",
    };
    pb::TileableMeta {
        found: true,
        key,
        kind: fields.only("kind", kind(view.kind).into()),
        name: fields.only("name", view.name),
        shape: fields.only("shape", Some(extents(view.shape))),
        dtype: fields.only("dtype", view.element_type.into()),
        order: fields.only("order", ORDER.to_owned()),
        nsplits: fields.only("nsplits", view.nsplits.into_iter().map(extents).collect()),
        chunk_keys: fields.only("chunk_keys", view.chunk_keys),
        chunk_indexes: fields.only("chunk_indexes", indexes.collect()),
        graph_key: fields.only("graph_key", view.graph_key),
        state: fields.only("state", view.state.word().to_owned()),
        nbytes: fields.only("nbytes", view.bytes),
        columns: fields.only("columns", view.columns.into_iter().map(column).collect()),
        index_kind: fields.only("index_kind", index_kind.to_owned()),
    }
}

/// What is known of the chunk of a key.
pub(crate) fn chunk(key: String, found: Option<ChunkView>, fields: &Fields) -> pb::ChunkMeta {
    let Some(view) = found else { return pb::ChunkMeta { key, ..Default::default() } };
    let place = |address: String| pb::ChunkPlace {
        worker_id: address,
        band: BAND.to_owned(),
        level: LEVEL.to_owned(),
    };
    let workers = view.stores.into_iter().map(|(_, address)| place(address));
    pb::ChunkMeta {
        found: true,
        key,
        index: fields.only("index", view.index),
        shape: fields.only("shape", Some(extents(view.shape))),
        dtype: fields.only("dtype", view.element_type.into()),
        nbytes: fields.only("nbytes", view.bytes),
        // An object is as large as what it holds, and a head of some hundred bytes.
        store_bytes: fields.only("store_bytes", view.bytes),
        workers: fields.only("workers", workers.collect()),
        version: fields.only("version", view.graph.0),
        object_id: fields.only("object_id", view.object.map(|object| object.0)),
    }
}

pub(crate) fn mutable_state(state: MutableState) -> pb::MutableState {
    match state {
        MutableState::Open => pb::MutableState::Open,
        MutableState::Sealing => pb::MutableState::Sealing,
        MutableState::Sealed => pb::MutableState::Sealed,
        MutableState::Lost => pb::MutableState::Lost,
    }
}

pub(crate) fn mutable(view: MutableView) -> pb::MutableInfo {
    let chunks = view.chunks.into_iter().map(|chunk| pb::MutableChunk {
        key: chunk.key,
        index: chunk.index,
        shape: chunk.shape,
        workers: chunk.stores,
    });
    let signed = |part: u64| i64::try_from(part).unwrap_or(i64::MAX);
    let splits = view.definition.nsplits.into_iter();
    pb::MutableInfo {
        id: view.mutable.0,
        epoch: view.epoch,
        name: view.name,
        nsplits: splits.map(|axis| extents(axis.into_iter().map(signed).collect())).collect(),
        chunks: chunks.collect(),
        state: mutable_state(view.state).into(),
        dtype: view.definition.element_type.into(),
        columns: view.definition.columns.into_iter().map(column).collect(),
        seal_timestamp_ns: view.seal_timestamp_ns,
        default_values: view.definition.defaults.into_iter().map(scalar).collect(),
    }
}

fn scalar(scalar: Scalar) -> pb::Scalar {
    let value = match scalar {
        Scalar::Boolean(value) => pb::scalar::Value::Boolean(value),
        Scalar::Integer(value) => pb::scalar::Value::Integer(value),
        Scalar::Fraction(bits) => pb::scalar::Value::Fraction(f64::from_bits(bits)),
        Scalar::Text(value) => pb::scalar::Value::Text(value),
    };
    pb::Scalar { value: Some(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_in_milliseconds_is_one_in_seconds_and_nanoseconds() {
        assert_eq!(time(TimeMs(1_002)), Timestamp { seconds: 1, nanos: 2_000_000 });
        assert_eq!(time(TimeMs(u64::MAX)).nanos, 615_000_000);
    }

    #[test]
    fn what_is_not_known_is_told_by_its_key_and_nothing_else() {
        let meta = tileable("a".to_owned(), None, &Fields::All);
        assert_eq!(meta, pb::TileableMeta { key: "a".to_owned(), ..Default::default() });
        let meta = chunk("a:0".to_owned(), None, &Fields::All);
        assert_eq!(meta, pb::ChunkMeta { key: "a:0".to_owned(), ..Default::default() });
    }
}
