//! What one connection has proved, until the tokens change.

use parking_lot::Mutex;
use subtle::ConstantTimeEq as _;
use tripod_identity::Identity;
use tripod_state::ids::{LogIndex, TimeMs, TokenId};
use zeroize::Zeroizing;

use crate::verify::{Refused, View, identity};

/// The last token that was believed on a connection. A call that brings the same one costs a comparison; every change of any
/// token has it looked up anew, so what was revoked is refused from the next call on, on each node that knows it.
#[derive(Default)]
pub struct Remembered(Mutex<Option<Proof>>);

/// A token that is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Believed {
    /// Which.
    pub token: TokenId,
    /// Who bears it.
    pub identity: Identity,
}

struct Proof {
    text: Zeroizing<String>,
    believed: Believed,
    /// Of the tokens when it was verified.
    revision: LogIndex,
    expires: TimeMs,
}

impl Remembered {
    /// As [`crate::verify`].
    ///
    /// # Errors
    /// [`Refused`].
    pub fn verify(&self, text: &str, view: &View, now_ms: u64) -> Result<Believed, Refused> {
        let now = TimeMs(view.log_now.0.max(now_ms));
        let mut remembered = self.0.lock();
        if let Some(proof) = &*remembered
            && proof.revision == view.tokens.revision()
            && now < proof.expires
            && bool::from(proof.text.as_bytes().ct_eq(text.as_bytes()))
        {
            return Ok(proof.believed.clone());
        }
        // Whatever comes next, what was proved is not relied on any more.
        *remembered = None;
        let (token, known) = view.believed(text, now_ms)?;
        let believed = Believed { token, identity: identity(&view.realm, &known.bearer)? };
        *remembered = Some(Proof {
            text: Zeroizing::new(text.to_owned()),
            believed: believed.clone(),
            revision: view.tokens.revision(),
            expires: known.expires,
        });
        Ok(believed)
    }
}
