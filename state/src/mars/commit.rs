//! A graph is there wholly: what its parts cannot say each by itself is looked at, and its first subtasks are submitted.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::fault::Fault;
use crate::limits::within;
use crate::mars::act::Act;
use crate::mars::apply::Answered;
use crate::mars::chunk::{ChunkMeta, NONE, Shared, Stage};
use crate::mars::drafts::answer;
use crate::mars::graph::{FETCHED_FIRST, Graph, GraphState};
use crate::mars::ids::{GraphKind, GraphNo, Name, Place, SessionNo};
use crate::mars::intake::of_node;
use crate::mars::key::ChunkKey;
use crate::mars::limits::{GRAPH_INPUTS_MAX, JOB_CHUNKS_MAX, JOB_GRAPH_BYTES_MAX, SESSION_CHUNKS_MAX};
use crate::mars::record::Mars;
use crate::mars::refusal::Refusal;
use crate::ray::{Needs, Role};

/// Needs that are compared with those of the next node: nodes of one kind stand together.
const SEEN_NEEDS: usize = 16;

impl Act<'_> {
    pub(super) fn commit(&mut self, number: GraphNo, mut graph: Graph) -> Answered {
        self.check_room(&graph, number)?;
        graph.check_keys()?;
        self.check_needs(&graph)?;
        graph.count_readers()?;
        graph.choose_targets()?;
        self.mars.resolve_fetched(&mut graph)?;
        // Nothing is refused from here on.
        let name = (graph.head.session, graph.head.kind, graph.head.key.clone());
        let before = self.mars.graph_names.get(&name).copied();
        if let Some(before) = before.filter(|before| *before != number) {
            self.forget_graph(before);
        }
        self.mars.take_upload(&name);
        let held: Vec<_> =
            graph.fetched.values().filter_map(|place| graph.chunks.get(place)?.object).collect();
        for object in held {
            self.ray.hold_for_graph(object);
        }
        graph.head.started = self.now;
        graph.head.state = GraphState::Unscheduled;
        self.mars.put_graph(number, graph);
        self.drop_idle_fetched(number);
        self.advance(number);
        self.end_if_done(number);
        let graph = self.mars.graphs.get(&number).expect("it was just put there");
        Ok(answer(number, graph, true))
    }

    /// Whether a session and a job may have so much more.
    pub(super) fn check_room(&self, graph: &Graph, number: GraphNo) -> Result<(), Fault> {
        let known = self.mars.graphs.get(&number);
        let (chunks, bytes) = known.map_or((0, 0), |known| (known.chunks.len() as u64, known.waiting_bytes));
        let session = self.mars.sessions.get(&graph.head.session);
        let tally = session.map(|session| session.tally).unwrap_or_default();
        let more = |all: u64| all.saturating_sub(chunks).saturating_add(graph.chunks.len() as u64);
        within("chunks of a session", more(tally.chunks), SESSION_CHUNKS_MAX)?;
        within("chunks of a job", more(self.mars.tally.chunks), JOB_CHUNKS_MAX)?;
        let waiting = self.mars.tally.waiting_bytes.saturating_sub(bytes).saturating_add(graph.waiting_bytes);
        within("bytes of a job's graphs that wait", waiting, JOB_GRAPH_BYTES_MAX)
    }

    /// Whether each node could be executed by some worker that lives. If there is none at all, it waits for one.
    fn check_needs(&self, graph: &Graph) -> Result<(), Fault> {
        let any = self.ray.workers.values().any(|worker| worker.is_alive() && worker.role == Role::Worker);
        if !any {
            return Ok(());
        }
        let mut seen: Vec<&Needs> = Vec::new();
        for chunk in graph.chunks.values() {
            let Some(work) = &chunk.work else { continue };
            if seen.iter().rev().take(SEEN_NEEDS).any(|known| **known == work.needs) {
                continue;
            }
            if !self.ray.fits_somewhere(&work.needs) {
                let key = graph.tables.key_text(chunk);
                return Err(Refusal::FitsNowhere { key, needs: in_words(&work.needs) }.into());
            }
            seen.push(&work.needs);
        }
        Ok(())
    }
}

fn in_words(needs: &Needs) -> String {
    let mut words = Vec::new();
    if needs.cpus_milli > 0 {
        words.push(format!("{} thousandths of a CPU", needs.cpus_milli));
    }
    if needs.memory_bytes > 0 {
        words.push(format!("{} bytes of memory", needs.memory_bytes));
    }
    for (name, milli) in &needs.named_milli {
        let mut word = String::new();
        let _ = write!(word, "{milli} thousandths of `{name}`");
        words.push(word);
    }
    words.join(", ")
}

impl Graph {
    /// No key is there twice.
    fn check_keys(&self) -> Result<(), Fault> {
        let mut keys: Vec<(ChunkKey, Place)> =
            self.chunks.iter().map(|(place, chunk)| (self.tables.key(chunk), *place)).collect();
        // Those of one tileable mostly stand in their order: such runs are merged.
        keys.sort();
        let twice = keys.windows(2).find(|pair| pair[0].0 == pair[1].0);
        match twice.map(|pair| &pair[0].0) {
            Some(key) => Err(of_node(&format!("{}{}", key.text, key.suffix), "is there twice")),
            None => Ok(()),
        }
    }

