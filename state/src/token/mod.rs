//! Tokens: texts by which a caller without a certificate proves what it is. Here is what the cluster knows of each; the
//! secret is made by the node that answers, told once, and never comes here.
//!
//! What the state keeps of a secret is the SHA-256 of the token's id and the secret. A fast hash is right for that: a
//! secret is 256 random bits, which nobody guesses, however fast.
//!
//! Every change raises the *revision*, which is the log index of that change. So it never comes back, not even when the
//! table was forgotten with its feature level, and whoever remembers a token that was verified compares one number with
//! each call.
//!
//! | module | what |
//! |---|---|
//! | `bearer` | what a token proves |
//! | `record` | a token as the state keeps it |
//! | `table` | all of them |
//! | `refusal` | why a command was refused |
//! | `apply` | the commands |

mod apply;
mod bearer;
mod record;
mod refusal;
mod table;

use serde::{Deserialize, Serialize};

use crate::ids::{DurationMs, TokenId};

pub use bearer::{Bearer, Kind};
pub use record::{Revoked, SecretHash, Token};
pub use refusal::Refusal;
pub use table::Tokens;

/// What changes the tokens. All of it is part of feature level 11.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Makes a token. The same one again, by who was not answered, is answered as the first time.
    Create {
        /// 64 random bits.
        token: TokenId,
        hash: SecretHash,
        bearer: Bearer,
        /// From now on; see [`Kind::lifetime_max`].
        lifetime_ms: DurationMs,
        /// Who wants it, for people.
        by: String,
    },
    /// The same of an operator's, by whoever may write to a node's data directory. Refused while there is an operator's
    /// token that can be used.
    Bootstrap {
        token: TokenId,
        hash: SecretHash,
        /// Of the operator.
        name: String,
        lifetime_ms: DurationMs,
        by: String,
    },
    /// Ends a token. Again: no change.
    Revoke { token: TokenId, by: String },
    /// Takes one of the uses of a token that has only so many. Refused when there is none left, or it has ended.
    Use { token: TokenId },
}
