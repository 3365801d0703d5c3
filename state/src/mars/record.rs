//! The sessions of one job, with all that they hold.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crate::ids::TimeMs;
use crate::mars::chunk::ChunkMeta;
use crate::mars::graph::{Graph, GraphState};
use crate::mars::ids::{GraphKind, GraphName, GraphNo, MutableNo, Name, Place, SessionNo};
use crate::mars::key::ChunkKey;
use crate::mars::limits::UPLOAD_IDLE_MS;
use crate::mars::mutable::Mutable;
use crate::mars::refusal::Refusal;
use crate::mars::remember::Replies;
use crate::mars::session::{Session, Tally};
use crate::mars::upload::{Upload, UploadKey};
use crate::memory::{Edit, Weighed, of_map, of_set};
use crate::ray::ids::OperationId;

type ChunkEntry = (SessionNo, ChunkKey, GraphNo, Place);

/// Begins with the first session, and is forgotten with the last one. Cloning is O(1).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Mars {
    pub(crate) sessions: Weighed<SessionNo, Arc<Session>>,
    pub(crate) graphs: Weighed<GraphNo, Arc<Graph>>,
    pub(crate) uploads: Weighed<UploadKey, Arc<Upload>>,
    pub(crate) mutables: Weighed<MutableNo, Arc<Mutable>>,
    pub(crate) replies: Replies,
    // Derived.
    pub(crate) session_names: OrdMap<Name, SessionNo>,
    pub(crate) graph_names: OrdMap<(SessionNo, GraphKind, Name), GraphNo>,
    pub(crate) mutable_names: OrdMap<(SessionNo, Name), MutableNo>,
    /// Of graphs that are committed.
    pub(crate) chunk_keys: OrdSet<ChunkEntry>,
    /// The same of tileables.
    pub(crate) tileable_keys: OrdSet<(SessionNo, Name, GraphNo)>,
    /// The tasks that the scheduler has.
    pub(crate) tasks: OrdMap<OperationId, GraphNo>,
    /// Graphs that have not ended.
    pub(crate) active: OrdSet<GraphNo>,
    /// Those that end, or go, by time.
    pub(crate) expiring: OrdSet<(TimeMs, GraphNo)>,
    pub(crate) tally: Tally,
}

impl Mars {
    pub(crate) fn session(&self, session: &str) -> Result<SessionNo, Refusal> {
        let found = self.session_names.get(session).copied();
        found.ok_or_else(|| Refusal::SessionUnknown { session: session.to_owned() })
    }

    pub(crate) fn graph(&self, name: &GraphName) -> Result<(GraphNo, &Graph), Refusal> {
        let unknown = || Refusal::GraphUnknown { kind: name.kind, key: name.key.clone() };
        self.find_graph(name)?.ok_or_else(unknown)
    }

    pub(crate) fn find_graph(&self, name: &GraphName) -> Result<Option<(GraphNo, &Graph)>, Refusal> {
        let session = self.session(&name.session)?;
        let number = self.graph_names.get(&(session, name.kind, name.key.as_str().into())).copied();
        Ok(number.and_then(|number| Some((number, self.graphs.get(&number)?.as_ref()))))
    }

