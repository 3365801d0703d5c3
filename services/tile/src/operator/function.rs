//! Functions of single elements.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::scalar::Scalar;

/// A function of one element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnaryFunction {
    Neg,
    Abs,
    Sqrt,
    Exp,
    Log,
    Tanh,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `maximum(x, 0)`.
    Relu,
    /// `logical_not`.
    Not,
}

impl UnaryFunction {
    /// What it makes of elements of a type. None: nothing that has a type here.
    #[must_use]
    pub fn result(self, dtype: DType) -> Option<DType> {
        let is_bool = dtype == DType::Bool;
        match self {
            Self::Not => Some(DType::Bool),
            Self::Abs => Some(dtype),
            Self::Neg | Self::Relu => (!is_bool).then_some(dtype),
            Self::Sqrt | Self::Exp | Self::Log | Self::Tanh | Self::Sigmoid => {
                (!is_bool).then_some(dtype.fractional())
            }
        }
    }
}

/// A function of two elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BinaryFunction {
    Add,
    Sub,
    Mul,
    /// `true_divide`.
    Div,
    FloorDiv,
    /// With the sign of the divisor.
    Mod,
    Pow,
    Max,
    Min,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// `logical_and`.
    And,
    /// `logical_or`.
    Or,
}

impl BinaryFunction {
    /// What it makes of elements of a common type. None: nothing that has a type here.
    #[must_use]
    pub fn result(self, common: DType) -> Option<DType> {
        let is_bool = common == DType::Bool;
        match self {
            Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge | Self::And | Self::Or => {
                Some(DType::Bool)
            }
            Self::Add | Self::Mul | Self::Max | Self::Min => Some(common),
            Self::Div => Some(common.fractional()),
            Self::Sub | Self::FloorDiv | Self::Mod | Self::Pow => (!is_bool).then_some(common),
        }
    }
}

/// One side of a function of several tensors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operand {
    /// The next of the inputs.
    Input,
    Scalar(Scalar),
}
