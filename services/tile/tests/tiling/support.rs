//! Short ways to write graphs.

use tripod_tile::{Chunking, DType, Operator, Scalar, Tileable, TileableGraph};

pub(crate) fn tileable(key: &str, operator: Operator, inputs: &[&str]) -> Tileable {
    let inputs = inputs.iter().map(|input| (*input).into()).collect();
    Tileable { key: key.into(), operator, inputs, data: Vec::new(), declared: None }
}

pub(crate) fn graph(tileables: Vec<Tileable>) -> TileableGraph {
    TileableGraph { tileables, targets: Vec::new() }
}

pub(crate) fn zeros(shape: &[u64], dtype: DType, size: u64) -> Operator {
    Operator::Zeros { shape: shape.to_vec(), dtype, chunks: Chunking::Size(size) }
}

pub(crate) fn arange(count: i64, size: u64) -> Operator {
    Operator::Arange {
        start: Scalar::Int(0),
        stop: Scalar::Int(count),
        step: Scalar::Int(1),
        dtype: DType::I64,
        chunks: Chunking::Size(size),
    }
}
