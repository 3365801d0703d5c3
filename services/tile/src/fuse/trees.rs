//! Trees of merges as one chunk each: what they merge has some bytes, and so each of them would cost a turn of the scheduler
//! for nothing. Partial results are merged in the same groups and the same order.

use super::partials::{Tree, is_small, merge_of};
use super::{close, read_once};
use crate::chunk::{ChunkGraph, ChunkId, ChunkKey, ChunkNode, Gives};
use crate::limits::LEAVES_MAX;

/// The same graph without merges that another merge can make itself. One takes all of those that it reads, or none.
pub(super) fn merge_at_once(
    graph: ChunkGraph,
    may_join: &impl Fn(&ChunkKey, &ChunkKey) -> bool,
) -> ChunkGraph {
    let is_read_once = read_once(&graph);
    let ChunkGraph { nodes, mut targets } = graph;
    let mut made: Vec<Option<ChunkNode>> = Vec::with_capacity(nodes.len());
    for mut node in nodes {
        let merges = merges(&made, &node, &is_read_once, may_join);
        if !merges.is_empty() {
            let trees = node.inputs.iter().map(|input| taken(&mut made, *input, &merges)).collect();
            together(trees).put(&mut node);
        }
        made.push(Some(node));
    }
    let nodes = close(made, &mut targets);
    ChunkGraph { nodes, targets }
}

/// The inputs of a merge that it can make itself, ascending. None, if the whole would be too large.
fn merges(
    made: &[Option<ChunkNode>],
    node: &ChunkNode,
    is_read_once: &[bool],
    may_join: &impl Fn(&ChunkKey, &ChunkKey) -> bool,
) -> Vec<usize> {
    let Some((reduction, _)) = merge_of(node) else { return Vec::new() };
    let mut found = Vec::new();
    let mut leaves = 0_usize;
    for ChunkId(input) in &node.inputs {
        let merge = made[*input].as_ref().filter(|merge| {
            is_read_once[*input]
                && is_small(merge)
                && merge_of(merge) == Some((reduction, Gives::Partial))
                && may_join(&merge.key, &node.key)
        });
        if let Some(tree) = merge.and_then(Tree::of) {
            leaves += tree.leaves.len();
            found.push(*input);
        } else {
            leaves += 1;
        }
    }
    if leaves <= LEAVES_MAX { found } else { Vec::new() }
}

/// What one input of a merge is to it: a tree that is no chunk any more, or a chunk.
fn taken(made: &mut [Option<ChunkNode>], input: ChunkId, merges: &[usize]) -> Tree {
    let merge = if merges.binary_search(&input.0).is_ok() { made[input.0].take() } else { None };
    merge.as_ref().and_then(Tree::of).unwrap_or_else(|| Tree::leaf(input))
}

/// Trees as one, which merges them from the first to the last.
fn together(trees: Vec<Tree>) -> Tree {
    let leaves: usize = trees.iter().map(|tree| tree.leaves.len()).sum();
    let mut whole = Tree::default();
    let mut last = Vec::with_capacity(trees.len());
    for Tree { inputs, leaves: own, groups } in trees {
        let (inputs_before, leaves_before) = (whole.inputs.len(), whole.leaves.len());
        let groups_before = whole.groups.len();
        let own_leaves = own.len();
        // Leaves are numbered first, then groups.
        let renamed = |at: usize| {
            if at < own_leaves { leaves_before + at } else { leaves + groups_before + (at - own_leaves) }
        };
        // What the tree is as a whole: its last group, or its only leaf.
        last.push(renamed(own_leaves + groups.len() - 1));
        whole.inputs.extend(inputs);
        whole.leaves.extend(own.into_iter().map(|(input, part)| (inputs_before + input, part)));
        for group in groups {
            whole.groups.push(group.into_iter().map(renamed).collect());
        }
    }
    whole.groups.push(last);
    whole
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chunk::ChunkOperator;
    use crate::fuse::fuse;
    use crate::fuse::tests::{ones, tiled};

    /// How many partial results each merge takes, and in which groups, of the sum of a tensor in so many chunks.
    fn merged(chunks: u64) -> Vec<(usize, Vec<Vec<usize>>)> {
        let source = json!({"op": "from_bytes", "shape": [chunks], "dtype": "bool", "chunks": 1});
        let bytes = vec![1; usize::try_from(chunks).expect("few")];
        let all = json!([
            {"key": "a", "operator": source, "data": bytes},
            {"key": "s", "operator": {"op": "reduce", "function": "sum"}, "inputs": ["a"]},
        ]);
        let graph = merge_at_once(tiled(&all, &["s"]), &|_, _| true);
        let merges = graph.nodes.iter().filter(|node| merge_of(node).is_some());
        let trees = merges.filter_map(Tree::of).map(|tree| (tree.inputs.len(), tree.groups));
        trees.collect()
    }

    #[test]
    fn a_tree_merges_in_the_groups_that_there_were() {
        let nine = merged(9);
        let groups = vec![vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8], vec![9, 10, 11]];
        assert_eq!(nine, [(9, groups)]);
        let seventeen = merged(17);
        assert_eq!(seventeen.len(), 1);
        let (inputs, groups) = &seventeen[0];
        assert_eq!(*inputs, 17);
        // 17 to 20 are of leaves, 21 is of those; 22 is of the last leaf, 23 of that; and the whole is of 21 and 23.
        let expected = [
            vec![0, 1, 2, 3],
            vec![4, 5, 6, 7],
            vec![8, 9, 10, 11],
            vec![12, 13, 14, 15],
            vec![17, 18, 19, 20],
            vec![16],
            vec![22],
            vec![21, 23],
        ];
        assert_eq!(groups[..], expected);
    }

    #[test]
    fn a_merge_of_chunks_alone_stays_what_it_was() {
        let graph = tiled(
            &json!([ones("a", 1), {"key": "s", "operator": {"op": "reduce", "function": "sum"}, "inputs": ["a"]}]),
            &["s"],
        );
        let fused = fuse(graph, |_, _| true);
        let last = fused.nodes.last().expect("there is the sum");
        assert!(matches!(last.operator, ChunkOperator::Reduce { .. }), "{last:?}");
    }

    #[test]
    fn a_tree_has_so_many_leaves_at_most() {
        let most = u64::try_from(LEAVES_MAX).expect("few");
        assert_eq!(merged(most).len(), 1);
        let sizes: Vec<usize> = merged(most + 1).into_iter().map(|(inputs, _)| inputs).collect();
        assert!(sizes.len() > 1 && sizes.iter().all(|inputs| *inputs <= LEAVES_MAX), "{sizes:?}");
        let all: usize = sizes.iter().sum();
        assert_eq!(all, LEAVES_MAX + 1 + sizes.len() - 1, "each but the last is an input of another one");
    }

    #[test]
    fn large_partial_results_are_merged_side_by_side() {
        let graph = |columns: u64| {
            let all = json!([
                {"key": "a", "operator": {"op": "ones", "shape": [9, columns], "dtype": "f64", "chunks": [1, columns]}},
                {"key": "s", "operator": {"op": "reduce", "function": "sum", "axes": [0]}, "inputs": ["a"]},
            ]);
            merge_at_once(tiled(&all, &["s"]), &|_, _| true)
        };
        let count = |graph: ChunkGraph| graph.nodes.iter().filter(|node| merge_of(node).is_some()).count();
        assert_eq!((count(graph(512)), count(graph(513))), (1, 4));
    }
}
