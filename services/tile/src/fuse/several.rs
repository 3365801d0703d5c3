//! Reductions of the same chunk as one chunk: it is made or read once for all of them, and their partial results are one
//! object.

use std::collections::BTreeMap;

use super::partials::{for_merges, is_small, join_sets};
use crate::chunk::{ChunkGraph, ChunkId, ChunkKey, ChunkOperator, Gives, Takes};
use crate::limits::SEVERAL_MAX;

/// The same graph with reductions of one chunk as one, under the key of the first of them. Each merge takes its own.
pub(super) fn reduce_at_once(
    graph: ChunkGraph,
    may_join: &impl Fn(&ChunkKey, &ChunkKey) -> bool,
) -> ChunkGraph {
    let sets = sets(&graph, may_join);
    join_sets(graph, sets, |nodes| ChunkOperator::ReduceSeveral {
        parts: nodes.into_iter().map(|node| node.operator).collect(),
    })
}

/// Places of reductions that become one, ascending: two at least.
fn sets(graph: &ChunkGraph, may_join: &impl Fn(&ChunkKey, &ChunkKey) -> bool) -> Vec<Vec<usize>> {
    let is_for_merges = for_merges(graph);
    let mut of_chunks: BTreeMap<usize, Vec<Vec<usize>>> = BTreeMap::new();
    for (place, node) in graph.nodes.iter().enumerate() {
        let [ChunkId(chunk)] = node.inputs.as_slice() else { continue };
        if !(is_for_merges[place] && is_first(&node.operator) && is_small(node)) {
            continue;
        }
        let sets = of_chunks.entry(*chunk).or_default();
        match sets.last_mut() {
            Some(set) if set.len() < SEVERAL_MAX && may_join(&graph.nodes[set[0]].key, &node.key) => {
                set.push(place);
            }
            _ => sets.push(vec![place]),
        }
    }
    of_chunks.into_values().flatten().filter(|set| set.len() > 1).collect()
}

/// Whether it makes the partial result of a chunk.
fn is_first(operator: &ChunkOperator) -> bool {
    matches!(operator, ChunkOperator::Reduce { takes: Takes::Values, gives: Gives::Partial, .. })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::chunk::ChunkNode;
    use crate::fuse::fuse;
    use crate::fuse::partials::Tree;
    use crate::fuse::tests::{names, negative, ones, tiled};

    fn reduced(key: &str, function: &str, of: &str) -> Value {
        json!({"key": key, "operator": {"op": "reduce", "function": function}, "inputs": [of]})
    }

    fn both() -> ChunkGraph {
        tiled(&json!([ones("a", 2), reduced("m", "mean", "a"), reduced("v", "var", "a")]), &["m", "v"])
    }

    #[test]
    fn reductions_of_one_chunk_are_one_that_makes_it_and_each_merge_takes_its_own() {
        let fused = fuse(both(), |_, _| true);
        let expected = [
            ("m~0".to_owned(), vec![], 2),
            ("m~1".to_owned(), vec![], 2),
            ("m:".to_owned(), vec![0, 1], 1),
            ("v:".to_owned(), vec![0, 1], 1),
        ];
        assert_eq!(names(&fused), expected);
        let leaves = |place: usize| Tree::of(&fused.nodes[place]).map(|tree| tree.leaves);
        assert_eq!(leaves(2), Some(vec![(0, 0), (1, 0)]));
        assert_eq!(leaves(3), Some(vec![(0, 1), (1, 1)]));
    }

    #[test]
    fn a_chunk_that_somebody_else_reads_is_made_once_and_read_once_for_all_reductions() {
        let all = json!([
            ones("z", 2),
            negative("a", "z"),
            negative("n", "a"),
            reduced("m", "mean", "a"),
            reduced("v", "var", "a")
        ]);
        let fused = names(&fuse(tiled(&all, &["n", "m", "v"]), |_, _| true));
        assert_eq!(fused.iter().filter(|(key, ..)| key.starts_with("a:")).count(), 2, "{fused:?}");
        assert_eq!(fused.iter().filter(|(key, ..)| key.contains('~')).count(), 2, "{fused:?}");
    }

    #[test]
    fn reductions_at_different_places_and_large_ones_are_apart() {
        let apart = reduce_at_once(both(), &|_, _| false);
        assert_eq!(apart, both(), "they are made at different places");
        let along = |key: &str, function: &str| json!({"key": key, "operator": {"op": "reduce", "function": function, "axes": [0]}, "inputs": ["a"]});
        let graph = |columns: u64| {
            let source = json!({"op": "ones", "shape": [2, columns], "dtype": "f64", "chunks": [1, columns]});
            let all = json!([{"key": "a", "operator": source}, along("m", "mean"), along("v", "var")]);
            tiled(&all, &["m", "v"])
        };
        let count = |columns: u64| reduce_at_once(graph(columns), &|_, _| true).nodes.len();
        assert_eq!((count(512), count(513)), (6, 8));
    }

    #[test]
    fn many_reductions_are_several_chunks() {
        let mut all = vec![ones("a", 2)];
        let keys: Vec<String> = (0..=SEVERAL_MAX).map(|at| format!("s{at}")).collect();
        all.extend(keys.iter().map(|key| reduced(key, "sum", "a")));
        let targets: Vec<&str> = keys.iter().map(String::as_str).collect();
        let graph = reduce_at_once(tiled(&json!(all), &targets), &|_, _| true);
        let several = |node: &&ChunkNode| matches!(node.operator, ChunkOperator::ReduceSeveral { .. });
        assert_eq!(graph.nodes.iter().filter(several).count(), 2);
        let alone = graph.nodes.iter().filter(|node| is_first(&node.operator)).count();
        assert_eq!(alone, 2, "the one beyond the bound is alone, for each of two chunks");
    }
}
