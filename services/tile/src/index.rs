//! What is picked along an axis, as numpy picks it, and which parts it is in.

use serde::{Deserialize, Serialize};

use crate::extent::Extent;

/// What a client picks along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AxisIndex {
    /// One element; the axis is dropped. Negative ones count from the end.
    At(i64),
    /// As Python's `slice`: what is absent is the end on that side, or a step of 1.
    Slice {
        #[serde(default)]
        start: Option<i64>,
        #[serde(default)]
        stop: Option<i64>,
        #[serde(default)]
        step: Option<i64>,
    },
}

impl AxisIndex {
    /// Everything, which needs no extent to be known.
    pub const ALL: Self = Self::Slice { start: None, stop: None, step: None };

    pub(crate) fn is_all(self) -> bool {
        match self {
            Self::At(_) => false,
            Self::Slice { start, stop, step } => {
                start.unwrap_or(0) == 0 && stop.is_none() && step.unwrap_or(1) == 1
            }
        }
    }
}

/// What a worker picks along one axis of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Range {
    /// All of it, whatever its extent is.
    Whole,
    /// `start`, `start + step`, and so on: `count` elements, all of which are there.
    Part { start: u64, step: i64, count: u64 },
}

/// A slice of an axis whose extent is known. All of its elements are there; without any, it starts at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) start: u64,
    pub(crate) step: i64,
    pub(crate) count: u64,
}

impl Cut {
    /// As Python's `slice.indices`. None: the step is 0.
    pub(crate) fn of(start: Option<i64>, stop: Option<i64>, step: Option<i64>, extent: u64) -> Option<Self> {
        let length = i128::from(extent);
        let by = i128::from(step.unwrap_or(1));
        if by == 0 {
            return None;
        }
        let (low, high) = if by > 0 { (0, length) } else { (-1, length - 1) };
        let bound = |value: Option<i64>, otherwise: i128| {
            value.map_or(otherwise, |value| {
                let value = i128::from(value);
                (if value < 0 { value + length } else { value }).clamp(low, high)
            })
        };
        let (first, end) = if by > 0 {
            (bound(start, low), bound(stop, high))
        } else {
            (bound(start, high), bound(stop, low))
        };
        let span = if by > 0 { end - first } else { first - end };
        let count = if span > 0 { (span - 1) / by.abs() + 1 } else { 0 };
        let count = u64::try_from(count).ok()?;
        if count == 0 {
            return Some(Self { start: 0, step: 1, count });
        }
        Some(Self { start: u64::try_from(first).ok()?, step: step.unwrap_or(1), count })
    }

    /// A run of neighbours.
    pub(crate) const fn run(start: u64, count: u64) -> Self {
        Self { start, step: 1, count }
    }

    /// The last element that is picked, if there is one.
    fn last(self) -> u64 {
        let steps = self.count.saturating_sub(1).saturating_mul(self.step.unsigned_abs());
        if self.step > 0 { self.start.saturating_add(steps) } else { self.start.saturating_sub(steps) }
    }
}

/// What a cut picks from one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The number of the part.
    pub(crate) part: usize,
    pub(crate) range: Range,
    pub(crate) extent: Extent,
}

impl Piece {
    /// All of a part.
    pub(crate) const fn whole(part: usize, extent: Extent) -> Self {
        Self { part, range: Range::Whole, extent }
    }
}

/// The parts of an axis, all known, and where each begins.
#[derive(Debug)]
pub(crate) struct Parts {
    extents: Vec<u64>,
    begins: Vec<u64>,
}

impl Parts {
    pub(crate) fn new(extents: Vec<u64>) -> Self {
        let mut end = 0_u64;
        let begins = extents
            .iter()
            .map(|extent| {
                let begin = end;
                end = end.saturating_add(*extent);
                begin
            })
            .collect();
        Self { extents, begins }
    }

    /// Where a part begins.
    pub(crate) fn begin(&self, part: usize) -> u64 {
        self.begins[part]
    }

    /// In which part an element is, and where in it. The element is there.
    pub(crate) fn find(&self, element: u64) -> (usize, u64) {
        let part = self.begins.partition_point(|begin| *begin <= element).saturating_sub(1);
        (part, element - self.begins[part])
    }

