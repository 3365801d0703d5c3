//! Several chunks as one: chains, sources that are made again for each reader, sums of products, and what reductions have on
//! the way. What only one other chunk reads, and what that reads alone, need not be an object of its own; nor need what is
//! made of nothing sooner than it is read from a store; nor need partial results of some bytes. No chunk has other elements
//! than before.

mod groups;
mod partials;
mod products;
mod several;
mod sources;
mod trees;

use crate::chunk::{ChunkGraph, ChunkId, ChunkKey, ChunkNode, ChunkOperator, Content, Step, Target};
use crate::extent::Extent;
use crate::limits::{STEP_COLUMNS_MAX, STEPS_DATA_BYTES_MAX, STEPS_MAX, STEPS_WEIGHT_MAX};

/// The same graph with chains as chunks of several steps, each with the key of its last one. `may_join` says of two chunks
/// whether they can be made at one place.
#[must_use]
pub fn fuse(graph: ChunkGraph, may_join: impl Fn(&ChunkKey, &ChunkKey) -> bool) -> ChunkGraph {
    let graph = products::sum_in_one(graph, &may_join);
    let graph = trees::merge_at_once(graph, &may_join);
    let graph = several::reduce_at_once(graph, &may_join);
    let graph = sources::repeat(graph, &may_join);
    let graph = chains(graph, &may_join);
    let graph = groups::side_by_side(graph, &may_join);
    // A group that one chunk alone reads is the beginning of its chain.
    chains(graph, &may_join)
}

fn chains(graph: ChunkGraph, may_join: &impl Fn(&ChunkKey, &ChunkKey) -> bool) -> ChunkGraph {
    let is_read_once = read_once(&graph);
    let ChunkGraph { nodes, mut targets } = graph;
    let mut made: Vec<Option<ChunkNode>> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let before = match node.inputs.as_slice() {
            [input] if is_read_once[input.0] => {
                made[input.0].take_if(|before| fits(before, &node) && may_join(&before.key, &node.key))
            }
            _ => None,
        };
        made.push(Some(match before {
            Some(before) => join(before, node),
            None => node,
        }));
    }
    let nodes = close(made, &mut targets);
    ChunkGraph { nodes, targets }
}

/// Of each chunk, whether one other reads it, once, and nobody else wants it.
fn read_once(graph: &ChunkGraph) -> Vec<bool> {
    let wanted = wanted(graph);
    reads(graph).into_iter().zip(wanted).map(|(reads, is_wanted)| reads == 1 && !is_wanted).collect()
}

/// How often other chunks read each.
fn reads(graph: &ChunkGraph) -> Vec<usize> {
    let mut reads = vec![0_usize; graph.nodes.len()];
    for ChunkId(input) in graph.nodes.iter().flat_map(|node| &node.inputs) {
        reads[*input] += 1;
    }
    reads
}

/// Of each chunk, whether it is part of a target.
fn wanted(graph: &ChunkGraph) -> Vec<bool> {
    let mut wanted = vec![false; graph.nodes.len()];
    for ChunkId(chunk) in graph.targets.iter().flat_map(|target| &target.chunks) {
        wanted[*chunk] = true;
    }
    wanted
}

/// Whether the two together are within the bounds of one chunk.
fn fits(before: &ChunkNode, node: &ChunkNode) -> bool {
    let steps = |operator: &ChunkOperator| match operator {
        ChunkOperator::Fused { steps } => steps.len(),
        ChunkOperator::Chains { chains } => chains.iter().map(Vec::len).sum::<usize>(),
        _ => 1,
    };
    let is_narrow = |content: &Content| match content {
        Content::Frame(columns) => columns.len() <= STEP_COLUMNS_MAX,
        Content::Tensor(_) | Content::Partial => true,
    };
    let is_made = !matches!(before.operator, ChunkOperator::Fetch { .. });
    is_made
        && steps(&before.operator) + steps(&node.operator) <= STEPS_MAX
        && before.data.len() <= STEPS_DATA_BYTES_MAX
        && before.operator.weight().saturating_add(node.operator.weight()) <= STEPS_WEIGHT_MAX
        && is_narrow(&before.content)
        && is_narrow(&node.content)
}

fn join(before: ChunkNode, node: ChunkNode) -> ChunkNode {
    let ChunkNode { operator, inputs, extents, content, data, .. } = before;
    let mut steps = steps_of(operator, extents, content);
    let ChunkNode { key, operator, index, extents, content, .. } = node;
    steps.extend(steps_of(operator, extents.clone(), content.clone()));
    ChunkNode { key, operator: ChunkOperator::Fused { steps }, inputs, index, extents, content, data }
}

