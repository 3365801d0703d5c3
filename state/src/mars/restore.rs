//! Sessions from the pieces of a snapshot.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::ids::{FeatureLevel, JobId};
use crate::job::domains::{Domain, SnapshotSection};
use crate::level::Kind;
use crate::mars::chunk::{ChunkMeta, Stage};
use crate::mars::graph::{FETCHED_FIRST, Graph};
use crate::mars::ids::{Place, SessionNo};
use crate::mars::limits::{JOB_GRAPHS_MAX, JOB_MUTABLES_MAX, REMEMBERED_MAX, SESSIONS_MAX, UPLOAD_PARTS_MAX};
use crate::mars::part::{Head, Part, Sizes};
use crate::mars::record::Mars;
use crate::mars::upload::Upload;
use crate::snapshot::Malformed;
use crate::snapshot::read::Reader;
use crate::snapshot::record::{Piece, Record};
use crate::task::table::Table as Tasks;

impl Domain for Option<Box<Mars>> {
    const SECTION: SnapshotSection = SnapshotSection::BehindSessionOwners;
    const KEPT_SINCE: FeatureLevel = Kind::MARS_CREATE_SESSION.needs;

    fn is_empty(&self) -> bool {
        self.is_none()
    }

    fn digest<H: Hasher>(&self, hasher: &mut H) {
        if let Some(mars) = self {
            mars.hash(hasher);
        }
    }

    fn bytes(&self) -> u64 {
        self.as_ref().map_or(0, |mars| mars.bytes())
    }

    fn recounted(&self) -> u64 {
        self.as_ref().map_or(0, |mars| mars.recounted())
    }

    fn records(&self, job: JobId) -> impl Iterator<Item = Piece> {
        self.iter().flat_map(move |mars| {
            let head = Piece::Mars { job, head: Box::new(mars.snapshot_head()) };
            std::iter::once(head).chain(mars.snapshot_parts().map(|part| Piece::MarsPart(Box::new(part))))
        })
    }

    fn job_of(record: &Piece) -> Option<JobId> {
        let Piece::Mars { job, .. } = record else { return None };
        Some(*job)
    }

    fn restore<I: Iterator<Item = Record>>(
        &mut self,
        _: &Tasks,
        record: Piece,
        reader: &mut Reader<I>,
    ) -> Result<(), Malformed> {
        let Piece::Mars { head, .. } = record else { return reader.refuse("not sessions") };
        let Head { sessions, graphs, uploads, mutables, replies } = *head;
        let counts = [
            (sessions, SESSIONS_MAX),
            (graphs, JOB_GRAPHS_MAX + JOB_MUTABLES_MAX),
            (mutables, JOB_MUTABLES_MAX),
            (replies, REMEMBERED_MAX),
        ];
        reader.check(self.is_none() && counts.iter().all(|(count, most)| count <= most))?;
        let mut mars = Mars::default();
        for _ in 0..sessions {
            let Part::Session(number, session) = next(reader)? else {
                return reader.refuse("not a session of these");
            };
            let ascending = mars.sessions.get_max().is_none_or(|(last, _)| *last < number);
            let is_new = mars.session_names.insert(session.name.clone(), number).is_none();
            reader.check(ascending && is_new)?;
            mars.sessions.insert(number, Arc::new(session));
        }
        for _ in 0..graphs {
            let Part::Graph(number, head, sizes) = next(reader)? else { return reader.refuse("not a graph") };
            let ascending = mars.graphs.get_max().is_none_or(|(last, _)| *last < number);
            let name = (head.session, head.kind, head.key.clone());
            reader.check(ascending && mars.has(head.session) && !mars.graph_names.contains_key(&name))?;
            let graph = graph(reader, Graph::new(*head), sizes)?;
            mars.put_graph(number, graph);
        }
        for _ in 0..uploads {
            let Part::Upload { session, kind, key, is_complete, touched, parts } = next(reader)? else {
                return reader.refuse("not an upload");
            };
            let key = (session, kind, key);
            let ascending = mars.uploads.get_max().is_none_or(|(last, _)| *last < key);
            reader.check(ascending && mars.has(session) && parts <= UPLOAD_PARTS_MAX)?;
            let mut upload = Upload { is_complete, ..Upload::new(touched) };
            for _ in 0..parts {
                let Part::UploadPart(part) = next(reader)? else {
                    return reader.refuse("not a part of an upload");
                };
                upload.add(part);
            }
            mars.put_upload(key, upload);
        }
        for _ in 0..mutables {
            let Part::Mutable(number, mutable) = next(reader)? else { return reader.refuse("not a mutable") };
            let ascending = mars.mutables.get_max().is_none_or(|(last, _)| *last < number);
            let name = (mutable.session, mutable.name.clone());
            reader
                .check(ascending && mars.has(mutable.session) && !mars.mutable_names.contains_key(&name))?;
            mars.put_mutable(number, mutable);
        }
        for _ in 0..replies {
            let Part::Reply(index, reply) = next(reader)? else { return reader.refuse("not an answer") };
            let in_place = mars.replies.restore(index, reply);
            reader.check(in_place)?;
        }
        *self = Some(Box::new(mars));
        Ok(())
    }
}

