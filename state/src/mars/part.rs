//! Sessions in pieces, for snapshots. What is derived is not in them.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::ids::TimeMs;
use crate::mars::chunk::ChunkMeta;
use crate::mars::graph::{self, Graph};
use crate::mars::ids::{GraphKind, GraphNo, MutableNo, Name, Place, SessionNo};
use crate::mars::mutable::Mutable;
use crate::mars::record::Mars;
use crate::mars::remember::Reply;
use crate::mars::session::Session;
use crate::mars::tileable::TileableMeta;
use crate::mars::upload::{Upload, UploadKey};

/// The first piece: how many of each kind follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(super) sessions: u64,
    pub(super) graphs: u64,
    pub(super) uploads: u64,
    pub(super) mutables: u64,
    pub(super) replies: u64,
}

/// One of the others, in the order of the variants: each kind by its numbers, and behind a graph and an upload what belongs
/// to it.
#[allow(clippy::enum_variant_names, reason = "a part of an upload is one of the pieces")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Part {
    Session(SessionNo, Session),
    Graph(GraphNo, Box<graph::Head>, Sizes),
    Text(Arc<str>),
    Shape(Arc<[i64]>),
    Index(Arc<[u64]>),
    Chunk(Place, ChunkMeta),
    Tileable(Name, TileableMeta),
    Upload { session: SessionNo, kind: GraphKind, key: Name, is_complete: bool, touched: TimeMs, parts: u64 },
    UploadPart(Bytes),
    Mutable(MutableNo, Mutable),
    Reply(u64, Reply),
}

/// How many pieces of each kind belong to a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sizes {
    pub(super) texts: u64,
    pub(super) shapes: u64,
    pub(super) indexes: u64,
    pub(super) chunks: u64,
    pub(super) tileables: u64,
}

impl Mars {
    pub(super) fn snapshot_head(&self) -> Head {
        Head {
            sessions: self.sessions.len() as u64,
            graphs: self.graphs.len() as u64,
            uploads: self.uploads.len() as u64,
            mutables: self.mutables.len() as u64,
            replies: self.replies.len() as u64,
        }
    }

    pub(super) fn snapshot_parts(&self) -> impl Iterator<Item = Part> + '_ {
        let sessions = self.sessions.iter().map(|(number, session)| {
            Part::Session(
                *number,
                Session { tally: crate::mars::session::Tally::default(), ..session.as_ref().clone() },
            )
        });
        let graphs = self.graphs.iter().flat_map(|(number, graph)| of_graph(*number, graph));
        let uploads = self.uploads.iter().flat_map(|(key, upload)| of_upload(key, upload));
        let mutables =
            self.mutables.iter().map(|(number, mutable)| Part::Mutable(*number, mutable.as_ref().clone()));
        let replies = self.replies.iter().map(|(index, reply)| Part::Reply(*index, reply.as_ref().clone()));
        sessions.chain(graphs).chain(uploads).chain(mutables).chain(replies)
    }
}

fn of_graph(number: GraphNo, graph: &Graph) -> impl Iterator<Item = Part> + '_ {
    let Graph { head, tables, chunks, tileables, .. } = graph;
    let sizes = Sizes {
        texts: tables.texts.len() as u64,
        shapes: tables.shapes.len() as u64,
        indexes: tables.indexes.len() as u64,
        chunks: chunks.len() as u64,
        tileables: tileables.len() as u64,
    };
    let texts = tables.texts.iter().map(|text| Part::Text(Arc::clone(text)));
    let shapes = tables.shapes.iter().map(|shape| Part::Shape(Arc::clone(shape)));
    let indexes = tables.indexes.iter().map(|index| Part::Index(Arc::clone(index)));
    let chunks = chunks.iter().map(|(place, chunk)| Part::Chunk(*place, chunk.clone()));
    let tileables =
        tileables.iter().map(|(key, tileable)| Part::Tileable(key.clone(), tileable.as_ref().clone()));
    let first = Part::Graph(number, Box::new(head.clone()), sizes);
    std::iter::once(first).chain(texts).chain(shapes).chain(indexes).chain(chunks).chain(tileables)
}

fn of_upload<'a>(key: &UploadKey, upload: &'a Upload) -> impl Iterator<Item = Part> + use<'a> {
    let (session, kind, key) = key.clone();
    let Upload { is_complete, touched, parts, .. } = upload;
    let (is_complete, touched, count) = (*is_complete, *touched, parts.len() as u64);
    let first = Part::Upload { session, kind, key, is_complete, touched, parts: count };
    std::iter::once(first).chain(parts.iter().map(|part| Part::UploadPart(part.clone())))
}
