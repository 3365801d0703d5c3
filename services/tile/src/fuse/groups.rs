//! Cheap chunks side by side as one, where there are many: each of them would cost a turn of the scheduler, which is more than
//! it takes to compute.

use std::collections::BTreeMap;

use super::partials::{for_merges, is_small, join_sets};
use super::sources::is_source;
use super::steps_of;
use crate::chunk::{ChunkGraph, ChunkId, ChunkKey, ChunkNode, ChunkOperator, Content, Step, tensor_bytes};
use crate::limits::{GROUP_BYTES_MAX, GROUP_CHAINS_MAX, GROUP_STEPS_MAX, GROUPS_MIN, STEPS_WEIGHT_MAX};

/// The same graph with groups of chains that read nothing, and whose partial results the same merges read. Those of one group
/// are no longer computed side by side, so this is done only as far as every worker has some groups.
pub(super) fn side_by_side(
    graph: ChunkGraph,
    may_join: &impl Fn(&ChunkKey, &ChunkKey) -> bool,
) -> ChunkGraph {
    let sets = sets(&graph, may_join);
    join_sets(graph, sets, |nodes| {
        let chain = |node: ChunkNode| steps_of(node.operator, node.extents, node.content);
        ChunkOperator::Chains { chains: nodes.into_iter().map(chain).collect() }
    })
}

/// What a chain costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Cost {
    /// Of all tensors on the way.
    bytes: u64,
    steps: usize,
    weight: usize,
}

impl Cost {
    /// Of a chain that may be in a group. None: it may not.
    fn of(node: &ChunkNode) -> Option<Self> {
        let ChunkOperator::Fused { steps } = &node.operator else { return None };
        let begins_with_nothing = node.inputs.is_empty() && node.data.is_empty();
        if !begins_with_nothing || !is_small(node) || !is_source(&steps.first()?.operator) {
            return None;
        }
        let mut bytes = 0_u64;
        for step in steps {
            bytes = bytes.saturating_add(step_bytes(step)?);
        }
        Some(Self { bytes, steps: steps.len(), weight: node.operator.weight() })
    }

    /// Both together.
    fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            steps: self.steps + other.steps,
            weight: self.weight + other.weight,
        }
    }

    fn is_within_bounds(self) -> bool {
        self.bytes <= GROUP_BYTES_MAX && self.steps <= GROUP_STEPS_MAX && self.weight <= STEPS_WEIGHT_MAX
    }
}

/// Bytes of what a step makes. None: nobody knows, or what it takes does not depend on them.
fn step_bytes(step: &Step) -> Option<u64> {
    match (&step.operator, &step.content) {
        (ChunkOperator::Sleep { .. } | ChunkOperator::Fail { .. } | ChunkOperator::Alloc { .. }, _)
        | (_, Content::Frame(_)) => None,
        (_, Content::Partial) => Some(0),
        (_, content) => tensor_bytes(content, &step.extents),
    }
}

