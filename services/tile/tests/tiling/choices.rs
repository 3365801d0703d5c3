//! Bytes as decisions about numbers, shapes and chunks.

use tripod_tile::{AxisIndex, Chunking, Scalar};

/// Bytes that decide, one after the other; after the last one it is always the first choice.
pub(crate) struct Choices<'a>(pub(crate) &'a [u8]);

impl Choices<'_> {
    pub(crate) fn below(&mut self, count: usize) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first) % count
    }

    pub(crate) fn of<T: Copy>(&mut self, some: &[T]) -> T {
        some[self.below(some.len())]
    }

    pub(crate) fn signed(&mut self, below: i64) -> i64 {
        i64::try_from(self.below(usize::try_from(2 * below + 1).unwrap())).unwrap() - below
    }

    pub(crate) fn shape(&mut self) -> Vec<u64> {
        let dims = self.below(4);
        (0..dims).map(|_| self.of(&[3, 1, 4, 2, 5, 3, 7, 0])).collect()
    }

    pub(crate) fn chunking(&mut self, shape: &[u64]) -> Chunking {
        match self.below(4) {
            0 => Chunking::Size(1 + self.below(4) as u64),
            1 => Chunking::Sizes(shape.iter().map(|_| 1 + self.below(4) as u64).collect()),
            2 => Chunking::Splits(shape.iter().map(|extent| self.parts(*extent, false)).collect()),
            _ => Chunking::Default,
        }
    }

    /// An extent as a sum.
    pub(crate) fn parts(&mut self, extent: u64, with_empty: bool) -> Vec<u64> {
        let mut parts = Vec::new();
        let mut left = extent;
        while left > 0 {
            let part = (self.below(4) as u64 + u64::from(!with_empty)).min(left);
            parts.push(part);
            left -= part;
            if parts.len() > 12 {
                parts.push(left);
                break;
            }
        }
        if parts.is_empty() {
            parts.push(0);
        }
        if !with_empty {
            parts.retain(|part| *part > 0 || extent == 0);
        }
        parts
    }

    pub(crate) fn scalar(&mut self) -> Scalar {
        match self.below(4) {
            0 => Scalar::Bool(self.below(2) == 1),
            1 => Scalar::Float(self.signed(4) as f64 / 2.0),
            _ => Scalar::Int(self.signed(3)),
        }
    }

    pub(crate) fn slice(&mut self) -> AxisIndex {
        let bound = |choices: &mut Self| (choices.below(3) > 0).then(|| choices.signed(8));
        let (start, stop) = (bound(self), bound(self));
        let step = self.of(&[None, Some(1), Some(-1), Some(2), Some(-2), Some(3), Some(-3)]);
        AxisIndex::Slice { start, stop, step }
    }
}
