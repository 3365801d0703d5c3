//! Single rules, where what matters is how chunks are made and not what they are.

use tripod_tile::{
    ChunkOperator, DType, Helpers, Operator, Reduction, ReductionFunction, Scalar, Splits, Takes, tile,
};

use crate::support::{arange, graph, tileable, zeros};

fn counts(splits: &Splits) -> Vec<usize> {
    splits.counts()
}

#[test]
fn every_random_chunk_has_a_generator_of_its_own() {
    let uniform = Operator::RandUniform {
        seed: 9,
        low: Scalar::Int(0),
        high: Scalar::Int(1),
        shape: vec![4, 4],
        dtype: DType::F64,
        chunks: tripod_tile::Chunking::Size(2),
    };
    let chunks = tile(&graph(vec![tileable("u", uniform, &[])]), Helpers::Refused).unwrap();
    let streams: Vec<u64> = chunks
        .nodes
        .iter()
        .map(|node| match node.operator {
            ChunkOperator::RandUniform { seed: 9, stream, .. } => stream,
            ref other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(streams, [0, 1, 2, 3]);
}

#[test]
fn partial_results_are_merged_by_fours_along_each_axis() {
    let sum = Operator::Reduce { function: ReductionFunction::Sum, axes: None, keepdims: false, ddof: 0 };
    let tileables = vec![tileable("a", zeros(&[9, 5], DType::F64, 1), &[]), tileable("s", sum, &["a"])];
    let chunks = tile(&graph(tileables), Helpers::Refused).unwrap();
    let merges: Vec<usize> = chunks
        .nodes
        .iter()
        .filter(|node| matches!(node.operator, ChunkOperator::Reduce { takes: Takes::Partials, .. }))
        .map(|node| node.inputs.len())
        .collect();
    // 9 x 5 become 3 x 2, and those one.
    assert_eq!(merges, [16, 4, 16, 4, 4, 1, 6]);
}

#[test]
fn what_no_target_needs_is_not_made() {
    let mut wanted = graph(vec![
        tileable("a", arange(100, 1), &[]),
        tileable("b", Operator::Take { indices: vec![7], axis: 0 }, &["a"]),
        tileable("c", Operator::Cast { dtype: DType::F32 }, &["a"]),
    ]);
    wanted.targets = vec!["b".into(), "b".into()];
    let chunks = tile(&wanted, Helpers::Refused).unwrap();
    let keys: Vec<_> = chunks.nodes.iter().map(|node| node.key.0.as_str()).collect();
    assert_eq!(keys, ["a:7", "b:0"]);
    assert_eq!(chunks.targets.len(), 1);
}

/// A reshape that does not cut rows apart, and one with axes of one element, keep their chunks.
#[test]
fn reshapes_keep_parts_that_are_whole_rows() {
    let reshaped = |shape: &[u64], size, wanted: &[i64]| {
        let operator = Operator::Reshape { shape: wanted.to_vec() };
        let tileables =
            vec![tileable("a", zeros(shape, DType::I64, size), &[]), tileable("b", operator, &["a"])];
        counts(&tile(&graph(tileables), Helpers::Refused).unwrap().targets[0].splits)
    };
    assert_eq!(reshaped(&[8], 2, &[4, 2]), [4, 1]);
    assert_eq!(reshaped(&[1, 8], 2, &[8]), [4]);
    assert_eq!(reshaped(&[8], 2, &[1, 8, 1]), [1, 4, 1]);
    assert_eq!(reshaped(&[8, 3], 3, &[8, 3, 1]), [3, 1, 1]);
    assert_eq!(reshaped(&[8], 3, &[4, 2]), [1, 1]);
}

#[test]
fn a_hundred_thousand_chunks_are_tiled_in_one_go() {
    let sum = Operator::Reduce { function: ReductionFunction::Sum, axes: None, keepdims: false, ddof: 0 };
    let tileables = vec![tileable("a", arange(60_000, 1), &[]), tileable("s", sum, &["a"])];
    let chunks = tile(&graph(tileables), Helpers::Refused).unwrap();
    assert!(chunks.nodes.len() > 100_000);
    let last = chunks.nodes.last().unwrap();
    let reduction = Reduction { function: ReductionFunction::Sum, axes: vec![0], keepdims: false, ddof: 0 };
    assert!(matches!(&last.operator, ChunkOperator::Reduce { reduction: is, .. } if *is == reduction));
}
