//! The token that this process shows to nodes, if it has one.

use std::sync::OnceLock;

use http::HeaderValue;

/// A process is somebody once, whoever connects in it. As `authorization` has it, marked as secret.
static BEARER: OnceLock<HeaderValue> = OnceLock::new();

/// From now on each call of this process to a node says so, on connections by TLS and on no others. The first word counts.
///
/// # Errors
/// The token has bytes that no header can have.
pub fn bear(token: &str) -> Result<(), http::header::InvalidHeaderValue> {
    let mut bearer = HeaderValue::try_from(format!("Bearer {token}"))?;
    bearer.set_sensitive(true);
    let _ = BEARER.set(bearer);
    Ok(())
}

/// What a call says. The server was verified before anything was sent, where there is TLS; where there is none, nothing is told.
pub(crate) fn shown() -> Option<HeaderValue> {
    tripod_dial::protection().and(BEARER.get()).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_tls_a_token_is_shown_to_nobody() {
        bear("trp_viewer_x").expect("it is text");
        assert_eq!(shown(), None);
        let told = format!("{:?}", BEARER.get());
        assert!(!told.contains("trp_"), "{told}");
    }
}
