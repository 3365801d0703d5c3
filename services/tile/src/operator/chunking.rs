//! What a client wants of how a tileable is cut.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::limits::{BYTES_MAX, CHUNK_BYTES_DEFAULT, CHUNKS_MAX, DIMS_MAX};
use crate::refusal::Reason;
use crate::splits::{Splits, known_parts};

/// How a tileable is cut. As JSON absent, `4`, `[4, 2]` or `[[4, 4], [2, 1]]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Chunking {
    /// The longest axis is halved until a chunk has [`CHUNK_BYTES_DEFAULT`] at most.
    #[default]
    Default,
    /// Parts of this extent along all axes; the last ones may be shorter.
    Size(u64),
    /// The same with an extent for each axis.
    Sizes(Vec<u64>),
    /// The extents of all parts.
    Splits(Vec<Vec<u64>>),
}

impl Chunking {
    /// How a tensor of that shape is cut.
    pub(crate) fn resolve(&self, shape: &[u64], dtype: DType) -> Result<Splits, Reason> {
        check_shape(shape, dtype)?;
        let parts = match self {
            Self::Default => by_sizes(shape, &default_sizes(shape, dtype))?,
            Self::Size(size) => by_sizes(shape, &vec![*size; shape.len()])?,
            Self::Sizes(sizes) => by_sizes(shape, sizes)?,
            Self::Splits(splits) => {
                check_splits(shape, splits)?;
                splits.clone()
            }
        };
        Ok(Splits(parts.iter().map(|parts| known_parts(parts)).collect()))
    }
}

/// Whether a tensor may be that large.
pub(crate) fn check_shape(shape: &[u64], dtype: DType) -> Result<(), Reason> {
    if shape.len() > DIMS_MAX {
        return Err(Reason::Dims { dims: shape.len() });
    }
    let too_large = || Reason::TooLarge { shape: shape.to_vec() };
    if shape.iter().any(|extent| *extent > BYTES_MAX) {
        return Err(too_large());
    }
    let mut extents = shape.iter().filter(|extent| **extent > 0);
    let elements = extents.try_fold(dtype.bytes(), |bytes, extent| bytes.checked_mul(*extent));
    match elements {
        Some(bytes) if bytes <= BYTES_MAX => Ok(()),
        _ => Err(too_large()),
    }
}

fn default_sizes(shape: &[u64], dtype: DType) -> Vec<u64> {
    let mut sizes = shape.to_vec();
    let bytes = |sizes: &[u64]| sizes.iter().fold(dtype.bytes(), |bytes, size| bytes.saturating_mul(*size));
    while bytes(&sizes) > CHUNK_BYTES_DEFAULT {
        let longest = sizes.iter().copied().max().unwrap_or(1);
        let Some(size) = sizes.iter_mut().find(|size| **size == longest) else { break };
        *size = longest.div_ceil(2);
    }
    sizes
}

fn by_sizes(shape: &[u64], sizes: &[u64]) -> Result<Vec<Vec<u64>>, Reason> {
    if sizes.len() != shape.len() {
        return Err(Reason::Chunking(format!("{} extents for {} axes", sizes.len(), shape.len())));
    }
    let mut chunks = 1_u64;
    let mut splits = Vec::new();
    for (extent, size) in shape.iter().zip(sizes) {
        if *extent == 0 {
            splits.push(vec![0]);
            continue;
        }
        if *size == 0 {
            return Err(Reason::Chunking("a chunk of no extent".to_owned()));
        }
        // Looked at before anything of that length is made.
        chunks = chunks.saturating_mul(extent.div_ceil(*size));
        if usize::try_from(chunks).map_or(true, |chunks| chunks > CHUNKS_MAX) {
            return Err(Reason::TooManyChunks);
        }
        let mut parts = Vec::new();
        let mut left = *extent;
        while left > 0 {
            let part = left.min(*size);
            parts.push(part);
            left -= part;
        }
        splits.push(parts);
    }
    Ok(splits)
}

fn check_splits(shape: &[u64], splits: &[Vec<u64>]) -> Result<(), Reason> {
    if splits.len() != shape.len() {
        return Err(Reason::Chunking(format!("splits of {} axes for {} axes", splits.len(), shape.len())));
    }
    for (axis, (extent, parts)) in shape.iter().zip(splits).enumerate() {
        let total = parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(*part));
        if total != Some(*extent) || parts.is_empty() {
            return Err(Reason::Chunking(format!("the parts of axis {axis} are not {extent} together")));
        }
        if parts.len() > 1 && parts.contains(&0) {
            return Err(Reason::Chunking(format!("axis {axis} has a part of no extent")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(chunking: &Chunking, shape: &[u64]) -> Result<Vec<Vec<u64>>, Reason> {
        let splits = chunking.resolve(shape, DType::F64)?;
        Ok((0..splits.dims()).map(|axis| splits.known(axis).unwrap()).collect())
    }

    #[test]
    fn the_last_part_may_be_shorter_and_no_extent_is_one_part() {
        assert_eq!(cut(&Chunking::Size(4), &[10, 0, 3]).unwrap(), [vec![4, 4, 2], vec![0], vec![3]]);
        assert_eq!(cut(&Chunking::Sizes(vec![1, 9]), &[2, 9]).unwrap(), [vec![1, 1], vec![9]]);
        assert_eq!(cut(&Chunking::Splits(vec![vec![3, 1]]), &[4]).unwrap(), [vec![3, 1]]);
        assert!(cut(&Chunking::Size(4), &[]).unwrap().is_empty());
    }

    #[test]
    fn without_a_wish_the_longest_axis_is_halved_until_chunks_are_small() {
        assert_eq!(cut(&Chunking::Default, &[100, 100]).unwrap(), [vec![100], vec![100]]);
        // 512 MiB: halved along the first axis, the second, the first.
        let splits = cut(&Chunking::Default, &[8192, 8192]).unwrap();
        assert_eq!(splits, [vec![2048; 4], vec![4096; 2]]);
    }

    #[test]
    fn what_does_not_fit_the_shape_is_refused() {
        for (wrong, shape) in [
            (Chunking::Size(0), vec![4]),
            (Chunking::Sizes(vec![2]), vec![4, 4]),
            (Chunking::Splits(vec![vec![2, 1]]), vec![4]),
            (Chunking::Splits(vec![vec![4, 0]]), vec![4]),
            (Chunking::Splits(vec![vec![]]), vec![0]),
            (Chunking::Splits(vec![vec![u64::MAX, 5]]), vec![4]),
        ] {
            assert!(matches!(cut(&wrong, &shape), Err(Reason::Chunking(_))), "{wrong:?}");
        }
    }

    #[test]
    fn sizes_are_looked_at_before_anything_of_them_is_made() {
        assert_eq!(cut(&Chunking::Size(1), &[1 << 21]), Err(Reason::TooManyChunks));
        assert_eq!(cut(&Chunking::Size(1), &[2000, 2000]), Err(Reason::TooManyChunks));
        assert!(matches!(cut(&Chunking::Default, &[1 << 50, 2]), Err(Reason::TooLarge { .. })));
        assert!(matches!(cut(&Chunking::Default, &[u64::MAX, 0]), Err(Reason::TooLarge { .. })));
        assert!(matches!(cut(&Chunking::Default, &[1; 33]), Err(Reason::Dims { dims: 33 })));
    }
}
