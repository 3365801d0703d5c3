//! `tripod mars metas`.

use serde::Serialize;
use tripod_client::mars_wire::{self, ElementType, TileableKind};

use super::shape;
use crate::output::Table;

/// A tileable. A contract: fields may be added, never renamed.
#[derive(Debug, Serialize)]
pub(crate) struct TileableMetaView {
    key: String,
    found: bool,
    kind: &'static str,
    name: String,
    /// -1: only execution tells.
    shape: Vec<i64>,
    dtype: &'static str,
    nsplits: Vec<Vec<i64>>,
    chunks: Vec<String>,
    graph: String,
    state: String,
    bytes: Option<u64>,
}

/// A chunk. A contract: fields may be added, never renamed.
#[derive(Debug, Serialize)]
pub(crate) struct ChunkMetaView {
    key: String,
    found: bool,
    index: Vec<u64>,
    shape: Vec<i64>,
    dtype: &'static str,
    bytes: Option<u64>,
    /// The addresses of object stores that have it.
    workers: Vec<String>,
    object: Option<u64>,
}

fn dtype(dtype: ElementType) -> &'static str {
    match dtype {
        ElementType::Unspecified => "",
        ElementType::Bool => "bool",
        ElementType::I32 => "i32",
        ElementType::I64 => "i64",
        ElementType::F32 => "f32",
        ElementType::F64 => "f64",
        ElementType::Text => "text",
    }
}

impl TileableMetaView {
    pub(crate) fn of(meta: mars_wire::TileableMeta) -> Self {
        let kind = match meta.kind() {
            TileableKind::Unspecified => "",
            TileableKind::Tensor => "tensor",
            TileableKind::Frame => "frame",
        };
        Self {
            found: meta.found,
            kind,
            dtype: dtype(meta.dtype()),
            key: meta.key,
            name: meta.name,
            shape: meta.shape.unwrap_or_default().extents,
            nsplits: meta.nsplits.into_iter().map(|axis| axis.extents).collect(),
            chunks: meta.chunk_keys,
            graph: meta.graph_key,
            state: meta.state,
            bytes: meta.nbytes,
        }
    }
}

impl ChunkMetaView {
    pub(crate) fn of(meta: mars_wire::ChunkMeta) -> Self {
        Self {
            found: meta.found,
            dtype: dtype(meta.dtype()),
            key: meta.key,
            index: meta.index,
            shape: meta.shape.unwrap_or_default().extents,
            bytes: meta.nbytes,
            workers: meta.workers.into_iter().map(|place| place.worker_id).collect(),
            object: meta.object_id,
        }
    }
}

fn number(number: Option<u64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

fn shown(extents: &[i64]) -> String {
    shape(Some(&mars_wire::Extents { extents: extents.to_vec() }))
}

/// Tileables, a line each.
pub(crate) fn render_tileables(metas: &[TileableMetaView]) -> String {
    let mut table = Table::new(&["KEY", "KIND", "SHAPE", "DTYPE", "CHUNKS", "GRAPH", "STATE", "BYTES"]);
    for meta in metas {
        if !meta.found {
            table.row(vec![meta.key.clone(), "unknown".to_owned()]);
            continue;
        }
        table.row(vec![
            meta.key.clone(),
            meta.kind.to_owned(),
            shown(&meta.shape),
            meta.dtype.to_owned(),
            meta.chunks.len().to_string(),
            meta.graph.clone(),
            meta.state.clone(),
            number(meta.bytes),
        ]);
    }
    table.render()
}

/// Chunks, a line each.
pub(crate) fn render_chunks(metas: &[ChunkMetaView]) -> String {
    let mut table = Table::new(&["KEY", "SHAPE", "DTYPE", "BYTES", "OBJECT", "WORKERS"]);
    for meta in metas {
        if !meta.found {
            table.row(vec![meta.key.clone(), "unknown".to_owned()]);
            continue;
        }
        table.row(vec![
            meta.key.clone(),
            shown(&meta.shape),
            meta.dtype.to_owned(),
            number(meta.bytes),
            number(meta.object),
            meta.workers.join(" "),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_said_and_extents_that_nobody_knows_are_a_question() {
        let known = mars_wire::ChunkMeta {
            found: true,
            key: "a:0.1".into(),
            shape: Some(mars_wire::Extents { extents: vec![4, -1] }),
            dtype: ElementType::F64.into(),
            nbytes: Some(64),
            workers: vec![mars_wire::ChunkPlace { worker_id: "10.0.0.1:9".into(), ..Default::default() }],
            object_id: Some(3),
            ..Default::default()
        };
        let unknown = mars_wire::ChunkMeta { key: "b".into(), ..Default::default() };
        let shown = render_chunks(&[known, unknown].map(ChunkMetaView::of));
        let wanted = "KEY    SHAPE    DTYPE  BYTES  OBJECT  WORKERS\n\
                      a:0.1  [4, ?]   f64    64     3       10.0.0.1:9\n\
                      b      unknown";
        assert_eq!(shown, wanted);
        let tileable = mars_wire::TileableMeta {
            found: true,
            key: "a".into(),
            kind: TileableKind::Tensor.into(),
            chunk_keys: vec!["a:0".into(), "a:1".into()],
            state: "stored".into(),
            ..Default::default()
        };
        let shown = render_tileables(&[TileableMetaView::of(tileable)]);
        assert!(shown.ends_with("a    tensor  []            2              stored"), "{shown}");
    }
}
