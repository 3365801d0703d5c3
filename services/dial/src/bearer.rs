//! The token that this process shows to nodes, if it has one.

use http::HeaderValue;
use http::header::{AUTHORIZATION, InvalidHeaderValue};
use parking_lot::RwLock;
use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};

use crate::node::protection;

/// A process is somebody, whoever connects in it. As `authorization` has it, marked as secret.
static BEARER: RwLock<Option<HeaderValue>> = RwLock::new(None);

/// From now on each call of this process to a node says so, on connections by TLS and on no others. The last word counts: a token
/// lives for a day, and a process for longer.
///
/// # Errors
/// The token has bytes that no header can have. What was shown before is shown on.
pub fn bear(token: &str) -> Result<(), InvalidHeaderValue> {
    let mut bearer = HeaderValue::try_from(format!("Bearer {token}"))?;
    bearer.set_sensitive(true);
    *BEARER.write() = Some(bearer);
    Ok(())
}

/// What a call to a node says in `authorization`. The server was verified before anything was sent, where there is TLS; where there is
/// none, nothing is told.
#[must_use]
pub fn bearer() -> Option<HeaderValue> {
    protection().and_then(|_| BEARER.read().clone())
}

/// What a call has said in `authorization`, if anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown(Option<HeaderValue>);

impl Shown {
    /// What a call says that is made now.
    #[must_use]
    pub fn now() -> Self {
        Self(bearer())
    }

    /// Whether calls say something else by now. One that is refused as UNAUTHENTICATED is to be made again then: its token was the one
    /// before, and has run out.
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        *self != Self::now()
    }
}

impl From<HeaderValue> for Shown {
    fn from(said: HeaderValue) -> Self {
        Self(Some(said))
    }
}

/// Has a call to a node say it.
pub fn show<T>(request: &mut Request<T>) {
    let Some(bearer) = bearer() else { return };
    if let Ok(mut value) = MetadataValue::<Ascii>::try_from(bearer.as_bytes()) {
        value.set_sensitive(true);
        request.metadata_mut().insert(AUTHORIZATION.as_str(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_tls_a_token_is_shown_to_nobody() {
        bear("trp_viewer_x").expect("it is text");
        assert_eq!(bearer(), None);
        let mut request = Request::new(());
        show(&mut request);
        assert!(request.metadata().is_empty());
        let told = format!("{:?}", *BEARER.read());
        assert!(!told.contains("trp_"), "{told}");
        assert!(bear("a\nb").is_err());
    }

    #[test]
    fn what_was_shown_is_told_from_what_is_shown_now() {
        assert!(!Shown::now().is_replaced());
        let mut before = HeaderValue::from_static("Bearer trp_viewer_y");
        before.set_sensitive(true);
        let before = Shown::from(before);
        assert!(before.is_replaced());
        assert!(!format!("{before:?}").contains("trp_"));
    }
}
