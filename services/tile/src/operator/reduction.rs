//! Functions of all elements along some axes.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;

/// A reduction, as a worker needs to know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reduction {
    pub function: ReductionFunction,
    /// Over which axes, ascending.
    pub axes: Vec<usize>,
    /// Whether they stay, of extent 1.
    pub keepdims: bool,
    /// Of a variance: what is taken from the number of elements.
    pub ddof: u64,
}

/// What is made of the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReductionFunction {
    Sum,
    Prod,
    Max,
    Min,
    Any,
    All,
    /// How many are not zero.
    Count,
    Mean,
    Var,
    ArgMax,
    ArgMin,
}

impl ReductionFunction {
    /// What it makes of elements of a type.
    #[must_use]
    pub fn result(self, dtype: DType) -> DType {
        match self {
            Self::Sum | Self::Prod => dtype.summed(),
            Self::Max | Self::Min => dtype,
            Self::Any | Self::All => DType::Bool,
            Self::Count | Self::ArgMax | Self::ArgMin => DType::I64,
            Self::Mean | Self::Var => dtype.fractional(),
        }
    }

    /// Whether it finds a place, and its partial results need to know theirs.
    #[must_use]
    pub const fn is_place(self) -> bool {
        matches!(self, Self::ArgMax | Self::ArgMin)
    }

    /// Whether it has a result for no elements.
    #[must_use]
    pub const fn has_identity(self) -> bool {
        !matches!(self, Self::Max | Self::Min | Self::ArgMax | Self::ArgMin)
    }
}
