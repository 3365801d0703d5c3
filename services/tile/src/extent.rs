//! How long a chunk is along one axis.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The extent of one part of a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Extent {
    Known(u64),
    /// Only execution tells. Two that are called the same are equal; of others nothing is known.
    Unknown(Unknown),
}

/// The name of an extent that only execution tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unknown {
    /// The place in the graph of the tileable that it is about.
    pub tileable: usize,
    pub axis: usize,
    pub part: usize,
    pub measure: Measure,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// How long the part is.
    Extent,
    /// How many elements of the part are true.
    True,
}

impl Extent {
    #[must_use]
    pub const fn known(self) -> Option<u64> {
        match self {
            Self::Known(extent) => Some(extent),
            Self::Unknown(_) => None,
        }
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(extent) => write!(f, "{extent}"),
            Self::Unknown(unknown) => {
                let what = match unknown.measure {
                    Measure::Extent => "?",
                    Measure::True => "?true-",
                };
                write!(f, "{what}{}.{}.{}", unknown.tileable, unknown.axis, unknown.part)
            }
        }
    }
}