/// Places of chains that become one chunk, ascending: two at least.
fn sets(graph: &ChunkGraph, may_join: &impl Fn(&ChunkKey, &ChunkKey) -> bool) -> Vec<Vec<usize>> {
    let costs: Vec<Option<Cost>> = graph
        .nodes
        .iter()
        .zip(for_merges(graph))
        .map(|(node, is_for_merges)| if is_for_merges { Cost::of(node) } else { None })
        .collect();
    let most = (costs.iter().flatten().count() / GROUPS_MIN).min(GROUP_CHAINS_MAX);
    if most < 2 {
        return Vec::new();
    }
    let mut readers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, node) in graph.nodes.iter().enumerate() {
        for ChunkId(input) in &node.inputs {
            if costs[*input].is_some() {
                readers.entry(*input).or_default().push(place);
            }
        }
    }
    // Of chains with the same readers, the last group, which may take one more, and what it costs.
    let mut last: BTreeMap<Vec<usize>, (usize, Cost)> = BTreeMap::new();
    let mut sets: Vec<Vec<usize>> = Vec::new();
    for (place, readers) in readers {
        let Some(cost) = costs[place] else { continue };
        if let Some((set, so_far)) = last.get_mut(&readers) {
            let set = &mut sets[*set];
            let together = so_far.and(cost);
            let key = |place: usize| &graph.nodes[place].key;
            if set.len() < most && together.is_within_bounds() && may_join(key(set[0]), key(place)) {
                set.push(place);
                *so_far = together;
                continue;
            }
        }
        last.insert(readers, (sets.len(), cost));
        sets.push(vec![place]);
    }
    sets.retain(|set| set.len() > 1);
    sets
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::fuse::fuse;
    use crate::fuse::partials::{Tree, merge_of};
    use crate::fuse::tests::{names, tiled};

    fn random(elements: u64, chunk: u64) -> Value {
        json!({"key": "x", "operator": {"op": "rand_uniform", "seed": 7, "low": 0, "high": 1, "shape": [elements],
            "dtype": "f64", "chunks": chunk}})
    }

    fn reduced(key: &str, function: &str) -> Value {
        json!({"key": key, "operator": {"op": "reduce", "function": function}, "inputs": ["x"]})
    }

    /// Mean and variance of random numbers in so many chunks.
    fn moments(chunks: u64, chunk: u64) -> ChunkGraph {
        let all = json!([random(chunks * chunk, chunk), reduced("m", "mean"), reduced("v", "var")]);
        tiled(&all, &["m", "v"])
    }

    fn sizes(graph: &ChunkGraph) -> Vec<usize> {
        let chains = |node: &ChunkNode| match &node.operator {
            ChunkOperator::Chains { chains } => Some(chains.len()),
            _ => None,
        };
        graph.nodes.iter().filter_map(chains).collect()
    }

    /// What docs/benchmarks.md measures.
    #[test]
    fn mean_and_variance_of_a_hundred_chunks_are_27_tasks() {
        let graph = moments(100, 1_000_000);
        assert_eq!(graph.nodes.len(), 100 + 2 * (100 + 35));
        let fused = fuse(graph, |_, _| true);
        assert_eq!(sizes(&fused), [4_usize; 25], "32 MiB each");
        assert_eq!(fused.nodes.len(), 27);
        let trees: Vec<Tree> = fused.nodes.iter().filter_map(Tree::of).collect();
        assert_eq!(trees.iter().map(|tree| tree.inputs.len()).collect::<Vec<_>>(), [25, 25]);
        // Of each chain the mean is first, and the variance second.
        let taken = |part: usize| (0..100).map(|leaf| (leaf / 4, leaf % 4 * 2 + part)).collect::<Vec<_>>();
        assert_eq!((&trees[0].leaves, &trees[1].leaves), (&taken(0), &taken(1)));
    }

    #[test]
    fn few_chains_stay_side_by_side_and_many_small_ones_are_in_groups_of_a_bound() {
        let few = u64::try_from(GROUPS_MIN * 2 - 1).expect("few");
        assert_eq!(sizes(&fuse(moments(few, 10), |_, _| true)), [0_usize; 0]);
        assert_eq!(sizes(&fuse(moments(few + 1, 10), |_, _| true)), [2_usize; GROUPS_MIN]);
        let many = u64::try_from(GROUPS_MIN * GROUP_CHAINS_MAX * 2).expect("few");
        let groups = sizes(&fuse(moments(many, 1), |_, _| true));
        assert_eq!(groups.iter().max(), Some(&GROUP_CHAINS_MAX));
        assert!(groups.len() >= GROUPS_MIN * 2, "{groups:?}");
    }

    #[test]
    fn chains_of_large_chunks_and_of_different_places_stay_apart() {
        let elements = GROUP_BYTES_MAX / 8 / 2;
        assert_eq!(sizes(&fuse(moments(40, elements + 1), |_, _| true)), [0_usize; 0]);
        assert_eq!(sizes(&fuse(moments(40, elements), |_, _| true)), [2_usize; 20]);
        let needs = |key: &ChunkKey| key.0.starts_with('x');
        let apart = fuse(moments(40, 10), |one, other| needs(one) == needs(other));
        assert_eq!(sizes(&apart), [0_usize; 0], "what is read from a store is in no group");
    }

    #[test]
    fn a_merge_that_reads_one_group_is_its_last_step() {
        let source = json!({"op": "rand_uniform", "seed": 7, "low": 0, "high": 1, "shape": [32, 4],
            "dtype": "f64", "chunks": [1, 1]});
        let sum = json!({"op": "reduce", "function": "sum", "axes": [1]});
        let all = json!([{"key": "x", "operator": source}, {"key": "s", "operator": sum, "inputs": ["x"]}]);
        let fused = fuse(tiled(&all, &["s"]), |_, _| true);
        let expected: Vec<_> = (0..32).map(|row| (format!("s:{row}"), Vec::new(), 2)).collect();
        assert_eq!(names(&fused), expected);
    }

    #[test]
    fn a_merge_with_steps_behind_it_reads_groups_too() {
        let negative = json!({"key": "n", "operator": {"op": "unary", "function": "neg"}, "inputs": ["m"]});
        let all = json!([random(400, 10), reduced("m", "mean"), negative]);
        let fused = fuse(tiled(&all, &["n"]), |_, _| true);
        assert_eq!(sizes(&fused), [2_usize; 20]);
        let last = fused.nodes.last().expect("there is the target");
        let ChunkOperator::Fused { steps } = &last.operator else { panic!("{last:?}") };
        assert_eq!((last.key.0.as_str(), steps.len(), last.inputs.len()), ("n:", 2, 20));
        assert!(merge_of(last).is_some());
    }
}
