//! Types of elements, and what comes of two of them as numpy 2 has it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::scalar::Scalar;

/// The type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    Bool,
    I32,
    I64,
    F32,
    F64,
}

impl DType {
    /// Of one element.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Bool => 1,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }

    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// What two arrays of these types have in common.
    #[must_use]
    pub fn promote(self, other: Self) -> Self {
        match (self.min(other), self.max(other)) {
            (Self::I32 | Self::I64, Self::F32) => Self::F64,
            (_, wider) => wider,
        }
    }

    /// What an array of this type and a number have in common; a number has a kind, but no width. None: numpy has an
    /// error for it, as the number has no place in the type.
    #[must_use]
    pub fn with_scalar(self, scalar: Scalar) -> Option<Self> {
        match (self, scalar) {
            (_, Scalar::Bool(_)) | (Self::F32 | Self::F64, _) => Some(self),
            (Self::I32, Scalar::Int(value)) => i32::try_from(value).is_ok().then_some(self),
            (Self::Bool | Self::I64, Scalar::Int(_)) => Some(Self::I64),
            (Self::Bool | Self::I32 | Self::I64, Scalar::Float(_)) => Some(Self::F64),
        }
    }

    /// What a quotient or a root of such elements is. Only for those that are not [`Self::Bool`]: numpy has types of
    /// half the width for those, which are not here.
    #[must_use]
    pub const fn fractional(self) -> Self {
        match self {
            Self::F32 => Self::F32,
            Self::Bool | Self::I32 | Self::I64 | Self::F64 => Self::F64,
        }
    }

    /// What a sum or a product of such elements is.
    #[must_use]
    pub const fn summed(self) -> Self {
        match self {
            Self::Bool | Self::I32 | Self::I64 => Self::I64,
            Self::F32 => Self::F32,
            Self::F64 => Self::F64,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "bool",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F32 => "f32",
            Self::F64 => "f64",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::DType::{Bool, F32, F64, I32, I64};
    use super::*;

    const ALL: [DType; 5] = [Bool, I32, I64, F32, F64];

    /// `np.promote_types` of numpy 2.
    #[test]
    fn two_types_have_in_common_what_numpy_says() {
        let table = [
            [Bool, I32, I64, F32, F64],
            [I32, I32, I64, F64, F64],
            [I64, I64, I64, F64, F64],
            [F32, F64, F64, F32, F64],
            [F64, F64, F64, F64, F64],
        ];
        for (left, row) in ALL.into_iter().zip(table) {
            for (right, expected) in ALL.into_iter().zip(row) {
                assert_eq!(left.promote(right), expected, "{left} and {right}");
            }
        }
    }

    /// `np.result_type(dtype, number)` of numpy 2.
    #[test]
    fn a_number_has_a_kind_but_no_width() {
        let with = |scalar| ALL.map(|dtype| dtype.with_scalar(scalar));
        assert_eq!(with(Scalar::Bool(true)), ALL.map(Some));
        assert_eq!(with(Scalar::Int(7)), [Some(I64), Some(I32), Some(I64), Some(F32), Some(F64)]);
        assert_eq!(with(Scalar::Float(0.5)), [Some(F64), Some(F64), Some(F64), Some(F32), Some(F64)]);
        assert_eq!(I32.with_scalar(Scalar::Int(1 << 40)), None);
    }
}
