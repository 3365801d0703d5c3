//! Elements that a list or a mask picks.

use crate::builder::{Builder, Draft, Part};
use crate::chunk::ChunkOperator;
use crate::dtype::DType;
use crate::extent::{Extent, Measure, Unknown};
use crate::index::Parts;
use crate::limits::INDICES_MAX;
use crate::refusal::Reason;
use crate::rules::rechunk::{Apart, rechunk, together};
use crate::rules::select::element;
use crate::tiled::Tiled;
use crate::tiling::Input;

/// The elements of a part of the result: of which parts they come, and from which place of which of those.
struct Gathered {
    parts: Vec<usize>,
    from: Vec<(usize, u64)>,
}

/// Parts of the result are as long as the longest of what they are taken from.
pub(super) fn take(
    builder: &mut Builder,
    tiled: &Tiled,
    indices: &[i64],
    axis: i64,
) -> Result<Tiled, Reason> {
    if indices.len() > INDICES_MAX {
        return Err(Reason::TooManyIndices);
    }
    let dtype = tiled.dtype()?;
    let axis = tiled.axis(axis)?;
    let (known, extent) = (tiled.known(axis)?, tiled.total(axis)?);
    let places = indices.iter().map(|index| element(*index, extent)).collect::<Result<Vec<_>, _>>()?;
    let longest = known.iter().copied().max().unwrap_or(1).max(1);
    let longest = usize::try_from(longest).unwrap_or(usize::MAX);
    let parts = Parts::new(known);
    let mut gathered: Vec<Gathered> = places.chunks(longest).map(|places| gather(&parts, places)).collect();
    if gathered.is_empty() {
        gathered.push(Gathered { parts: vec![0], from: Vec::new() });
    }
    let mut splits = tiled.splits.clone();
    splits.0[axis] = gathered.iter().map(|part| Extent::Known(part.from.len() as u64)).collect();
    let mut chunks = Vec::new();
    for index in builder.grid(&splits)? {
        let Gathered { parts, from } = &gathered[index[axis]];
        let mut source = index.clone();
        let inputs = parts.iter().map(|part| {
            source[axis] = *part;
            tiled.chunk(&source)
        });
        let inputs = inputs.collect();
        let operator = ChunkOperator::Gather { axis, from: from.clone() };
        let draft = Draft::new(operator, inputs, &tiled.content).at(&index, &splits);
        chunks.push(builder.add(Part::Output, draft)?);
    }
    Ok(Tiled::tensor(dtype, splits, chunks))
}

fn gather(parts: &Parts, places: &[u64]) -> Gathered {
    let found: Vec<(usize, u64)> = places.iter().map(|place| parts.find(*place)).collect();
    let mut used: Vec<usize> = found.iter().map(|(part, _)| *part).collect();
    used.sort_unstable();
    used.dedup();
    let input = |part: usize| used.partition_point(|other| *other < part);
    let from = found.into_iter().map(|(part, place)| (input(part), place)).collect();
    Gathered { parts: used, from }
}

/// What is picked of each part is known when it has been computed; it has the same name wherever the same mask picks.
pub(super) fn compress(builder: &mut Builder, inputs: &[Input<'_>], axis: i64) -> Result<Tiled, Reason> {
    let (tiled, mask) = (inputs[0].tiled, inputs[1].tiled);
    let dtype = tiled.dtype()?;
    check_mask(mask)?;
    let axis = tiled.axis(axis)?;
    let parts = mask.splits.axis(0);
    together(&[tiled.splits.axis(axis), parts]).map_err(|apart| match apart {
        Apart::Unknown => Reason::Unknown { axis },
        Apart::Lengths(_) => Reason::Shapes { left: tiled.splits.shape(), right: mask.splits.shape() },
    })?;
    let mut wanted = tiled.splits.clone();
    wanted.0[axis] = parts.to_vec();
    let cut = rechunk(builder, Part::Between, tiled, &wanted)?;
    let mut splits = wanted;
    splits.0[axis] = kept(inputs[1], parts.len());
    let mut chunks = Vec::new();
    for (index, chunk) in builder.grid(&splits)?.zip(&cut.chunks) {
        let inputs = vec![*chunk, mask.chunks[index[axis]]];
        let draft = Draft::new(ChunkOperator::Compress { axis }, inputs, &tiled.content);
        chunks.push(builder.add(Part::Output, draft.at(&index, &splits))?);
    }
    Ok(Tiled::tensor(dtype, splits, chunks))
}

/// A mask has one axis, and is true or false.
pub(super) fn check_mask(mask: &Tiled) -> Result<(), Reason> {
    let is = mask.dtype()?;
    if is != DType::Bool {
        return Err(Reason::WrongDType { is, wanted: DType::Bool });
    }
    if mask.splits.dims() != 1 {
        return Err(Reason::Axes { is: mask.splits.dims(), wanted: "1".to_owned() });
    }
    Ok(())
}

/// How many elements each part of a mask keeps.
pub(super) fn kept(mask: Input<'_>, parts: usize) -> Vec<Extent> {
    let unknown = |part| Unknown { tileable: mask.place, axis: 0, part, measure: Measure::True };
    (0..parts).map(|part| Extent::Unknown(unknown(part))).collect()
}
