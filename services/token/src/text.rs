//! A token's text.

use std::error::Error;
use std::fmt;

use data_encoding::BASE32_NOPAD;
use rand::TryRng as _;
use rand::rngs::{SysError, SysRng};
use tripod_state::ids::TokenId;
use tripod_state::token::Kind;
use zeroize::Zeroizing;

use crate::Secret;

/// The longest text that is looked at. The longest that is written has 87 bytes.
pub const TOKEN_BYTES_MAX: usize = 96;

/// What every one begins with, so that people and scanners know what they see.
const BEGIN: &str = "trp";
/// Digits of base32: of 32 bytes, and of 4.
const SECRET_DIGITS: usize = 52;
const SUM_DIGITS: usize = 7;

/// A token, as somebody holds it.
pub struct TokenText {
    pub kind: Kind,
    pub id: TokenId,
    pub secret: Secret,
}

/// A text is not a token. Nothing of it is told: it may be one with a slip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Illegible {
    /// Longer than [`TOKEN_BYTES_MAX`].
    TooLong,
    /// Not the five parts of one, or one of them is not what it should be.
    Form,
    /// All parts are there, and their checksum is another one: something is missing or was changed.
    Sum,
}

impl TokenText {
    /// A new one, with an id and a secret that nobody has seen.
    ///
    /// # Errors
    /// That of the system's source of random bits.
    pub fn draw(kind: Kind) -> Result<Self, SysError> {
        Ok(Self { kind, id: TokenId(SysRng.try_next_u64()?), secret: Secret::draw()? })
    }

    /// The text. Its memory is overwritten when it goes.
    #[must_use]
    pub fn write(&self) -> Zeroizing<String> {
        let secret = Zeroizing::new(BASE32_NOPAD.encode(self.secret.bytes()).to_ascii_lowercase());
        let mut text = Zeroizing::new(String::with_capacity(TOKEN_BYTES_MAX));
        for part in [BEGIN, "_", self.kind.word(), "_", &self.id.to_string(), "_", &secret] {
            text.push_str(part);
        }
        let sum = sum(&text);
        text.push('_');
        text.push_str(&sum);
        text
    }

    /// Whether a text is meant to be one, whether it is one or not: a token of somebody else's is not.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        text.strip_prefix(BEGIN).is_some_and(|rest| rest.starts_with('_'))
    }

    /// Reads one, and nothing but one.
    ///
    /// # Errors
    /// [`Illegible`].
    pub fn parse(text: &str) -> Result<Self, Illegible> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(Illegible::TooLong);
        }
        let (summed, told) = text.rsplit_once('_').ok_or(Illegible::Form)?;
        let mut parts = summed.split('_');
        let mut next = || parts.next().ok_or(Illegible::Form);
        let (begin, kind, id, secret) = (next()?, next()?, next()?, next()?);
        if begin != BEGIN || parts.next().is_some() || told.len() != SUM_DIGITS {
            return Err(Illegible::Form);
        }
        let kind = Kind::of_word(kind).ok_or(Illegible::Form)?;
        let id = TokenId::parse(id).ok_or(Illegible::Form)?;
        let secret = read_secret(secret).ok_or(Illegible::Form)?;
        if sum(summed) != told {
            return Err(Illegible::Sum);
        }
        Ok(Self { kind, id, secret })
    }
}

fn read_secret(text: &str) -> Option<Secret> {
    // Capitals would make a second text of one token.
    if text.len() != SECRET_DIGITS || text.bytes().any(|digit| digit.is_ascii_uppercase()) {
        return None;
    }
    let capitals = Zeroizing::new(text.to_ascii_uppercase());
    let bytes = Zeroizing::new(BASE32_NOPAD.decode(capitals.as_bytes()).ok()?);
    Some(Secret::of(bytes.as_slice().try_into().ok()?))
}

fn sum(text: &str) -> String {
    BASE32_NOPAD.encode(&crc32fast::hash(text.as_bytes()).to_be_bytes()).to_ascii_lowercase()
}

impl fmt::Display for Illegible {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(out, "it has more than {TOKEN_BYTES_MAX} bytes"),
            Self::Form => out.write_str("it has not the form trp_KIND_ID_SECRET_CRC"),
            Self::Sum => out.write_str("its checksum does not fit: something is missing or was changed"),
        }
    }
}

impl Error for Illegible {}
