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
        self.splits.total(axis) == Some(1)
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