/// The steps that make a chunk: one, unless it is fused.
fn steps_of(operator: ChunkOperator, extents: Vec<Extent>, content: Content) -> Vec<Step> {
    match operator {
        ChunkOperator::Fused { steps } => steps,
        operator => vec![Step { operator, extents, content }],
    }
}

/// The nodes that are left, under new numbers.
fn close(made: Vec<Option<ChunkNode>>, targets: &mut [Target]) -> Vec<ChunkNode> {
    let mut renamed = Vec::with_capacity(made.len());
    let mut next = 0;
    for node in &made {
        renamed.push(ChunkId(next));
        next += usize::from(node.is_some());
    }
    let rename = |chunks: &mut [ChunkId]| chunks.iter_mut().for_each(|chunk| *chunk = renamed[chunk.0]);
    targets.iter_mut().for_each(|target| rename(&mut target.chunks));
    let mut nodes: Vec<ChunkNode> = made.into_iter().flatten().collect();
    nodes.iter_mut().for_each(|node| rename(&mut node.inputs));
    nodes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::graph::TileableGraph;
    use crate::tiling::{Helpers, tile};

    /// A graph of tensors, each of them with its operator as it is sent.
    pub(super) fn tiled(tileables: &serde_json::Value, targets: &[&str]) -> ChunkGraph {
        let graph: TileableGraph =
            serde_json::from_value(json!({"tileables": tileables, "targets": targets})).unwrap();
        tile(&graph, Helpers::Refused).unwrap()
    }

    pub(super) fn ones(key: &str, chunk: u64) -> serde_json::Value {
        json!({"key": key, "operator": {"op": "ones", "shape": [4], "dtype": "f64", "chunks": chunk}})
    }

    pub(super) fn negative(key: &str, of: &str) -> serde_json::Value {
        json!({"key": key, "operator": {"op": "unary", "function": "neg"}, "inputs": [of]})
    }

    pub(super) fn names(graph: &ChunkGraph) -> Vec<(String, Vec<usize>, usize)> {
        let steps = |node: &ChunkNode| match &node.operator {
            ChunkOperator::Fused { steps } => steps.len(),
            _ => 1,
        };
        let inputs = |node: &ChunkNode| node.inputs.iter().map(|input| input.0).collect();
        graph.nodes.iter().map(|node| (node.key.0.clone(), inputs(node), steps(node))).collect()
    }

    #[test]
    fn a_chain_is_one_chunk_and_has_the_key_of_its_last_step() {
        let graph = tiled(&json!([ones("a", 2), negative("b", "a"), negative("c", "b")]), &["c"]);
        assert_eq!(graph.nodes.len(), 6);
        let fused = fuse(graph, |_, _| true);
        assert_eq!(names(&fused), [("c:0".to_owned(), vec![], 3), ("c:1".to_owned(), vec![], 3)]);
        assert_eq!(fused.targets[0].chunks, [ChunkId(0), ChunkId(1)]);
    }

    #[test]
    fn what_somebody_else_reads_or_wants_stays() {
        let twice = json!([ones("z", 4), negative("a", "z"), negative("b", "a"), negative("c", "a")]);
        let fused = fuse(tiled(&twice, &["b", "c"]), |_, _| true);
        assert_eq!(names(&fused).len(), 3, "two read it");
        let wanted = fuse(tiled(&json!([ones("a", 4), negative("b", "a")]), &["a", "b"]), |_, _| true);
        assert_eq!(
            names(&wanted),
            [("a:0".to_owned(), vec![], 1), ("b:0".to_owned(), vec![0], 1)],
            "it is wanted"
        );
        let apart = fuse(tiled(&json!([ones("a", 4), negative("b", "a")]), &["b"]), |_, _| false);
        assert_eq!(names(&apart).len(), 2, "they are made at different places");
    }

    #[test]
    fn a_long_chain_is_cut() {
        let mut all = vec![ones("t0", 4)];
        for at in 1..=STEPS_MAX {
            all.push(negative(&format!("t{at}"), &format!("t{}", at - 1)));
        }
        let last = format!("t{STEPS_MAX}");
        let fused = fuse(tiled(&json!(all), &[last.as_str()]), |_, _| true);
        let steps: Vec<usize> = names(&fused).into_iter().map(|(_, _, steps)| steps).collect();
        assert_eq!(steps, [STEPS_MAX, 1]);
    }
}
