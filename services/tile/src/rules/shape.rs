//! The same chunks in another order, with another axis, or cut otherwise.

use crate::builder::{Builder, Draft, Part};
use crate::chunk::ChunkOperator;
use crate::limits::DIMS_MAX;
use crate::operator::Chunking;
use crate::refusal::Reason;
use crate::rules::{join, rechunk};
use crate::splits::Splits;
use crate::tiled::{Tiled, resolve_axis};

pub(super) fn transpose(builder: &mut Builder, tiled: &Tiled, axes: &[i64]) -> Result<Tiled, Reason> {
    let dims = tiled.splits.dims();
    if axes.len() != dims {
        return Err(Reason::Axes { is: axes.len(), wanted: dims.to_string() });
    }
    let dtype = tiled.dtype()?;
    let axes = distinct(axes, dims)?;
    let splits = Splits(axes.iter().map(|axis| tiled.splits.axis(*axis).to_vec()).collect());
    let mut chunks = Vec::with_capacity(tiled.chunks.len());
    for index in builder.grid(&splits)? {
        let mut source = vec![0; dims];
        for (part, axis) in index.iter().zip(&axes) {
            source[*axis] = *part;
        }
        let operator = ChunkOperator::Transpose { axes: axes.clone() };
        let draft = Draft::new(operator, vec![tiled.chunk(&source)], &tiled.content);
        chunks.push(builder.add(Part::Output, draft.at(&index, &splits))?);
    }
    Ok(Tiled::tensor(dtype, splits, chunks))
}

pub(super) fn expand_dims(builder: &mut Builder, tiled: &Tiled, axis: i64) -> Result<Tiled, Reason> {
    let dims = tiled.splits.dims() + 1;
    if dims > DIMS_MAX {
        return Err(Reason::Dims { dims });
    }
    join::expand(builder, Part::Output, tiled, resolve_axis(axis, dims)?)
}

pub(super) fn rechunk(builder: &mut Builder, tiled: &Tiled, chunks: &Chunking) -> Result<Tiled, Reason> {
    let dtype = tiled.dtype()?;
    let wanted = chunks.resolve(&tiled.shape()?, dtype)?;
    rechunk::rechunk(builder, Part::Output, tiled, &wanted)
}

/// Axes, none of them twice, each of which may be counted from the last one.
pub(super) fn distinct(axes: &[i64], dims: usize) -> Result<Vec<usize>, Reason> {
    if axes.len() > dims {
        return Err(Reason::Axes { is: axes.len(), wanted: format!("at most {dims}") });
    }
    let mut found = Vec::with_capacity(axes.len());
    for axis in axes {
        let resolved = resolve_axis(*axis, dims)?;
        if found.contains(&resolved) {
            return Err(Reason::AxisTwice { axis: *axis });
        }
        found.push(resolved);
    }
    Ok(found)
}