    /// By how many each chunk is read.
    fn count_readers(&mut self) -> Result<(), Fault> {
        let nodes = self.nodes() as usize;
        let mut readers: Vec<u32> = vec![0; nodes];
        let mut fetched: Vec<u32> = vec![0; self.fetched.len()];
        let mut inputs = 0_u64;
        for work in self.chunks.values().filter_map(|chunk| chunk.work.as_ref()) {
            inputs = inputs.saturating_add(work.inputs.len() as u64);
            for input in &work.inputs {
                if let Some(count) = slot(&mut readers, &mut fetched, *input) {
                    *count += 1;
                }
            }
        }
        within("inputs of a graph", inputs, GRAPH_INPUTS_MAX)?;
        self.set_counts(&readers, &fetched, |chunk, count| chunk.readers = count);
        Ok(())
    }

    /// What is kept for whoever refers to it.
    fn choose_targets(&mut self) -> Result<(), Fault> {
        let nodes = self.nodes() as usize;
        let mut holders: Vec<u32> = vec![0; nodes];
        let mut fetched: Vec<u32> = vec![0; self.fetched.len()];
        for (key, tileable) in &self.tileables {
            if tileable.chunks.iter().any(|place| !self.chunks.contains_key(place)) {
                return Err(of_node(key.as_str(), "lists a chunk that is not in the graph"));
            }
        }
        let targets = Arc::clone(&self.head.targets);
        if self.head.kind == GraphKind::Chunk {
            let named: BTreeSet<ChunkKey> = targets.iter().map(|key| ChunkKey::of(key.as_str())).collect();
            let mut found = 0;
            for (place, chunk) in &self.chunks {
                let is_target = if targets.is_empty() {
                    chunk.readers == 0 && chunk.stage != Stage::Fetched
                } else {
                    named.contains(&self.tables.key(chunk))
                };
                found += usize::from(is_target);
                if let Some(count) = slot(&mut holders, &mut fetched, *place).filter(|_| is_target) {
                    *count += 1;
                }
            }
            if !targets.is_empty() && found < named.len() {
                let known: BTreeSet<ChunkKey> =
                    self.chunks.values().map(|chunk| self.tables.key(chunk)).collect();
                let unknown = targets.iter().find(|key| !known.contains(&ChunkKey::of(key.as_str())));
                let unknown = unknown.map_or("", |key| key.as_str());
                return Err(of_node(unknown, "is to be a target and is not in the graph"));
            }
        }
        let mut wanted: BTreeSet<&str> = targets.iter().map(Name::as_str).collect();
        let all: Vec<_> = self.tileables.keys().cloned().collect();
        let is_every_one = targets.is_empty() || self.head.kind == GraphKind::Chunk;
        for key in all {
            let is_target = wanted.remove(key.as_str()) || is_every_one;
            let Some((tileable, _)) = self.tileables.slot(&key).filter(|_| is_target) else { continue };
            let tileable = Arc::make_mut(tileable);
            tileable.count = 1;
            for place in &tileable.chunks {
                if let Some(count) = slot(&mut holders, &mut fetched, *place) {
                    *count += 1;
                }
            }
        }
        if let (GraphKind::Tileable, Some(unknown)) = (self.head.kind, wanted.first()) {
            return Err(of_node(unknown, "is to be a target and is not in the graph"));
        }
        self.set_counts(&holders, &fetched, |chunk, count| chunk.holders = count);
        Ok(())
    }

    fn set_counts(&mut self, counts: &[u32], fetched: &[u32], set: impl Fn(&mut ChunkMeta, u32)) {
        let made = counts.iter().zip(0..).map(|(count, place)| (Place(place), *count));
        let others = fetched.iter().zip(FETCHED_FIRST..).map(|(count, place)| (Place(place), *count));
        for (place, count) in made.chain(others) {
            if count > 0
                && let Some(mut chunk) = self.chunks.edit(&place)
            {
                set(&mut chunk, count);
            }
        }
    }
}

/// Where it is counted.
fn slot<'a>(made: &'a mut [u32], fetched: &'a mut [u32], place: Place) -> Option<&'a mut u32> {
    match place.0.checked_sub(FETCHED_FIRST) {
        Some(behind) => fetched.get_mut(behind as usize),
        None => made.get_mut(place.0 as usize),
    }
}

impl Mars {
    /// Finds the chunks of the session that a graph reads.
    fn resolve_fetched(&self, graph: &mut Graph) -> Result<(), Fault> {
        let session: SessionNo = graph.head.session;
        let places: Vec<Place> = graph.fetched.values().copied().collect();
        let mut shared = Shared::default();
        for place in places {
            let Some(chunk) = graph.chunks.get(&place) else { continue };
            let key = graph.tables.key_text(chunk);
            let found = self.chunk(session, &key).and_then(|(of, _, found)| {
                let usable = !matches!(found.stage, Stage::Pending | Stage::Errored | Stage::Cancelled);
                let object = found.object.filter(|_| usable)?;
                Some((object, of.tables.shape(found).to_vec(), of.tables.index(found), found.element_type))
            });
            let Some((object, shape, index, element_type)) = found else {
                return Err(Refusal::ChunkGone { key }.into());
            };
            let shape = shared.shape(&mut graph.tables, &shape);
            let says_so = chunk_says(graph, place, &index);
            let index = if says_so { NONE } else { shared.index(&mut graph.tables, &index) };
            if let Some(mut chunk) = graph.chunks.edit(&place) {
                chunk.object = Some(object);
                chunk.shape = shape;
                chunk.index = index;
                chunk.element_type = element_type;
            }
        }
        Ok(())
    }
}

/// Whether a chunk's key says its index.
fn chunk_says(graph: &Graph, place: Place, index: &[u64]) -> bool {
    let numbers = graph.chunks.get(&place).and_then(|chunk| chunk.suffix.numbers()).unwrap_or_default();
    numbers == index
}
