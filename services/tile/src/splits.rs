//! How all dimensions of a tileable are cut.

use serde::{Deserialize, Serialize};

use crate::extent::Extent;

/// The extents of the parts, for each axis. An axis has at least one part; a known one of no extent stands alone, but for
/// tileables that are fetched, which have what execution made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Splits(pub Vec<Vec<Extent>>);

impl Splits {
    #[must_use]
    pub fn dims(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn axis(&self, axis: usize) -> &[Extent] {
        &self.0[axis]
    }

    /// How many parts each axis has.
    #[must_use]
    pub fn counts(&self) -> Vec<usize> {
        self.0.iter().map(Vec::len).collect()
    }

    /// The extents of the chunk at an index.
    #[must_use]
    pub fn extents(&self, index: &[usize]) -> Vec<Extent> {
        self.0.iter().zip(index).map(|(parts, part)| parts[*part]).collect()
    }

    /// The extents of all parts of one axis, if all are known.
    #[must_use]
    pub fn known(&self, axis: usize) -> Option<Vec<u64>> {
        self.axis(axis).iter().map(|extent| extent.known()).collect()
    }

    /// How long an axis is, if all of its parts are known.
    #[must_use]
    pub fn total(&self, axis: usize) -> Option<u64> {
        total(self.axis(axis))
    }

    /// How long each axis is, as far as it is known.
    #[must_use]
    pub fn shape(&self) -> Vec<Option<u64>> {
        self.0.iter().map(|parts| total(parts)).collect()
    }

    /// How long each axis is, if all are known.
    #[must_use]
    pub fn known_shape(&self) -> Option<Vec<u64>> {
        self.shape().into_iter().collect()
    }
}

/// How long an axis of these parts is, if all are known. Sums of them stay below the bound of a dimension.
pub(crate) fn total(parts: &[Extent]) -> Option<u64> {
    parts.iter().try_fold(0_u64, |sum, extent| Some(sum.saturating_add(extent.known()?)))
}

/// Known extents as parts.
pub(crate) fn known_parts(extents: &[u64]) -> Vec<Extent> {
    extents.iter().copied().map(Extent::Known).collect()
}

/// All indexes of a grid, the last axis first, as numpy lays out arrays.
pub(crate) fn indexes(counts: &[usize]) -> Indexes {
    Indexes { counts: counts.to_vec(), next: (!counts.contains(&0)).then(|| vec![0; counts.len()]) }
}

/// The place of an index in that order.
pub(crate) fn place(index: &[usize], counts: &[usize]) -> usize {
    index.iter().zip(counts).fold(0, |place, (at, count)| place * count + at)
}

/// See [`indexes`].
pub(crate) struct Indexes {
    counts: Vec<usize>,
    next: Option<Vec<usize>>,
}

impl Iterator for Indexes {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        let index = self.next.take()?;
        let mut after = index.clone();
        for axis in (0..self.counts.len()).rev() {
            after[axis] += 1;
            if after[axis] < self.counts[axis] {
                self.next = Some(after);
                break;
            }
            after[axis] = 0;
        }
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_come_in_the_order_of_their_places() {
        let counts = [2, 1, 3];
        let all: Vec<_> = indexes(&counts).collect();
        assert_eq!(all.len(), 6);
        for (at, index) in all.iter().enumerate() {
            assert_eq!(place(index, &counts), at);
        }
        assert_eq!(indexes(&[]).collect::<Vec<_>>(), [Vec::<usize>::new()]);
        assert_eq!(indexes(&[2, 0]).count(), 0);
    }
}
