//! The key-value store of a job.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::command::Scope;
use crate::ids::Key;

/// What changes keys. Keys arrive as the caller wrote them and are normalised here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    Insert { scope: Scope, key: String, value: Bytes, overwrite: bool },
    /// Writes only if the key's version is `expected` (0: only if it does not exist).
    CompareAndSet { scope: Scope, key: String, value: Bytes, expected: u64 },
    Increment { scope: Scope, key: String, by: i64 },
    /// The key and everything under `key/`.
    Delete { scope: Scope, key: String },
}

/// Collapses runs of `/`, drops them at both ends, and ends the key at a NUL.
#[must_use]
pub fn normalize(asked: &str) -> Key {
    let text = asked.split('\0').next().unwrap_or("");
    let mut key = String::with_capacity(text.len());
    for part in text.split('/').filter(|part| !part.is_empty()) {
        if !key.is_empty() {
            key.push('/');
        }
        key.push_str(part);
    }
    Key(key.into())
}
