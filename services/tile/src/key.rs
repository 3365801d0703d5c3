//! The keys by which clients name tileables.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::limits::KEY_CHARS_MAX;

/// A tileable's key, chosen by the client.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TileableKey(pub String);

impl TileableKey {
    /// Whether it may be one. Colon and tilde are not among the characters, so that keys of chunks, which are made of it,
    /// never meet.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let fine = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        !self.0.is_empty() && self.0.len() <= KEY_CHARS_MAX && self.0.chars().all(fine)
    }
}

impl From<&str> for TileableKey {
    fn from(key: &str) -> Self {
        Self(key.to_owned())
    }
}

impl fmt::Display for TileableKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_of_few_characters_and_bounded() {
        for fine in ["a", "A-1_b.c", &"k".repeat(KEY_CHARS_MAX)] {
            assert!(TileableKey::from(fine).is_valid(), "{fine}");
        }
        for wrong in ["", "a:0", "a~1", "a b", "ä", &"k".repeat(KEY_CHARS_MAX + 1)] {
            assert!(!TileableKey::from(wrong).is_valid(), "{wrong}");
        }
    }
}
