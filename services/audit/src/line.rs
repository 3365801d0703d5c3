//! A line: a record, its number, and the hash of the line before.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest as _, Sha256};

use crate::record::{Record, TEXT_BYTES_MAX};

/// The longest line, in bytes with its end: eight texts, each of whose bytes JSON may write as two, and the rest.
pub const LINE_BYTES_MAX: usize = 8 * 2 * TEXT_BYTES_MAX + 1024;

/// The SHA-256 of a line without its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hash([u8; 32]);

/// A line as it is written.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    /// Counted from 1, without a gap, over all files.
    pub(crate) seq: u64,
    pub(crate) prev: Hash,
    #[serde(flatten)]
    pub(crate) record: Record,
}

impl Hash {
    /// Before the first line.
    pub(crate) const NONE: Self = Self([0; 32]);

    pub(crate) fn of(line: &[u8]) -> Self {
        Self(Sha256::digest(line).into())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self}")
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let digits = text.as_bytes();
        let mut hash = [0; 32];
        let is_hash = digits.len() == 2 * hash.len()
            && digits.iter().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(digit));
        if !is_hash {
            return Err(D::Error::custom("a hash has 64 digits of 0-9 and a-f"));
        }
        for (byte, pair) in hash.iter_mut().zip(digits.chunks(2)) {
            let value = |digit: u8| if digit <= b'9' { digit - b'0' } else { digit - b'a' + 10 };
            *byte = (value(pair[0]) << 4) | value(pair[1]);
        }
        Ok(Self(hash))
    }
}

impl Line {
    /// Without its end.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers and texts can be written as JSON")
    }

    /// One without its end.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}
