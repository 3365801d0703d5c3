//! Columns of frames.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::dtype::DType;

/// A column of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    pub name: String,
    pub dtype: ColumnType,
}

/// The type of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnType {
    Bool,
    I32,
    I64,
    F32,
    F64,
    Text,
}

impl ColumnType {
    /// As the elements of a tensor; texts are none.
    #[must_use]
    pub const fn dtype(self) -> Option<DType> {
        match self {
            Self::Bool => Some(DType::Bool),
            Self::I32 => Some(DType::I32),
            Self::I64 => Some(DType::I64),
            Self::F32 => Some(DType::F32),
            Self::F64 => Some(DType::F64),
            Self::Text => None,
        }
    }
}

impl From<DType> for ColumnType {
    fn from(dtype: DType) -> Self {
        match dtype {
            DType::Bool => Self::Bool,
            DType::I32 => Self::I32,
            DType::I64 => Self::I64,
            DType::F32 => Self::F32,
            DType::F64 => Self::F64,
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dtype.dtype() {
            Some(dtype) => write!(f, "{}:{dtype}", self.name),
            None => write!(f, "{}:text", self.name),
        }
    }
}
