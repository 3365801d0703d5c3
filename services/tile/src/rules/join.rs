//! Tensors one after the other: their chunks are taken as they are wherever that is possible.

use crate::builder::{Builder, Draft, Part};
use crate::chunk::{ChunkOperator, Content};
use crate::dtype::DType;
use crate::extent::Extent;
use crate::limits::DIMS_MAX;
use crate::refusal::Reason;
use crate::rules::rechunk::{Apart, rechunk, together};
use crate::splits::{Splits, place};
use crate::tiled::{ONE, Tiled, resolve_axis};

/// A tensor whose chunks are those of others along one axis.
struct Joined<'a> {
    tiles: &'a [Tiled],
    splits: Splits,
    axis: usize,
    /// Which tensor, and which of its parts, each part along the axis is.
    parts: Vec<(usize, usize)>,
}

pub(super) fn concat(builder: &mut Builder, tiles: &[&Tiled], axis: i64) -> Result<Tiled, Reason> {
    let dims = tiles[0].splits.dims();
    let axis = resolve_axis(axis, dims)?;
    let dtype = common(tiles)?;
    let cut = cut_alike(builder, tiles, Some(axis))?;
    let cut = cut.into_iter().map(|tiled| cast(builder, tiled, dtype)).collect::<Result<Vec<_>, _>>()?;
    let mut parts = Vec::new();
    for (number, tiled) in cut.iter().enumerate() {
        parts.extend((0..tiled.splits.axis(axis).len()).map(|part| (number, part)));
    }
    let extent = |(number, part): &(usize, usize)| cut[*number].splits.axis(axis)[*part];
    // What has no extent is left out, unless there is nothing else.
    let filled: Vec<_> = parts.iter().copied().filter(|part| extent(part) != Extent::Known(0)).collect();
    parts = if filled.is_empty() { vec![parts[0]] } else { filled };
    let mut splits = cut[0].splits.clone();
    splits.0[axis] = parts.iter().map(extent).collect();
    Joined { tiles: &cut, splits, axis, parts }.list(builder, dtype)
}

/// Along a new axis, in which each of the tensors has one place.
pub(super) fn stack(builder: &mut Builder, tiles: &[&Tiled], axis: i64) -> Result<Tiled, Reason> {
    let dims = tiles[0].splits.dims() + 1;
    if dims > DIMS_MAX {
        return Err(Reason::Dims { dims });
    }
    let axis = resolve_axis(axis, dims)?;
    let dtype = common(tiles)?;
    let mut expanded = Vec::new();
    for tiled in cut_alike(builder, tiles, None)? {
        let tiled = cast(builder, tiled, dtype)?;
        expanded.push(expand(builder, Part::Between, &tiled, axis)?);
    }
    let mut splits = expanded[0].splits.clone();
    splits.0[axis] = vec![ONE; expanded.len()];
    let parts = (0..expanded.len()).map(|number| (number, 0)).collect();
    Joined { tiles: &expanded, splits, axis, parts }.list(builder, dtype)
}

/// The same with one more axis.
pub(super) fn expand(builder: &mut Builder, part: Part, tiled: &Tiled, axis: usize) -> Result<Tiled, Reason> {
    let dtype = tiled.dtype()?;
    let mut splits = tiled.splits.clone();
    splits.0.insert(axis, vec![ONE]);
    let mut chunks = Vec::with_capacity(tiled.chunks.len());
    for (index, chunk) in builder.grid(&splits)?.zip(&tiled.chunks) {
        let draft = Draft::new(ChunkOperator::ExpandDims { axis }, vec![*chunk], &tiled.content);
        chunks.push(builder.add(part, draft.at(&index, &splits))?);
    }
    Ok(Tiled::tensor(dtype, splits, chunks))
}

fn common(tiles: &[&Tiled]) -> Result<DType, Reason> {
    let first = tiles[0].dtype()?;
    tiles.iter().try_fold(first, |common, tiled| Ok(common.promote(tiled.dtype()?)))
}

/// All of them cut alike, but along one axis, along which they may have any extent.
fn cut_alike(builder: &mut Builder, tiles: &[&Tiled], but: Option<usize>) -> Result<Vec<Tiled>, Reason> {
    let first = &tiles[0].splits;
    let refused = |other: usize| Reason::Shapes { left: first.shape(), right: tiles[other].splits.shape() };
    for (number, tiled) in tiles.iter().enumerate() {
        if tiled.splits.dims() != first.dims() {
            return Err(refused(number));
        }
        // What is compared below is counted first.
        builder.room(&tiled.splits.counts())?;
    }
    let mut wanted = Vec::new();
    for axis in 0..first.dims() {
        let lists: Vec<&[Extent]> = tiles.iter().map(|tiled| tiled.splits.axis(axis)).collect();
        wanted.push(if Some(axis) == but {
            Vec::new()
        } else {
            together(&lists).map_err(|apart| match apart {
                Apart::Unknown => Reason::Unknown { axis },
                Apart::Lengths(other) => refused(other),
            })?
        });
    }
    let cut = tiles.iter().map(|tiled| {
        let mut own = Splits(wanted.clone());
        if let Some(but) = but {
            own.0[but] = tiled.splits.axis(but).to_vec();
        }
        rechunk(builder, Part::Between, tiled, &own)
    });
    cut.collect()
}

fn cast(builder: &mut Builder, tiled: Tiled, dtype: DType) -> Result<Tiled, Reason> {
    if tiled.dtype()? == dtype {
        return Ok(tiled);
    }
    let mut chunks = Vec::with_capacity(tiled.chunks.len());
    for (index, chunk) in builder.grid(&tiled.splits)?.zip(&tiled.chunks) {
        let draft = Draft::new(ChunkOperator::Cast, vec![*chunk], &Content::Tensor(dtype));
        chunks.push(builder.add(Part::Between, draft.at(&index, &tiled.splits))?);
    }
    Ok(Tiled::tensor(dtype, tiled.splits, chunks))
}

impl Joined<'_> {
    fn list(self, builder: &mut Builder, dtype: DType) -> Result<Tiled, Reason> {
        let mut chunks = Vec::new();
        // The counts of each tensor differ along the axis alone.
        let counts: Vec<_> = self.tiles.iter().map(|tiled| tiled.splits.counts()).collect();
        for mut index in builder.grid(&self.splits)? {
            let (number, part) = self.parts[index[self.axis]];
            index[self.axis] = part;
            chunks.push(self.tiles[number].chunks[place(&index, &counts[number])]);
        }
        Ok(Tiled::tensor(dtype, self.splits, chunks))
    }
}
