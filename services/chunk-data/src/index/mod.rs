//! What of a chunk is wanted: for each axis a slice, a number, or a list, each by itself and as numpy means it.
//!
//! Where numpy has both a number and a list it moves axes to the front; here every axis stays where it is, as in
//! `chunk[:, list][3]`.

mod gather;

pub(crate) use gather::{Gather, scatter};
use tripod_proto::mars::v1::dim_index::Index as Wire;
use tripod_proto::mars::v1::{Index, Slice};

use crate::element::bytes_of;
use crate::limits::ANSWER_BYTES_MAX;

/// Which elements along one axis, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pick {
    /// `count` elements from `first` on, each `step` behind the one before.
    Range {
        first: u64,
        step: i64,
        count: u64,
    },
    List(Vec<u64>),
}

/// What of a chunk is wanted, compared with its shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Picked {
    /// One for each axis of the chunk; every place is one of it.
    pub(crate) picks: Vec<Pick>,
    /// The shape of what is picked: axes with a number are not in it.
    pub(crate) shape: Vec<u64>,
}

/// Why an index is none of a chunk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OutOfRange {
    #[error("{given} indexes are too many for {axes} axes")]
    TooMany { given: usize, axes: usize },
    #[error("{place} is no place along axis {axis}, which has {extent}")]
    Place { place: i64, axis: usize, extent: u64 },
    #[error("the slice along axis {0} has a step of 0")]
    Step(usize),
    #[error("there are lists along several axes, and one is allowed")]
    Lists,
    #[error("what is picked is more than {ANSWER_BYTES_MAX} bytes")]
    TooLarge,
    #[error("axis {0} is too long")]
    TooLong(usize),
    #[error("a number drops the axis of a frame's rows; give a slice of one row")]
    Dropped,
    #[error("nothing can be picked of a partial result")]
    Partial,
}

impl Pick {
    pub(crate) fn all(extent: u64) -> Self {
        Self::Range { first: 0, step: 1, count: extent }
    }

    pub(crate) fn count(&self) -> u64 {
        match self {
            Self::Range { count, .. } => *count,
            Self::List(places) => places.len() as u64,
        }
    }

    /// Whether it is all of an axis, in order.
    pub(crate) fn is_all(&self, extent: u64) -> bool {
        *self == Self::all(extent)
    }

    /// The place of the `at`-th.
    pub(crate) fn place(&self, at: u64) -> u64 {
        match self {
            // Within the axis, so no sum leaves 64 bits.
            Self::Range { first, step, .. } => first.wrapping_add_signed(step.wrapping_mul(at as i64)),
            Self::List(places) => {
                usize::try_from(at).ok().and_then(|at| places.get(at)).copied().unwrap_or(0)
            }
        }
    }
}

impl Picked {
    /// Everything of a chunk.
    pub(crate) fn all(shape: &[u64]) -> Self {
        Self { picks: shape.iter().map(|extent| Pick::all(*extent)).collect(), shape: shape.to_vec() }
    }

    /// What the index picks of a chunk with that shape, whose elements have `width` bytes.
    ///
    /// # Errors
    /// [`OutOfRange`].
    pub(crate) fn of(index: &Index, shape: &[u64], width: usize) -> Result<Self, OutOfRange> {
        if index.dims.len() > shape.len() {
            return Err(OutOfRange::TooMany { given: index.dims.len(), axes: shape.len() });
        }
        let mut picked = Self { picks: Vec::with_capacity(shape.len()), shape: Vec::new() };
        let mut lists = 0;
        for (axis, extent) in shape.iter().copied().enumerate() {
            // Beyond it the places of Python are no numbers of 64 bits.
            let len = i64::try_from(extent).map_err(|_| OutOfRange::TooLong(axis))?;
            let wanted = index.dims.get(axis).and_then(|dim| dim.index.as_ref());
            let place = |place: i64| {
                let from_start = if place < 0 { place.checked_add(len) } else { Some(place) };
                let inside = from_start.filter(|place| (0..len).contains(place));
                let inside = inside.and_then(|place| u64::try_from(place).ok());
                inside.ok_or(OutOfRange::Place { place, axis, extent })
            };
            let pick = match wanted {
                None => Pick::all(extent),
                Some(Wire::Slice(slice)) => range(slice, len).ok_or(OutOfRange::Step(axis))?,
                Some(Wire::Integer(integer)) => {
                    picked.picks.push(Pick::Range { first: place(*integer)?, step: 1, count: 1 });
                    continue;
                }
                Some(Wire::List(list)) => {
                    lists += 1;
                    if lists > 1 {
                        return Err(OutOfRange::Lists);
                    }
                    Pick::List(list.integers.iter().map(|at| place(*at)).collect::<Result<_, _>>()?)
                }
            };
            picked.shape.push(pick.count());
            picked.picks.push(pick);
        }
        match bytes_of(&picked.shape, width) {
            Some(bytes) if bytes <= ANSWER_BYTES_MAX => Ok(picked),
            _ => Err(OutOfRange::TooLarge),
        }
    }

    /// How many elements.
    pub(crate) fn elements(&self) -> u64 {
        // It was compared with a bound when it was made, or is a chunk that is there.
        bytes_of(&self.shape, 1).unwrap_or(u64::MAX)
    }

    pub(crate) fn is_all(&self, shape: &[u64]) -> bool {
        self.shape.len() == shape.len()
            && self.picks.iter().zip(shape).all(|(pick, extent)| pick.is_all(*extent))
    }
}

/// As Python's `slice.indices`. `None` if the step is 0.
fn range(slice: &Slice, len: i64) -> Option<Pick> {
    let step = slice.step.unwrap_or(1);
    if step == 0 {
        return None;
    }
    let (lowest, highest) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let bound = |given: Option<i64>, without: i64| match given {
        None => without,
        Some(given) if given < 0 => given.saturating_add(len).max(lowest),
        Some(given) => given.min(highest),
    };
    let (start, stop) = if step > 0 { (0, len) } else { (len - 1, -1) };
    let (start, stop) = (bound(slice.start, start), bound(slice.stop, stop));
    let distance = if step > 0 { stop - start } else { start - stop };
    let count = u64::try_from(distance).unwrap_or(0).div_ceil(step.unsigned_abs());
    Some(Pick::Range { first: u64::try_from(start).unwrap_or(0), step, count })
}

#[cfg(test)]
mod tests;
