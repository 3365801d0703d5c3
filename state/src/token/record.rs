//! A token as the state keeps it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::TimeMs;
use crate::token::Bearer;

/// The SHA-256 of a token's id and its secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SecretHash(pub [u8; 32]);

/// Nobody needs it in a text.
impl fmt::Debug for SecretHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SecretHash")
    }
}

/// What is known of a token.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Token {
    pub hash: SecretHash,
    pub bearer: Bearer,
    /// How often it can still be used; `None`: until it ends.
    pub uses_left: Option<u32>,
    /// Who wanted it, for people.
    pub by: String,
    pub created: TimeMs,
    /// From then on it is refused.
    pub expires: TimeMs,
    pub revoked: Option<Revoked>,
}

/// That somebody ended a token before its time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Revoked {
    pub at: TimeMs,
    /// Who, for people.
    pub by: String,
}

impl Token {
    /// Whether whoever has its secret is believed at that time.
    #[must_use]
    pub fn holds_at(&self, now: TimeMs) -> bool {
        self.revoked.is_none() && now < self.expires && self.uses_left != Some(0)
    }
}
