//! Sums of products of matrices by the chunk that sums, which need not keep each product for itself.

use super::{close, read_once};
use crate::chunk::{ChunkGraph, ChunkId, ChunkKey, ChunkNode, ChunkOperator};
use crate::limits::{PRODUCTS_MAX, SUMS_MIN};

/// The same graph with sums and their products as one chunk each. Products of one sum are then no longer computed side by
/// side, so this is done only where there are so many sums that every worker has one.
pub(super) fn sum_in_one(graph: ChunkGraph, may_join: &impl Fn(&ChunkKey, &ChunkKey) -> bool) -> ChunkGraph {
    let is_read_once = read_once(&graph);
    let is_product = |ChunkId(input): &ChunkId, sum: &ChunkNode| {
        let node = &graph.nodes[*input];
        is_read_once[*input]
            && matches!(node.operator, ChunkOperator::Matmul)
            && may_join(&node.key, &sum.key)
    };
    let is_sum: Vec<bool> = graph
        .nodes
        .iter()
        .map(|node| {
            matches!(node.operator, ChunkOperator::AddN)
                && node.inputs.len() <= PRODUCTS_MAX
                && node.inputs.iter().all(|input| is_product(input, node))
        })
        .collect();
    if is_sum.iter().filter(|is_sum| **is_sum).count() < SUMS_MIN {
        return graph;
    }
    let ChunkGraph { nodes, mut targets } = graph;
    let mut made: Vec<Option<ChunkNode>> = Vec::with_capacity(nodes.len());
    for (node, is_sum) in nodes.into_iter().zip(is_sum) {
        if !is_sum {
            made.push(Some(node));
            continue;
        }
        let factors = node
            .inputs
            .iter()
            .filter_map(|ChunkId(input)| made[*input].take())
            .flat_map(|product| product.inputs);
        let inputs = factors.collect();
        made.push(Some(ChunkNode { operator: ChunkOperator::MatmulSum, inputs, ..node }));
    }
    let nodes = close(made, &mut targets);
    ChunkGraph { nodes, targets }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fuse::fuse;
    use crate::fuse::tests::tiled;

    /// A square of chunks of two by two elements, times itself.
    fn product(chunks: u64) -> ChunkGraph {
        let all = json!([
            {"key": "a", "operator": {"op": "ones", "shape": [chunks * 2, chunks * 2], "dtype": "f64", "chunks": 2}},
            {"key": "c", "operator": {"op": "matmul"}, "inputs": ["a", "a"]},
        ]);
        tiled(&all, &["c"])
    }

    fn count(graph: &ChunkGraph, operator: &ChunkOperator) -> usize {
        graph.nodes.iter().filter(|node| node.operator == *operator).count()
    }

    #[test]
    fn a_sum_computes_its_products_in_their_order() {
        let before = product(3);
        assert_eq!(count(&before, &ChunkOperator::Matmul), 27);
        let key = |graph: &ChunkGraph, ChunkId(input): &ChunkId| graph.nodes[*input].key.0.clone();
        let sum =
            before.nodes.iter().find(|node| node.key.0 == "c:1.2").expect("it is a chunk of the product");
        let factors = sum.inputs.iter().flat_map(|ChunkId(product)| &before.nodes[*product].inputs);
        let expected: Vec<String> = factors.map(|input| key(&before, input)).collect();
        let fused = fuse(before.clone(), |_, _| true);
        assert_eq!((count(&fused, &ChunkOperator::Matmul), count(&fused, &ChunkOperator::MatmulSum)), (0, 9));
        let sum = fused.nodes.iter().find(|node| node.key.0 == "c:1.2").expect("it has the key of the sum");
        assert_eq!(sum.inputs.iter().map(|input| key(&fused, input)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn products_of_few_or_long_sums_stay_side_by_side() {
        let few = fuse(product(2), |_, _| true);
        assert_eq!((count(&few, &ChunkOperator::Matmul), count(&few, &ChunkOperator::MatmulSum)), (8, 0));
        let side = u64::try_from(PRODUCTS_MAX).unwrap() + 1;
        let long = fuse(product(side), |_, _| true);
        assert_eq!(count(&long, &ChunkOperator::MatmulSum), 0);
        let apart = fuse(product(3), |_, _| false);
        assert_eq!(count(&apart, &ChunkOperator::MatmulSum), 0, "they are made at different places");
    }
}
