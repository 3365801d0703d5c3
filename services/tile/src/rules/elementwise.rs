//! Functions of single elements: a chunk for each chunk of what the inputs are together.

use crate::builder::{Builder, Draft, Part};
use crate::chunk::{ChunkOperator, Content};
use crate::dtype::DType;
use crate::operator::{BinaryFunction, Operand, UnaryFunction};
use crate::refusal::Reason;
use crate::rules::align::{align, source};
use crate::scalar::Scalar;
use crate::tiled::Tiled;

pub(super) fn unary(builder: &mut Builder, tiled: &Tiled, function: UnaryFunction) -> Result<Tiled, Reason> {
    let dtype = tiled.dtype()?;
    let result = function.result(dtype).ok_or(Reason::DType(dtype))?;
    each(builder, tiled, &Content::Tensor(result), &ChunkOperator::Unary { function })
}

pub(super) fn cast(builder: &mut Builder, tiled: &Tiled, dtype: DType) -> Result<Tiled, Reason> {
    if tiled.dtype()? == dtype {
        builder.grid(&tiled.splits)?;
        return Ok(tiled.clone());
    }
    each(builder, tiled, &Content::Tensor(dtype), &ChunkOperator::Cast)
}

/// The same for each chunk.
pub(super) fn each(
    builder: &mut Builder,
    tiled: &Tiled,
    content: &Content,
    operator: &ChunkOperator,
) -> Result<Tiled, Reason> {
    let mut chunks = Vec::with_capacity(tiled.chunks.len());
    for (index, chunk) in builder.grid(&tiled.splits)?.zip(&tiled.chunks) {
        let draft = Draft::new(operator.clone(), vec![*chunk], content).at(&index, &tiled.splits);
        chunks.push(builder.add(Part::Output, draft)?);
    }
    Ok(Tiled { content: content.clone(), splits: tiled.splits.clone(), chunks })
}

pub(super) fn binary(
    builder: &mut Builder,
    tiles: &[&Tiled],
    function: BinaryFunction,
    left: Operand,
    right: Operand,
) -> Result<Tiled, Reason> {
    if tiles.is_empty() {
        return Err(Reason::OnlyScalars);
    }
    let common = common(tiles, &[left, right])?;
    let result = function.result(common).ok_or(Reason::DType(common))?;
    together(builder, tiles, result, &ChunkOperator::Binary { function, left, right })
}

pub(super) fn choose(
    builder: &mut Builder,
    tiles: &[&Tiled],
    yes: Operand,
    no: Operand,
) -> Result<Tiled, Reason> {
    tiles[0].dtype()?;
    let dtype = common(&tiles[1..], &[yes, no])?;
    together(builder, tiles, dtype, &ChunkOperator::Where { yes, no })
}

/// The common type of some tensors and numbers. Numbers alone have the types that numpy gives them.
fn common(tiles: &[&Tiled], operands: &[Operand]) -> Result<DType, Reason> {
    let mut found: Option<DType> = None;
    for tiled in tiles {
        let dtype = tiled.dtype()?;
        found = Some(found.map_or(dtype, |found| found.promote(dtype)));
    }
    for operand in operands {
        let Operand::Scalar(scalar) = operand else { continue };
        found = Some(match found {
            Some(found) => found.with_scalar(*scalar).ok_or(Reason::ScalarRange(found))?,
            None => alone(*scalar),
        });
    }
    found.ok_or(Reason::OnlyScalars)
}

const fn alone(scalar: Scalar) -> DType {
    match scalar {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::I64,
        Scalar::Float(_) => DType::F64,
    }
}

/// The same for all chunks that go together.
fn together(
    builder: &mut Builder,
    tiles: &[&Tiled],
    dtype: DType,
    operator: &ChunkOperator,
) -> Result<Tiled, Reason> {
    let aligned = align(builder, tiles)?;
    let mut chunks = Vec::new();
    for index in builder.grid(&aligned.splits)? {
        let inputs = aligned.tiles.iter().map(|tiled| tiled.chunk(&source(tiled, &index))).collect();
        let draft = Draft::new(operator.clone(), inputs, &Content::Tensor(dtype));
        chunks.push(builder.add(Part::Output, draft.at(&index, &aligned.splits))?);
    }
    Ok(Tiled::tensor(dtype, aligned.splits, chunks))
}
