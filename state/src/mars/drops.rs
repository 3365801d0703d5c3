//! References of graphs to objects are given up.

use crate::fault::Fault;
use crate::limits::within;
use crate::mars::act::Act;
use crate::mars::answer::Answer;
use crate::mars::apply::Answered;
use crate::mars::chunk::Stage;
use crate::mars::graph::Graph;
use crate::mars::ids::{GraphNo, Place};
use crate::mars::limits::{DECREF_KEYS_MAX, invalid};
use crate::mars::refusal::Refusal;
use crate::ray::ids::ObjectId;

use std::collections::BTreeMap;
use std::sync::Arc;

impl Graph {
    /// The object of a chunk that nobody needs, which its graph gives up.
    pub(super) fn give_up(&mut self, place: Place, even_if_needed: bool) -> Option<ObjectId> {
        let chunk = self.chunks.get(&place)?;
        let object = chunk.object.filter(|_| even_if_needed || chunk.is_idle())?;
        if chunk.stage == Stage::Fetched {
            self.let_go.push(place);
        }
        self.chunks.edit(&place)?.object = None;
        Some(object)
    }

    /// One reader less of each of these chunks; the objects that nobody needs any more.
    pub(super) fn read(&mut self, inputs: &[Place]) -> Vec<ObjectId> {
        let mut free = Vec::new();
        for place in inputs {
            if let Some(mut chunk) = self.chunks.edit(place) {
                chunk.readers = chunk.readers.saturating_sub(1);
            }
            free.extend(self.give_up(*place, false));
        }
        free
    }

    /// All objects that it has.
    pub(super) fn give_up_all(&mut self) -> Vec<ObjectId> {
        let with = self.chunks.iter().filter(|(_, chunk)| chunk.object.is_some());
        let places: Vec<Place> = with.map(|(place, _)| *place).collect();
        places.into_iter().filter_map(|place| self.give_up(place, true)).collect()
    }
}

impl Act<'_> {
    pub(super) fn drop_objects(&mut self, objects: &[ObjectId]) {
        if !objects.is_empty() {
            self.ray.drop_for_graph(self.now, objects);
            self.is_ray_changed = true;
        }
    }

    /// Chunks of other graphs that nothing reads.
    pub(super) fn drop_idle_fetched(&mut self, number: GraphNo) {
        let mut free = Vec::new();
        if let Some(mut graph) = self.mars.graph_mut(number) {
            let places: Vec<Place> = graph.fetched.values().copied().collect();
            for place in places {
                free.extend(graph.give_up(place, false));
            }
        }
        self.mars.forget_let_go(number);
        self.drop_objects(&free);
    }

    /// All of them or none.
    pub(super) fn decref(&mut self, session: &str, keys: &[String], counts: &[u64]) -> Answered {
        let session = self.mars.session(session)?;
        within("keys of one request", keys.len() as u64, DECREF_KEYS_MAX)?;
        if keys.is_empty() || keys.len() != counts.len() {
            return Err(invalid("counts", "must be as many as keys, and there must be some"));
        }
        if counts.contains(&0) {
            return Err(invalid("counts", "must be at least 1"));
        }
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for (key, count) in keys.iter().zip(counts) {
            let sum = sums.entry(key).or_default();
            *sum = sum.saturating_add(*count);
        }
        let mut found: Vec<(GraphNo, &str, u64)> = Vec::with_capacity(sums.len());
        for (key, dropped) in sums {
            let unknown = || Fault::from(Refusal::TileableUnknown { key: key.to_owned() });
            let graph = self.mars.graph_of_tileable(session, key).ok_or_else(unknown)?;
            let held = self.mars.graphs.get(&graph).and_then(|graph| graph.tileables.get(key));
            let held = held.map(|tileable| tileable.count).filter(|held| *held > 0).ok_or_else(unknown)?;
            if dropped > held {
                return Err(Refusal::TooFewReferences { key: key.to_owned(), held, dropped }.into());
            }
            found.push((graph, key, dropped));
        }
        for (graph, key, dropped) in found {
            self.dereference(graph, key, dropped);
        }
        Ok(Answer::Done)
    }

    fn dereference(&mut self, number: GraphNo, key: &str, dropped: u64) {
        let mut free = Vec::new();
        if let Some(mut graph) = self.mars.graph_mut(number) {
            let Some((tileable, _)) = graph.tileables.slot(&key.into()) else { return };
            let tileable = Arc::make_mut(tileable);
            tileable.count = tileable.count.saturating_sub(dropped);
            if tileable.count > 0 {
                return;
            }
            let places = tileable.chunks.clone();
            for place in places {
                if let Some(mut chunk) = graph.chunks.edit(&place) {
                    chunk.holders = chunk.holders.saturating_sub(1);
                }
                free.extend(graph.give_up(place, false));
            }
        }
        self.mars.forget_let_go(number);
        self.drop_objects(&free);
    }
}
