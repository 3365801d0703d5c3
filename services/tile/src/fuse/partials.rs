//! Partial results: who reads them, how large they are, and which of several in one chunk a merge takes.

use std::collections::BTreeMap;

use super::{close, wanted};
use crate::chunk::{ChunkGraph, ChunkId, ChunkNode, ChunkOperator, Content, Gives, Takes};
use crate::limits::PARTIAL_BYTES_MAX;
use crate::operator::Reduction;

/// Bytes of a partial result for each of its elements: of all reductions, none has more than two numbers.
const ELEMENT_BYTES: u64 = 16;

/// Where chunks are that were moved into others: in which chunk, and behind how many partial results.
type Moved = BTreeMap<usize, (usize, usize)>;

/// How a merge takes its partial results.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Tree {
    pub(super) inputs: Vec<ChunkId>,
    /// As [`ChunkOperator::ReduceTree`] has them.
    pub(super) leaves: Vec<(usize, usize)>,
    pub(super) groups: Vec<Vec<usize>>,
}

/// Of a merge of partial results, or of a chain that begins with one: what is reduced, and what the merge gives.
pub(super) fn merge_of(node: &ChunkNode) -> Option<(&Reduction, Gives)> {
    let first = match &node.operator {
        ChunkOperator::Fused { steps } => &steps.first()?.operator,
        operator => operator,
    };
    match first {
        ChunkOperator::Reduce { reduction, takes: Takes::Partials, gives, .. }
        | ChunkOperator::ReduceTree { reduction, gives, .. } => Some((reduction, *gives)),
        _ => None,
    }
}

impl Tree {
    /// One partial result, as it is.
    pub(super) fn leaf(input: ChunkId) -> Self {
        Self { inputs: vec![input], leaves: vec![(0, 0)], groups: Vec::new() }
    }

    /// Of a merge, or of a chain that begins with one. None: it is neither.
    pub(super) fn of(node: &ChunkNode) -> Option<Self> {
        merge_of(node)?;
        let first = match &node.operator {
            ChunkOperator::Fused { steps } => &steps.first()?.operator,
            operator => operator,
        };
        let inputs = node.inputs.clone();
        if let ChunkOperator::ReduceTree { leaves, groups, .. } = first {
            return Some(Self { inputs, leaves: leaves.clone(), groups: groups.clone() });
        }
        let count = inputs.len();
        let leaves = (0..count).map(|input| (input, 0)).collect();
        Some(Self { inputs, leaves, groups: vec![(0..count).collect()] })
    }

    /// Has a merge, or a chain that begins with one, take its partial results so.
    pub(super) fn put(self, node: &mut ChunkNode) {
        let Some((reduction, gives)) = merge_of(node) else { return };
        let reduction = reduction.clone();
        let operator =
            ChunkOperator::ReduceTree { reduction, gives, leaves: self.leaves, groups: self.groups };
        match &mut node.operator {
            ChunkOperator::Fused { steps } => {
                if let Some(first) = steps.first_mut() {
                    first.operator = operator;
                }
            }
            merge => *merge = operator,
        }
        node.inputs = self.inputs;
    }

    /// The same where its inputs are now. Each chunk is read once, whatever is taken of it.
    fn moved(&self, moved: &Moved) -> Self {
        let mut places: BTreeMap<usize, usize> = BTreeMap::new();
        let mut inputs = Vec::new();
        let mut leaves = Vec::with_capacity(self.leaves.len());
        for (input, part) in &self.leaves {
            let ChunkId(old) = self.inputs[*input];
            let (chunk, before) = moved.get(&old).copied().unwrap_or((old, 0));
            let place = *places.entry(chunk).or_insert(inputs.len());
            if place == inputs.len() {
                inputs.push(ChunkId(chunk));
            }
            leaves.push((place, before + part));
        }
        Self { inputs, leaves, groups: self.groups.clone() }
    }
}

/// The same graph with each of those sets of places as one chunk, under the key of its first one. `operator_of` says how it
/// makes what they made, in their order; merges take their partial results of it.
pub(super) fn join_sets(
    graph: ChunkGraph,
    sets: Vec<Vec<usize>>,
    operator_of: impl Fn(Vec<ChunkNode>) -> ChunkOperator,
) -> ChunkGraph {
    let ChunkGraph { nodes, mut targets } = graph;
    let mut made: Vec<Option<ChunkNode>> = nodes.into_iter().map(Some).collect();
    let mut moved = Moved::new();
    for set in sets {
        let mut joined = Vec::with_capacity(set.len());
        let mut partials = 0;
        for place in &set {
            let Some(node) = made[*place].take() else { continue };
            moved.insert(*place, (set[0], partials));
            partials += node.operator.partials();
            joined.push(node);
        }
        let first = joined.first().cloned();
        let operator = operator_of(joined);
        made[set[0]] = first.map(|node| ChunkNode { operator, ..node });
    }
    reread(&mut made, &moved);
    let nodes = close(made, &mut targets);
    ChunkGraph { nodes, targets }
}

/// Has merges read chunks where they are now.
fn reread(made: &mut [Option<ChunkNode>], moved: &Moved) {
    for node in made.iter_mut().flatten() {
        if node.inputs.iter().any(|input| moved.contains_key(&input.0))
            && let Some(tree) = Tree::of(node)
        {
            tree.moved(moved).put(node);
        }
    }
}

/// Of each chunk, whether it is a partial result that merges alone read.
pub(super) fn for_merges(graph: &ChunkGraph) -> Vec<bool> {
    let is_partial = |(node, is_wanted): (&ChunkNode, bool)| node.content == Content::Partial && !is_wanted;
    let mut found: Vec<bool> = graph.nodes.iter().zip(wanted(graph)).map(is_partial).collect();
    for node in &graph.nodes {
        if merge_of(node).is_none() {
            for ChunkId(input) in &node.inputs {
                found[*input] = false;
            }
        }
    }
    found
}

/// Whether a partial result is known to be so small that it costs nothing to read it beside another one.
pub(super) fn is_small(node: &ChunkNode) -> bool {
    let bytes = node
        .extents
        .iter()
        .try_fold(ELEMENT_BYTES, |bytes, extent| Some(bytes.saturating_mul(extent.known()?)));
    bytes.is_some_and(|bytes| bytes <= PARTIAL_BYTES_MAX)
}
