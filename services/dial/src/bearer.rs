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
}