    /// What a cut picks, in its order. Without any element it is nothing of the first part, so that the result has a
    /// chunk, too.
    pub(crate) fn pieces(&self, cut: Cut) -> Vec<Piece> {
        if cut.count == 0 {
            return vec![self.piece(0, 0, 1, 0)];
        }
        let (first, last) = (self.find(cut.start).0, self.find(cut.last()).0);
        if cut.step > 0 {
            (first..=last).filter_map(|part| self.forward(cut, part)).collect()
        } else {
            (last..=first).rev().filter_map(|part| self.backward(cut, part)).collect()
        }
    }

    fn forward(&self, cut: Cut, part: usize) -> Option<Piece> {
        let (begin, extent) = (self.begins[part], self.extents[part]);
        let step = cut.step.unsigned_abs();
        let first = cut.start + begin.saturating_sub(cut.start).div_ceil(step) * step;
        let end = (begin + extent).min(cut.last() + 1);
        (first < end).then(|| self.piece(part, first - begin, cut.step, (end - 1 - first) / step + 1))
    }

    fn backward(&self, cut: Cut, part: usize) -> Option<Piece> {
        let (begin, extent) = (self.begins[part], self.extents[part]);
        if extent == 0 {
            return None;
        }
        let step = cut.step.unsigned_abs();
        let over = cut.start.saturating_sub(begin + extent - 1).div_ceil(step) * step;
        let first = cut.start.checked_sub(over)?;
        let least = begin.max(cut.last());
        (first >= least).then(|| self.piece(part, first - begin, cut.step, (first - least) / step + 1))
    }

    fn piece(&self, part: usize, start: u64, step: i64, count: u64) -> Piece {
        let is_whole = start == 0 && step == 1 && count == self.extents[part];
        let range = if is_whole { Range::Whole } else { Range::Part { start, step, count } };
        Piece { part, range, extent: Extent::Known(count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Python would pick, element by element.
    fn picked(cut: Cut) -> Vec<u64> {
        (0..cut.count)
            .map(|at| {
                let steps = i64::try_from(at).unwrap() * cut.step;
                cut.start.checked_add_signed(steps).unwrap()
            })
            .collect()
    }

    #[test]
    fn slices_are_those_of_python() {
        let all = |start, stop, step| picked(Cut::of(start, stop, step, 5).unwrap());
        assert_eq!(all(None, None, None), [0, 1, 2, 3, 4]);
        assert_eq!(all(None, None, Some(-1)), [4, 3, 2, 1, 0]);
        assert_eq!(all(Some(-2), None, None), [3, 4]);
        assert_eq!(all(Some(1), Some(-1), Some(2)), [1, 3]);
        assert_eq!(all(Some(10), Some(-10), Some(-3)), [4, 1]);
        assert_eq!(all(Some(3), Some(3), None), [0_u64; 0]);
        assert_eq!(all(Some(i64::MIN), Some(i64::MAX), Some(i64::MAX)), [0]);
        assert_eq!(all(Some(i64::MAX), Some(i64::MIN), Some(i64::MIN)), [4]);
        assert_eq!(Cut::of(None, None, Some(0), 5), None);
        assert_eq!(Cut::of(None, None, Some(-1), 0), Some(Cut::run(0, 0)));
    }

    #[test]
    fn pieces_are_what_the_cut_picks_in_its_order() {
        for extents in [vec![5], vec![2, 3], vec![1, 1, 1, 1, 1], vec![0, 4, 0, 1], vec![3, 0, 2]] {
            let parts = Parts::new(extents);
            for start in -6..6 {
                for stop in -6..6 {
                    for step in [-3, -2, -1, 1, 2, 4] {
                        let cut = Cut::of(Some(start), Some(stop), Some(step), 5).unwrap();
                        let mut found = Vec::new();
                        for piece in parts.pieces(cut) {
                            let local = match piece.range {
                                Range::Whole => Cut::run(0, piece.extent.known().unwrap()),
                                Range::Part { start, step, count } => Cut { start, step, count },
                            };
                            assert_eq!(piece.extent, Extent::Known(local.count));
                            found.extend(picked(local).into_iter().map(|at| at + parts.begin(piece.part)));
                        }
                        assert_eq!(found, picked(cut), "{start}:{stop}:{step} of {parts:?}");
                    }
                }
            }
        }
    }
}
