//! Chunks and tileables as they are shown.

use crate::command::Scope;
use crate::fault::Fault;
use crate::limits::within;
use crate::mars::chunk::ChunkMeta;
use crate::mars::graph::Graph;
use crate::mars::ids::GraphNo;
use crate::mars::limits::KEYS_ASKED_MAX;
use crate::mars::query::state_of;
use crate::mars::record::Mars;
use crate::mars::tileable::{TileableMeta, index_of, known};
use crate::mars::view::{ChunkView, TileableView};
use crate::ray::{Description, Ray};
use crate::state::State;

impl State {
    /// What is known of chunks of a session, one entry for each key, in their order; `None`: nothing.
    ///
    /// # Errors
    /// The scope's faults, that the session is not there, or that it is asked about too many.
    pub fn mars_chunks(
        &self,
        scope: Scope,
        session: &str,
        keys: &[String],
    ) -> Result<Vec<Option<ChunkView>>, Fault> {
        within("keys of one request", keys.len() as u64, KEYS_ASKED_MAX)?;
        let mars = self.mars_with(scope, session)?;
        let number = mars.session(session)?;
        let ray = self.ray(scope.job);
        let of = |key: &String| {
            let (graph, _, chunk) = mars.chunk(number, key)?;
            let graph_no =
                mars.graph_names.get(&(number, graph.head.kind, graph.head.key.clone())).copied()?;
            Some(chunk_view(ray, graph_no, graph, chunk))
        };
        Ok(keys.iter().map(of).collect())
    }

    /// The same of tileables: of each, as the newest graph has it that has it.
    ///
    /// # Errors
    /// As of [`Self::mars_chunks`].
    pub fn mars_tileables(
        &self,
        scope: Scope,
        session: &str,
        keys: &[String],
    ) -> Result<Vec<Option<TileableView>>, Fault> {
        within("keys of one request", keys.len() as u64, KEYS_ASKED_MAX)?;
        let mars = self.mars_with(scope, session)?;
        let number = mars.session(session)?;
        let ray = self.ray(scope.job);
        let of = |key: &String| tileable_of(mars, ray, mars.graph_of_tileable(number, key)?, key);
        Ok(keys.iter().map(of).collect())
    }
}

fn described<'a>(ray: Option<&'a Ray>, chunk: &ChunkMeta) -> Option<&'a Description> {
    ray?.described(chunk.object?)
}

fn chunk_view(ray: Option<&Ray>, number: GraphNo, graph: &Graph, chunk: &ChunkMeta) -> ChunkView {
    let told = described(ray, chunk);
    let shape =
        told.map(|told| told.shape.iter().map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX)).collect());
    let stores = chunk.object.zip(ray).map(|(object, ray)| {
        let stores = ray.stores_of(object).into_iter();
        stores.filter_map(|store| Some((store, ray.store_address(store)?.to_owned()))).collect()
    });
    ChunkView {
        key: graph.tables.key_text(chunk),
        index: graph.tables.index(chunk),
        shape: shape.unwrap_or_else(|| graph.tables.shape(chunk).to_vec()),
        element_type: told.map_or(chunk.element_type, |told| told.element_type),
        bytes: told.map(|told| told.bytes),
        state: state_of(chunk.stage),
        object: chunk.object,
        stores: stores.unwrap_or_default(),
        graph: number,
    }
}

fn tileable_of(mars: &Mars, ray: Option<&Ray>, number: GraphNo, key: &str) -> Option<TileableView> {
    let graph = mars.graphs.get(&number)?;
    let tileable: &TileableMeta = graph.tileables.get(key)?;
    let chunks = || tileable.chunks.iter().filter_map(|place| graph.chunks.get(place));
    let told: Vec<Option<&Description>> = chunks().map(|chunk| described(ray, chunk)).collect();
    let is_unknown = tileable.nsplits.iter().flatten().any(|extent| *extent < 0);
    let nsplits = if is_unknown {
        let shapes: Vec<Option<Vec<u64>>> =
            told.iter().map(|told| told.map(|told| told.shape.clone())).collect();
        known(&tileable.nsplits, &shapes)
    } else {
        tileable.nsplits.clone()
    };
    let extent = |axis: &Vec<i64>| {
        let all =
            axis.iter().try_fold(0_i64, |sum, extent| sum.checked_add(*extent).filter(|_| *extent >= 0));
        all.unwrap_or(-1)
    };
    let bytes: Option<u64> =
        told.iter().try_fold(0_u64, |sum, told| Some(sum.saturating_add(told.as_ref()?.bytes)));
    Some(TileableView {
        key: key.to_owned(),
        kind: tileable.kind,
        name: tileable.name.as_str().to_owned(),
        shape: nsplits.iter().map(extent).collect(),
        element_type: tileable.element_type,
        columns: tileable.columns.clone(),
        chunk_keys: chunks().map(|chunk| graph.tables.key_text(chunk)).collect(),
        chunk_indexes: (0..tileable.chunks.len()).map(|cell| index_of(&nsplits, cell)).collect(),
        nsplits,
        graph_kind: graph.head.kind,
        graph_key: graph.head.key.as_str().to_owned(),
        state: graph.head.state,
        bytes,
        count: tileable.count,
    })
}