impl Mars {
    fn has(&self, session: SessionNo) -> bool {
        self.sessions.contains_key(&session)
    }
}

fn next<I: Iterator<Item = Record>>(reader: &mut Reader<I>) -> Result<Part, Malformed> {
    match reader.next()? {
        Piece::MarsPart(part) => Ok(*part),
        _ => reader.refuse("not part of sessions"),
    }
}

/// What belongs to a graph.
fn graph<I: Iterator<Item = Record>>(
    reader: &mut Reader<I>,
    mut graph: Graph,
    sizes: Sizes,
) -> Result<Graph, Malformed> {
    for _ in 0..sizes.texts {
        let Part::Text(text) = next(reader)? else { return reader.refuse("not a text") };
        graph.tables.add_text(text);
    }
    for _ in 0..sizes.shapes {
        let Part::Shape(shape) = next(reader)? else { return reader.refuse("not a shape") };
        graph.tables.add_shape(shape);
    }
    for _ in 0..sizes.indexes {
        let Part::Index(index) = next(reader)? else { return reader.refuse("not an index") };
        graph.tables.add_index(index);
    }
    for _ in 0..sizes.chunks {
        let Part::Chunk(place, chunk) = next(reader)? else { return reader.refuse("not a chunk") };
        reader.check(
            graph.tables.have(&chunk) && chunk.suffix.is_canonical() && graph.is_next(place, &chunk),
        )?;
        graph.add_chunk(place, chunk);
    }
    let inputs = graph.chunks.values().filter_map(|chunk| chunk.work.as_ref()).flat_map(|work| &work.inputs);
    let mut inputs = inputs;
    let known = inputs.all(|input| graph.chunks.contains_key(input));
    reader.check(known && graph.head.next <= graph.nodes())?;
    for _ in 0..sizes.tileables {
        let Part::Tileable(key, tileable) = next(reader)? else { return reader.refuse("not a tileable") };
        let ascending = graph.tileables.get_max().is_none_or(|(last, _)| *last < key);
        reader.check(ascending)?;
        graph.tileables.insert(key, Arc::new(tileable));
    }
    Ok(graph)
}

impl Graph {
    /// Whether a chunk stands where the next one does.
    fn is_next(&self, place: Place, chunk: &ChunkMeta) -> bool {
        let operation = chunk.work.as_ref().and_then(|work| work.operation);
        let runs = operation.is_some_and(|operation| !self.running.contains_key(&operation));
        if chunk.stage == Stage::Fetched {
            return place == self.next_fetched() && !self.fetched.contains_key(&self.tables.key(chunk));
        }
        place.0 < FETCHED_FIRST
            && place.0 == self.nodes()
            && (chunk.stage == Stage::Running) == operation.is_some()
            && (operation.is_none() || runs)
    }
}