    pub(crate) fn graph_mut(&mut self, graph: GraphNo) -> Option<Edit<'_, Graph>> {
        let (found, total) = self.graphs.slot(&graph)?;
        Some(Edit::new(Arc::make_mut(found), total))
    }

    pub(crate) fn session_mut(&mut self, session: SessionNo) -> Option<Edit<'_, Session>> {
        let (found, total) = self.sessions.slot(&session)?;
        Some(Edit::new(Arc::make_mut(found), total))
    }

    pub(crate) fn mutable_mut(&mut self, mutable: MutableNo) -> Option<Edit<'_, Mutable>> {
        let (found, total) = self.mutables.slot(&mutable)?;
        Some(Edit::new(Arc::make_mut(found), total))
    }

    /// The newest chunk of that key: the one that was made, or of another graph what this one still has.
    pub(crate) fn chunk(&self, session: SessionNo, key: &str) -> Option<(&Graph, Place, &ChunkMeta)> {
        let key = ChunkKey::of(key);
        let first = (session, key.clone(), GraphNo(0), Place(0));
        let last = (session, key, GraphNo(u64::MAX), Place(u32::MAX));
        let (_, _, graph, place) = self.chunk_keys.range(first..=last).next_back()?;
        let graph = self.graphs.get(graph)?;
        Some((graph, *place, graph.chunks.get(place)?))
    }

    /// The newest graph that has a tileable of that key.
    pub(crate) fn graph_of_tileable(&self, session: SessionNo, key: &str) -> Option<GraphNo> {
        let name = Name::from(key);
        let (first, last) = ((session, name.clone(), GraphNo(0)), (session, name, GraphNo(u64::MAX)));
        self.tileable_keys.range(first..=last).next_back().map(|(_, _, graph)| *graph)
    }

    /// Counts something of a session, in it and in all.
    pub(crate) fn count(&mut self, session: SessionNo, change: impl Fn(&mut Tally)) {
        change(&mut self.tally);
        if let Some(mut session) = self.session_mut(session) {
            change(&mut session.tally);
        }
    }

    /// Adds a graph, or puts another one in its place.
    pub(crate) fn put_graph(&mut self, number: GraphNo, graph: Graph) {
        self.take_graph(number);
        let session = graph.head.session;
        self.graph_names.insert((session, graph.head.kind, graph.head.key.clone()), number);
        if graph.head.state != GraphState::Preparing {
            for (place, chunk) in graph.chunks.iter().filter(|(_, chunk)| chunk.is_listed()) {
                self.chunk_keys.insert((session, graph.tables.key(chunk), number, *place));
            }
            for key in graph.tileables.keys() {
                self.tileable_keys.insert((session, key.clone(), number));
            }
        }
        for operation in graph.running.keys() {
            self.tasks.insert(*operation, number);
        }
        self.note_times(number, &graph, true);
        self.count_graph(&graph, true);
        self.graphs.insert(number, Arc::new(graph));
    }

    /// Takes a graph out.
    pub(crate) fn take_graph(&mut self, number: GraphNo) -> Option<Arc<Graph>> {
        let graph = self.graphs.remove(&number)?;
        let session = graph.head.session;
        self.graph_names.remove(&(session, graph.head.kind, graph.head.key.clone()));
        if graph.head.state != GraphState::Preparing {
            for (place, chunk) in &graph.chunks {
                self.chunk_keys.remove(&(session, graph.tables.key(chunk), number, *place));
            }
            for key in graph.tileables.keys() {
                self.tileable_keys.remove(&(session, key.clone(), number));
            }
        }
        for operation in graph.running.keys() {
            self.tasks.remove(operation);
        }
        self.note_times(number, &graph, false);
        self.count_graph(&graph, false);
        Some(graph)
    }

    /// Changes where a graph stands, and what depends on that.
    pub(crate) fn change_head(&mut self, number: GraphNo, change: impl FnOnce(&mut Graph)) {
        let Some(before) = self.graphs.get(&number).cloned() else { return };
        self.note_times(number, &before, false);
        let waiting = before.waiting_bytes;
        let was_running = is_running(&before);
        let session = before.head.session;
        drop(before);
        if let Some(mut graph) = self.graph_mut(number) {
            change(&mut graph);
        }
        self.forget_let_go(number);
        let Some(after) = self.graphs.get(&number).cloned() else { return };
        self.note_times(number, &after, true);
        let (now_waiting, runs) = (after.waiting_bytes, is_running(&after));
        self.count(session, |tally| {
            tally.waiting_bytes = tally.waiting_bytes.saturating_sub(waiting).saturating_add(now_waiting);
            tally.running = tally.running - u64::from(was_running) + u64::from(runs);
        });
    }

    /// Chunks of others that a graph has given up are not found in it any more: whoever asks is told of those who have them.
    pub(crate) fn forget_let_go(&mut self, number: GraphNo) {
        let Some((graph, _)) = self.graphs.slot(&number).filter(|(graph, _)| !graph.let_go.is_empty()) else {
            return;
        };
        let graph = Arc::make_mut(graph);
        let session = graph.head.session;
        for place in std::mem::take(&mut graph.let_go) {
            if let Some(chunk) = graph.chunks.get(&place) {
                self.chunk_keys.remove(&(session, graph.tables.key(chunk), number, place));
            }
        }
    }

    fn note_times(&mut self, number: GraphNo, graph: &Graph, is_there: bool) {
        let times = [graph.deadline(), graph.expiry(UPLOAD_IDLE_MS)];
        for time in times.into_iter().flatten() {
            if is_there {
                self.expiring.insert((time, number));
            } else {
                self.expiring.remove(&(time, number));
            }
        }
        if is_there && !graph.head.state.is_terminal() {
            self.active.insert(number);
        } else {
            self.active.remove(&number);
        }
    }

    fn count_graph(&mut self, graph: &Graph, is_there: bool) {
        let (chunks, waiting, runs) =
            (graph.chunks.len() as u64, graph.waiting_bytes, u64::from(is_running(graph)));
        self.count(graph.head.session, |tally| {
            let counts = [
                (&mut tally.graphs, 1),
                (&mut tally.chunks, chunks),
                (&mut tally.waiting_bytes, waiting),
                (&mut tally.running, runs),
            ];
            for (count, by) in counts {
                *count = if is_there { *count + by } else { *count - by };
            }
        });
    }

    pub(crate) fn put_mutable(&mut self, number: MutableNo, mutable: Mutable) {
        let session = mutable.session;
        self.mutable_names.insert((session, mutable.name.clone()), number);
        self.mutables.insert(number, Arc::new(mutable));
        self.count(session, |tally| tally.mutables += 1);
    }

    pub(crate) fn take_mutable(&mut self, number: MutableNo) -> Option<Arc<Mutable>> {
        let mutable = self.mutables.remove(&number)?;
        let name = (mutable.session, mutable.name.clone());
        if self.mutable_names.get(&name) == Some(&number) {
            self.mutable_names.remove(&name);
        }
        self.count(mutable.session, |tally| tally.mutables -= 1);
        Some(mutable)
    }

    pub(crate) fn put_upload(&mut self, key: UploadKey, upload: Upload) {
        self.take_upload(&key);
        let (session, bytes) = (key.0, upload.bytes);
        self.uploads.insert(key, Arc::new(upload));
        self.count(session, |tally| {
            tally.uploads += 1;
            tally.upload_bytes += bytes;
        });
    }

    pub(crate) fn take_upload(&mut self, key: &UploadKey) -> Option<Arc<Upload>> {
        let upload = self.uploads.remove(key)?;
        self.count(key.0, |tally| {
            tally.uploads -= 1;
            tally.upload_bytes -= upload.bytes;
        });
        Some(upload)
    }

    /// What it takes, roughly.
    pub(crate) fn bytes(&self) -> u64 {
        let tables =
            [self.sessions.bytes(), self.graphs.bytes(), self.uploads.bytes(), self.mutables.bytes()];
        tables.into_iter().fold(self.around().saturating_add(self.replies.bytes()), u64::saturating_add)
    }

    /// The same from all of it.
    pub(crate) fn recounted(&self) -> u64 {
        let graphs = self.graphs.values().map(|graph| graph.recounted());
        let shells = self.graphs.recounted();
        let outside = self.graphs.values().map(|graph| crate::memory::Weigh::outside(graph.as_ref()));
        let shells = outside.fold(shells, u64::saturating_sub);
        let tables = [self.sessions.recounted(), self.uploads.recounted(), self.mutables.recounted(), shells];
        let tables = tables.into_iter().chain(graphs);
        tables.fold(self.around().saturating_add(self.replies.recounted()), u64::saturating_add)
    }

    fn around(&self) -> u64 {
        of_map::<Name, SessionNo>(self.session_names.len())
            .saturating_add(of_map::<(SessionNo, GraphKind, Name), GraphNo>(self.graph_names.len()))
            .saturating_add(of_map::<(SessionNo, Name), MutableNo>(self.mutable_names.len()))
            .saturating_add(of_set::<ChunkEntry>(self.chunk_keys.len()))
            .saturating_add(of_set::<(SessionNo, Name, GraphNo)>(self.tileable_keys.len()))
            .saturating_add(of_map::<OperationId, GraphNo>(self.tasks.len()))
            .saturating_add(of_set::<GraphNo>(self.active.len()))
            .saturating_add(of_set::<(TimeMs, GraphNo)>(self.expiring.len()))
    }
}

fn is_running(graph: &Graph) -> bool {
    !graph.head.state.is_terminal() && graph.head.state != GraphState::Preparing
}
