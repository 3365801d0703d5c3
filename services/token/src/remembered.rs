//! What one connection has proved, until the tokens change.

use parking_lot::Mutex;
use subtle::ConstantTimeEq as _;
use tripod_identity::Identity;
use tripod_state::ids::{LogIndex, TimeMs};
use zeroize::Zeroizing;

use crate::verify::{Refused, View, identity};

/// The last token that was believed on a connection. A call that brings the same one costs a comparison; every change of any
/// token has it looked up anew, so what was revoked is refused from the next call on, on each node that knows it.
#[derive(Default)]
pub struct Remembered(Mutex<Option<Proof>>);

struct Proof {
    text: Zeroizing<String>,
    identity: Identity,
    /// Of the tokens when it was verified.
    revision: LogIndex,
    expires: TimeMs,
}

impl Remembered {
    /// As [`crate::verify`].
    ///
    /// # Errors
    /// [`Refused`].
    pub fn verify(&self, text: &str, view: &View, now_ms: u64) -> Result<Identity, Refused> {
        let now = TimeMs(view.log_now.0.max(now_ms));
        let mut remembered = self.0.lock();
        if let Some(proof) = &*remembered
            && proof.revision == view.tokens.revision()
            && now < proof.expires
            && bool::from(proof.text.as_bytes().ct_eq(text.as_bytes()))
        {
            return Ok(proof.identity.clone());
        }
        // Whatever comes next, what was proved is not relied on any more.
        *remembered = None;
        let (_, token) = view.believed(text, now_ms)?;
        let identity = identity(&view.realm, &token.bearer)?;
        *remembered = Some(Proof {
            text: Zeroizing::new(text.to_owned()),
            identity: identity.clone(),
            revision: view.tokens.revision(),
            expires: token.expires,
        });
        Ok(identity)
    }
}
