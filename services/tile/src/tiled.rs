//! A tileable whose chunks are known.

use crate::chunk::{ChunkId, Content};
use crate::dtype::DType;
use crate::extent::Extent;
use crate::refusal::Reason;
use crate::splits::{Splits, place};

/// What a rule makes of one tileable, and finds of its inputs.
#[derive(Debug, Clone)]
pub(crate) struct Tiled {
    pub(crate) content: Content,
    pub(crate) splits: Splits,
    /// The last axis first.
    pub(crate) chunks: Vec<ChunkId>,
}

impl Tiled {
    pub(crate) fn tensor(dtype: DType, splits: Splits, chunks: Vec<ChunkId>) -> Self {
        Self { content: Content::Tensor(dtype), splits, chunks }
    }

    /// The type of its elements, if it is a tensor.
    pub(crate) fn dtype(&self) -> Result<DType, Reason> {
        match &self.content {
            Content::Tensor(dtype) => Ok(*dtype),
            Content::Frame(_) | Content::Partial => Err(Reason::Frame),
        }
    }

    /// The chunk at an index.
    pub(crate) fn chunk(&self, index: &[usize]) -> ChunkId {
        self.chunks[place(index, &self.splits.counts())]
    }

    /// The extents of all parts of one axis.
    pub(crate) fn known(&self, axis: usize) -> Result<Vec<u64>, Reason> {
        self.splits.known(axis).ok_or(Reason::Unknown { axis })
    }

    /// How long one axis is.
    pub(crate) fn total(&self, axis: usize) -> Result<u64, Reason> {
        self.splits.total(axis).ok_or(Reason::Unknown { axis })
    }

    /// How long all axes are.
    pub(crate) fn shape(&self) -> Result<Vec<u64>, Reason> {
        (0..self.splits.dims()).map(|axis| self.total(axis)).collect()
    }

    /// The place of an axis, which a client may count from the last one.
    pub(crate) fn axis(&self, axis: i64) -> Result<usize, Reason> {
        resolve_axis(axis, self.splits.dims())
    }

    /// Whether the axis is known to have one element, which goes together with any number of them.
    pub(crate) fn is_one(&self, axis: usize) -> bool {
        let mut length = 0_u64;
        // It is asked for each chunk, so not all parts can be looked at each time.
        for extent in self.splits.axis(axis) {
            length = match extent.known() {
                Some(extent) => length.saturating_add(extent),
                None => return false,
            };
            if length > 1 {
                return false;
            }
        }
        length == 1
    }
}

/// The place of one of so many axes.
pub(crate) fn resolve_axis(axis: i64, dims: usize) -> Result<usize, Reason> {
    let refused = || Reason::Axis { axis, dims };
    let count = i64::try_from(dims).map_err(|_| refused())?;
    let resolved = if axis < 0 { axis.saturating_add(count) } else { axis };
    usize::try_from(resolved).ok().filter(|axis| *axis < dims).ok_or_else(refused)
}

/// One part of one element.
pub(crate) const ONE: Extent = Extent::Known(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extent::{Measure, Unknown};

    #[test]
    fn an_axis_is_one_if_all_of_its_parts_are_known_and_one_together() {
        let is_one = |parts: &[Extent]| {
            let splits = Splits(vec![parts.to_vec()]);
            Tiled { content: Content::Partial, splits, chunks: Vec::new() }.is_one(0)
        };
        let unknown = Extent::Unknown(Unknown { tileable: 0, axis: 0, part: 0, measure: Measure::Extent });
        let [none, one, two] = [0, 1, 2].map(Extent::Known);
        assert!(is_one(&[one]) && is_one(&[none, one, none]));
        for parts in [&[none][..], &[two], &[one, one], &[unknown], &[one, unknown], &[one, one, unknown]] {
            assert!(!is_one(parts), "{parts:?}");
        }
    }
}
