//! A tensor with something else in some places: chunks in which nothing changes are taken as they are.

use crate::builder::{Builder, Draft, Part};
use crate::chunk::ChunkOperator;
use crate::extent::Extent;
use crate::index::AxisIndex;
use crate::operator::Operand;
use crate::refusal::Reason;
use crate::rules::align::source;
use crate::rules::rechunk::rechunk;
use crate::rules::select::Selection;
use crate::rules::source::check_value;
use crate::splits::{Splits, indexes, place, total};
use crate::tiled::{ONE, Tiled};

/// Like numpy's assignment, whose value is cast to the type of the tensor.
pub(super) fn set_item(
    builder: &mut Builder,
    tiles: &[&Tiled],
    index: &[AxisIndex],
    value: Operand,
) -> Result<Tiled, Reason> {
    let tiled = tiles[0];
    let dtype = tiled.dtype()?;
    let selection = Selection::of(tiled, index)?;
    let picked = selection.splits();
    let other = match value {
        Operand::Input => Some(cut_as(builder, tiles[1], &picked)?),
        Operand::Scalar(scalar) => {
            check_value(scalar, dtype)?;
            None
        }
    };
    builder.grid(&tiled.splits)?;
    let mut chunks = tiled.chunks.clone();
    if picked.shape().contains(&Some(0)) {
        return Ok(Tiled::tensor(dtype, tiled.splits.clone(), chunks));
    }
    let counts = selection.counts();
    builder.room(&counts)?;
    for at in indexes(&counts) {
        let (source_index, ranges) = selection.at(&at);
        let kept: Vec<usize> = selection.kept(&at).into_iter().copied().collect();
        let mut inputs = vec![tiled.chunk(&source_index)];
        if let Some(other) = &other {
            let own = kept.len() - other.splits.dims();
            inputs.push(other.chunk(&source(other, &kept[own..])));
        }
        let operator = ChunkOperator::Assign { ranges, drop: selection.drop.clone(), value };
        let draft = Draft::new(operator, inputs, &tiled.content).at(&source_index, &tiled.splits);
        chunks[place(&source_index, &tiled.splits.counts())] = builder.add(Part::Output, draft)?;
    }
    Ok(Tiled::tensor(dtype, tiled.splits.clone(), chunks))
}

/// A value that is as large as what is picked, or becomes so by repetition, cut as that is.
fn cut_as(builder: &mut Builder, value: &Tiled, picked: &Splits) -> Result<Tiled, Reason> {
    value.dtype()?;
    let refused = || Reason::Shapes { left: picked.shape(), right: value.splits.shape() };
    let missing = picked.dims().checked_sub(value.splits.dims()).ok_or_else(refused)?;
    let mut wanted: Vec<Vec<Extent>> = Vec::new();
    for axis in 0..value.splits.dims() {
        let (own, parts) = (value.splits.axis(axis), picked.axis(missing + axis));
        if value.is_one(axis) {
            wanted.push(vec![ONE]);
        } else if own == parts {
            wanted.push(parts.to_vec());
        } else {
            let (own, wanted_total) = (total(own), total(parts));
            if own.is_none() || wanted_total.is_none() {
                return Err(Reason::Unknown { axis });
            }
            if own != wanted_total {
                return Err(refused());
            }
            wanted.push(parts.to_vec());
        }
    }
    rechunk(builder, Part::Between, value, &Splits(wanted))
}
