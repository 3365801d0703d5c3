//! What is made of the rows of a group.

use serde::{Deserialize, Serialize};

use crate::column::ColumnType;
use crate::dtype::DType;
use crate::operator::ReductionFunction;

/// A column of a grouped frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aggregate {
    /// Of which column.
    pub column: String,
    pub function: AggregateFunction,
    /// The name of the result.
    pub name: String,
}

/// What is made of the values of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AggregateFunction {
    Sum,
    Count,
    Min,
    Max,
    Mean,
}

impl AggregateFunction {
    /// What it makes of values of a type. None: nothing.
    #[must_use]
    pub fn result(self, values: ColumnType) -> Option<ColumnType> {
        let of = |function: ReductionFunction| Some(function.result(values.dtype()?).into());
        match self {
            Self::Count => Some(DType::I64.into()),
            Self::Min | Self::Max => Some(values),
            Self::Sum => of(ReductionFunction::Sum),
            Self::Mean => of(ReductionFunction::Mean),
        }
    }
}

/// What the bytes of a frame are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FrameFormat {
    Csv,
    Parquet,
}
