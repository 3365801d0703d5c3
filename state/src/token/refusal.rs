//! Why a command about tokens was refused.

use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::ids::TokenId;

/// A refusal, as [`crate::Fault::Token`]. The state is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Refusal {
    /// There is no token of that id, or it went a day after it had expired.
    Unknown { token: TokenId },
    /// Another token has that id.
    Taken { token: TokenId },
    /// A field is out of bounds.
    Invalid { field: String, reason: String },
    /// The token was revoked, has expired, or was used as often as it could be.
    Ended { token: TokenId },
    /// There is an operator's token that can be used, so none is made without one.
    Bootstrapped { name: String },
}

impl Refusal {
    /// In plain words: see [`Fault::text`].
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Unknown { token } => format!("there is no token {token}"),
            Self::Taken { token } => format!("token {token} exists, and is another one; make one anew"),
            Self::Invalid { field, reason } => format!("token parameter `{field}`: {reason}"),
            Self::Ended { token } => format!("token {token} was revoked or used, or has expired"),
            Self::Bootstrapped { name } => {
                format!("operator `{name}` has a token that can be used, so none is made without it")
            }
        }
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Token(refusal)
    }
}
