//! What a client sends to be tiled.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::key::TileableKey;
use crate::operator::Operator;

/// Tensors and frames, and how each is made of others.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TileableGraph {
    /// In any order.
    pub tileables: Vec<Tileable>,
    /// What is wanted. Empty: all that nothing else is made of.
    #[serde(default)]
    pub targets: Vec<TileableKey>,
}

/// A tensor or a frame that is to be computed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tileable {
    pub key: TileableKey,
    pub operator: Operator,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<TileableKey>,
    /// Bytes that it brings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<u8>,
    /// What the client expects it to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<Declared>,
}

/// What a client expects a tensor to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declared {
    /// An extent that the client does not know is absent.
    pub shape: Vec<Option<u64>>,
    pub dtype: DType,
}
