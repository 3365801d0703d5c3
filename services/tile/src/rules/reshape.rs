//! The same elements in their order, in another shape. Axes of both shapes are grouped, so that each group has as many
//! elements as its counterpart. A group of one axis stays as it is. In others the first axis may be cut, if the elements of
//! each of its parts are whole rows of the new first axis; otherwise the group becomes one part.

use std::ops::Range;

use crate::builder::{Builder, Draft, Part};
use crate::chunk::ChunkOperator;
use crate::extent::Extent;
use crate::limits::DIMS_MAX;
use crate::refusal::Reason;
use crate::rules::rechunk::rechunk;
use crate::splits::{Splits, known_parts};
use crate::tiled::Tiled;

/// Axes of both shapes over which the same elements lie.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    old: Range<usize>,
    new: Range<usize>,
}

pub(super) fn reshape(builder: &mut Builder, tiled: &Tiled, wanted: &[i64]) -> Result<Tiled, Reason> {
    let dtype = tiled.dtype()?;
    if wanted.len() > DIMS_MAX {
        return Err(Reason::Dims { dims: wanted.len() });
    }
    let old = tiled.shape()?;
    let new = resolve(&old, wanted)?;
    let (before, after) =
        if old.contains(&0) { (single(&old), single(&new)) } else { cut(tiled, &old, &new) };
    let source = rechunk(builder, Part::Between, tiled, &before)?;
    let mut chunks = Vec::with_capacity(source.chunks.len());
    // Only first axes of groups are cut, in both shapes alike, so chunks are in the same order.
    for (index, chunk) in builder.grid(&after)?.zip(&source.chunks) {
        let draft = Draft::new(ChunkOperator::Reshape, vec![*chunk], &tiled.content);
        chunks.push(builder.add(Part::Output, draft.at(&index, &after))?);
    }
    Ok(Tiled::tensor(dtype, after, chunks))
}

/// The new shape, with an extent in the place of -1.
fn resolve(old: &[u64], wanted: &[i64]) -> Result<Vec<u64>, Reason> {
    let refused = || Reason::Reshape { shape: old.to_vec(), wanted: wanted.to_vec() };
    let elements: u64 = old.iter().product();
    let left = wanted.iter().position(|extent| *extent == -1);
    let mut known = 1_u64;
    let mut new = Vec::with_capacity(wanted.len());
    for (axis, extent) in wanted.iter().enumerate() {
        if Some(axis) == left {
            new.push(0);
            continue;
        }
        let extent = u64::try_from(*extent).map_err(|_| refused())?;
        known = known.checked_mul(extent).ok_or_else(refused)?;
        new.push(extent);
    }
    match left {
        None if known == elements => Ok(new),
        Some(axis) if known > 0 && elements.is_multiple_of(known) => {
            new[axis] = elements / known;
            Ok(new)
        }
        _ => Err(refused()),
    }
}

fn single(shape: &[u64]) -> Splits {
    Splits(shape.iter().map(|extent| vec![Extent::Known(*extent)]).collect())
}

/// How the old shape is cut, and then the new one.
fn cut(tiled: &Tiled, old: &[u64], new: &[u64]) -> (Splits, Splits) {
    let (mut before, mut after) = (single(old), single(new));
    for Group { old: from, new: to } in groups(old, new) {
        let (Some(first), Some(new_first)) = (first(old, &from), first(new, &to)) else { continue };
        let parts = tiled.splits.known(first).unwrap_or_default();
        let below: u64 = old[first + 1..from.end].iter().product();
        let new_below: u64 = new[new_first + 1..to.end].iter().product();
        let rows: Option<Vec<u64>> = parts
            .iter()
            .map(|part| (part * below).is_multiple_of(new_below).then(|| part * below / new_below))
            .collect();
        if let Some(rows) = rows {
            before.0[first] = known_parts(&parts);
            after.0[new_first] = known_parts(&rows);
        }
    }
    (before, after)
}

/// The first axis of a group; those of one element do not count, unless there are no others.
fn first(shape: &[u64], group: &Range<usize>) -> Option<usize> {
    group.clone().find(|axis| shape[*axis] > 1).or_else(|| group.clone().next())
}

/// Of shapes with equally many elements, and some.
fn groups(old: &[u64], new: &[u64]) -> Vec<Group> {
    let mut groups = Vec::new();
    let (mut from, mut to) = (0, 0);
    while from < old.len() || to < new.len() {
        let begin = (from, to);
        let mut elements = 1;
        let mut new_elements = 1;
        if let Some(extent) = old.get(from) {
            elements = *extent;
            from += 1;
        }
        if let Some(extent) = new.get(to) {
            new_elements = *extent;
            to += 1;
        }
        while elements != new_elements {
            if elements < new_elements {
                elements *= old[from];
                from += 1;
            } else {
                new_elements *= new[to];
                to += 1;
            }
        }
        groups.push(Group { old: begin.0..from, new: begin.1..to });
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_as_many_elements_as_their_counterparts() {
        let group = |old, new| Group { old, new };
        assert_eq!(groups(&[2, 3, 4], &[6, 4]), [group(0..2, 0..1), group(2..3, 1..2)]);
        assert_eq!(groups(&[6], &[2, 3]), [group(0..1, 0..2)]);
        assert_eq!(groups(&[5], &[5, 1, 1]), [group(0..1, 0..1), group(1..1, 1..2), group(1..1, 2..3)]);
        assert_eq!(groups(&[1, 5], &[5]), [group(0..2, 0..1)]);
        assert!(groups(&[], &[]).is_empty());
    }

    #[test]
    fn what_is_left_is_filled_in() {
        assert_eq!(resolve(&[4, 6], &[-1, 8]), Ok(vec![3, 8]));
        assert_eq!(resolve(&[0, 6], &[-1, 2]), Ok(vec![0, 2]));
        assert_eq!(resolve(&[], &[]), Ok(vec![]));
        for wrong in [&[5, 5][..], &[-1, -1], &[-2, 12], &[-1, 0], &[-1, 7], &[i64::MAX, i64::MAX]] {
            assert!(resolve(&[4, 6], wrong).is_err(), "{wrong:?}");
        }
    }
}
