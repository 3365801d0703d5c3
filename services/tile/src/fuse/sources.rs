//! What is made of nothing is made again by each chunk that reads it, instead of once for a store.

use super::{close, fits, join, reads, wanted};
use crate::chunk::{ChunkGraph, ChunkId, ChunkKey, ChunkNode, ChunkOperator};
use crate::limits::SOURCE_READERS_MAX;

/// The same graph without the sources that few chunks read, each of which reads nothing else and begins with a copy of it.
pub(super) fn repeat(graph: ChunkGraph, may_join: &impl Fn(&ChunkKey, &ChunkKey) -> bool) -> ChunkGraph {
    let is_repeated = repeated(&graph, may_join);
    let ChunkGraph { nodes, mut targets } = graph;
    let mut made: Vec<Option<ChunkNode>> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let source = match node.inputs.as_slice() {
            [ChunkId(input)] if is_repeated[*input] => made[*input].clone(),
            _ => None,
        };
        made.push(Some(match source {
            Some(source) => join(source, node),
            None => node,
        }));
    }
    for (chunk, is_repeated) in made.iter_mut().zip(is_repeated) {
        if is_repeated {
            *chunk = None;
        }
    }
    let nodes = close(made, &mut targets);
    ChunkGraph { nodes, targets }
}

/// Of each chunk, whether it is such a source. One that a single chunk reads is the beginning of a chain.
fn repeated(graph: &ChunkGraph, may_join: &impl Fn(&ChunkKey, &ChunkKey) -> bool) -> Vec<bool> {
    let reads = reads(graph);
    let few = |reads: usize| (2..=SOURCE_READERS_MAX).contains(&reads);
    let mut repeated: Vec<bool> = graph
        .nodes
        .iter()
        .zip(&reads)
        .zip(wanted(graph))
        .map(|((node, reads), is_wanted)| is_cheap(node) && few(*reads) && !is_wanted)
        .collect();
    for node in &graph.nodes {
        let is_alone = node.inputs.len() == 1;
        for ChunkId(input) in &node.inputs {
            let source = &graph.nodes[*input];
            repeated[*input] &= is_alone && fits(source, node) && may_join(&source.key, &node.key);
        }
    }
    repeated
}

/// Whether it is computed of a few numbers, and so as fast as it could be copied.
fn is_cheap(node: &ChunkNode) -> bool {
    node.inputs.is_empty() && node.data.is_empty() && is_source(&node.operator)
}

/// Whether a function makes something of a few numbers alone.
pub(super) fn is_source(operator: &ChunkOperator) -> bool {
    matches!(
        operator,
        ChunkOperator::Full { .. }
            | ChunkOperator::Eye { .. }
            | ChunkOperator::Arange { .. }
            | ChunkOperator::Linspace { .. }
            | ChunkOperator::RandUniform { .. }
            | ChunkOperator::RandNormal { .. }
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fuse;
    use super::super::tests::{names, negative, ones, tiled};

    #[test]
    fn a_source_is_made_again_by_each_chunk_that_reads_it_alone() {
        let graph = tiled(&json!([ones("a", 2), negative("b", "a"), negative("c", "a")]), &["b", "c"]);
        assert_eq!(graph.nodes.len(), 6);
        let fused = names(&fuse(graph, |_, _| true));
        let expected = ["b:0", "b:1", "c:0", "c:1"].map(|key| (key.to_owned(), Vec::new(), 2));
        assert_eq!(fused, expected);
    }

    #[test]
    fn a_source_that_one_reads_beside_another_chunk_is_made_once() {
        let both = json!({"key": "d", "operator": {"op": "binary", "function": "add", "left": "input", "right": "input"},
            "inputs": ["a", "b"]});
        let graph = tiled(&json!([ones("a", 4), negative("b", "a"), negative("c", "a"), both]), &["c", "d"]);
        let fused = names(&fuse(graph, |_, _| true));
        assert!(fused.contains(&("a:0".to_owned(), vec![], 1)), "{fused:?}");
    }

    #[test]
    fn a_source_that_many_read_or_somebody_wants_is_made_once() {
        let mut all = vec![ones("a", 4)];
        let keys: Vec<String> = (0..=super::SOURCE_READERS_MAX).map(|at| format!("b{at}")).collect();
        all.extend(keys.iter().map(|key| negative(key, "a")));
        let targets: Vec<&str> = keys.iter().map(String::as_str).collect();
        let many = names(&fuse(tiled(&json!(all), &targets), |_, _| true));
        assert_eq!(many.len(), keys.len() + 1, "many read it");
        let wanted = tiled(&json!([ones("a", 4), negative("b", "a"), negative("c", "a")]), &["a", "b", "c"]);
        assert_eq!(names(&fuse(wanted, |_, _| true)).len(), 3, "it is wanted");
        let apart = tiled(&json!([ones("a", 4), negative("b", "a"), negative("c", "a")]), &["b", "c"]);
        assert_eq!(names(&fuse(apart, |_, _| false)).len(), 3, "they are made at different places");
    }
}
