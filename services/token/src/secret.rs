//! 256 bits that nobody else is told.

use rand::TryRng as _;
use rand::rngs::{SysError, SysRng};
use sha2::{Digest as _, Sha256};
use tripod_state::ids::TokenId;
use tripod_state::token::SecretHash;
use zeroize::Zeroize as _;

/// Bytes of a secret.
const BYTES: usize = 32;

/// The part of a token that proves it. It has no `Debug`, so that it gets into no text by itself.
pub struct Secret([u8; BYTES]);

impl Secret {
    /// One that the system's source of random bits has drawn.
    ///
    /// # Errors
    /// The source's.
    pub fn draw() -> Result<Self, SysError> {
        let mut secret = Self([0; BYTES]);
        SysRng.try_fill_bytes(&mut secret.0)?;
        Ok(secret)
    }

    pub(crate) fn of(bytes: [u8; BYTES]) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8; BYTES] {
        &self.0
    }

    /// What the state keeps of it.
    #[must_use]
    pub fn hash(&self, token: TokenId) -> SecretHash {
        SecretHash(Sha256::new().chain_update(token.0.to_be_bytes()).chain_update(self.0).finalize().into())
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}
