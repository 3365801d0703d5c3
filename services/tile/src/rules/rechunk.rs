//! The same tensor, cut otherwise.

use crate::builder::{Builder, Draft, Part};
use crate::chunk::ChunkOperator;
use crate::extent::Extent;
use crate::index::{Cut, Parts, Piece, Range};
use crate::refusal::Reason;
use crate::splits::{Splits, indexes};
use crate::tiled::Tiled;

/// Cuts a tensor as `wanted` says, which is a way to cut it. Chunks that are there already are taken as they are; each of
/// the others is one node, that puts pieces together.
pub(super) fn rechunk(
    builder: &mut Builder,
    part: Part,
    tiled: &Tiled,
    wanted: &Splits,
) -> Result<Tiled, Reason> {
    let all = builder.grid(wanted)?;
    if tiled.splits == *wanted {
        return Ok(tiled.clone());
    }
    let axes = (0..wanted.dims()).map(|axis| pieces(tiled, wanted, axis)).collect::<Result<Vec<_>, _>>()?;
    let mut chunks = Vec::new();
    for index in all {
        let here: Vec<&[Piece]> =
            axes.iter().zip(&index).map(|(axis, part)| axis[*part].as_slice()).collect();
        chunks.push(match alone(&here) {
            Some((source, ranges)) if ranges.iter().all(|range| *range == Range::Whole) => {
                tiled.chunk(&source)
            }
            Some((source, ranges)) => {
                let operator = ChunkOperator::Slice { ranges, drop: Vec::new() };
                let draft = Draft::new(operator, vec![tiled.chunk(&source)], &tiled.content);
                builder.add(part, draft.at(&index, wanted))?
            }
            None => {
                let draft = assemble(builder, tiled, &here)?;
                builder.add(part, draft.at(&index, wanted))?
            }
        });
    }
    Ok(Tiled { content: tiled.content.clone(), splits: wanted.clone(), chunks })
}

/// For each part that is wanted, of which pieces of the parts there are it consists.
fn pieces(tiled: &Tiled, wanted: &Splits, axis: usize) -> Result<Vec<Vec<Piece>>, Reason> {
    let (is, wanted_parts) = (tiled.splits.axis(axis), wanted.axis(axis));
    if is == wanted_parts {
        return Ok(is.iter().enumerate().map(|(part, extent)| vec![Piece::whole(part, *extent)]).collect());
    }
    let parts = Parts::new(tiled.known(axis)?);
    let wanted_extents = wanted.known(axis).ok_or(Reason::Unknown { axis })?;
    if tiled.splits.total(axis) != wanted.total(axis) {
        return Err(Reason::Shapes { left: tiled.splits.shape(), right: wanted.shape() });
    }
    let mut begin = 0;
    let mut found = Vec::with_capacity(wanted_extents.len());
    for extent in wanted_extents {
        found.push(parts.pieces(Cut::run(begin, extent)));
        begin += extent;
    }
    Ok(found)
}

/// The one chunk that all of it is in, if it is in one.
fn alone(axes: &[&[Piece]]) -> Option<(Vec<usize>, Vec<Range>)> {
    let only = axes.iter().map(|pieces| match pieces {
        [piece] => Some((piece.part, piece.range)),
        _ => None,
    });
    Some(only.collect::<Option<Vec<_>>>()?.into_iter().unzip())
}

fn assemble(builder: &mut Builder, tiled: &Tiled, axes: &[&[Piece]]) -> Result<Draft, Reason> {
    let grid: Vec<usize> = axes.iter().map(|pieces| pieces.len()).collect();
    // Looked at before the pieces are listed, of which there may be as many as there are chunks.
    builder.room(&grid)?;
    let mut inputs = Vec::new();
    let mut pieces = Vec::new();
    for at in indexes(&grid) {
        let here = axes.iter().zip(&at).map(|(pieces, piece)| pieces[*piece]);
        let (source, ranges): (Vec<usize>, Vec<Range>) = here.map(|piece| (piece.part, piece.range)).unzip();
        inputs.push(tiled.chunk(&source));
        pieces.push(ranges);
    }
    Ok(Draft::new(ChunkOperator::Assemble { grid, pieces }, inputs, &tiled.content))
}

/// Parts of which all of these are made: their points of division together.
///
/// # Errors
/// They are not equal, and not all known; or not equally long. Then the place of the list that differs from the first.
pub(super) fn together(lists: &[&[Extent]]) -> Result<Vec<Extent>, Apart> {
    let Some((first, others)) = lists.split_first() else { return Ok(vec![Extent::Known(1)]) };
    if others.iter().all(|other| other == first) {
        return Ok(first.to_vec());
    }
    let total = crate::splits::total(first).ok_or(Apart::Unknown)?;
    let mut ends = Vec::new();
    for (place, list) in lists.iter().enumerate() {
        if crate::splits::total(list).ok_or(Apart::Unknown)? != total {
            return Err(Apart::Lengths(place));
        }
        let mut end = 0;
        for extent in *list {
            end += extent.known().unwrap_or(0);
            ends.push(end);
        }
    }
    ends.sort_unstable();
    ends.dedup();
    let mut begin = 0;
    let mut parts = Vec::with_capacity(ends.len());
    for end in ends {
        if end > begin {
            parts.push(Extent::Known(end - begin));
        }
        begin = end;
    }
    if parts.is_empty() {
        parts.push(Extent::Known(0));
    }
    Ok(parts)
}

/// Why parts do not go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Apart {
    Unknown,
    /// That one of the lists is not as long as the first.
    Lengths(usize),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::splits::known_parts;

    #[test]
    fn points_of_division_are_united() {
        let union = |lists: &[&[u64]]| {
            let lists: Vec<_> = lists.iter().map(|list| known_parts(list)).collect();
            together(&lists.iter().map(Vec::as_slice).collect::<Vec<_>>())
        };
        assert_eq!(union(&[&[4, 4], &[3, 5]]).unwrap(), known_parts(&[3, 1, 4]));
        assert_eq!(union(&[&[8], &[8]]).unwrap(), known_parts(&[8]));
        assert_eq!(union(&[&[0], &[0, 0]]).unwrap(), known_parts(&[0]));
        assert_eq!(union(&[&[3, 0, 2], &[5]]).unwrap(), known_parts(&[3, 2]));
        assert_eq!(union(&[]).unwrap(), known_parts(&[1]));
        assert_eq!(union(&[&[8], &[8], &[2, 5]]), Err(Apart::Lengths(2)));
    }
}
