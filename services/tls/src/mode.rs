//! Whether a port is protected.

use std::fmt;
use std::str::FromStr;

/// What a port takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Plain text only.
    #[default]
    Off,
    /// TLS, and plain text as before: for the time in which clients change.
    Permissive,
    /// TLS only.
    Strict,
}

/// What is no mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a mode; write off, permissive or strict")]
pub struct Unknown(String);

impl FromStr for Mode {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        match text {
            "off" => Ok(Self::Off),
            "permissive" => Ok(Self::Permissive),
            "strict" => Ok(Self::Strict),
            _ => Err(Unknown(text.to_owned())),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Permissive => "permissive",
            Self::Strict => "strict",
        })
    }
}
