//! A call that begins.

use http::{HeaderMap, Request};

use crate::bytes_held::{Account, CALL_BYTES, CallBytes, Short};

/// What a header takes beside its name and value.
const HEADER_BYTES: usize = 64;

/// Counts a call, which may be one by which its client says that it lives. Nothing else of it may be held before.
///
/// # Errors
/// [`Short`].
pub fn enter<B>(account: &Account, request: &Request<B>, is_beat: bool) -> Result<CallBytes, Short> {
    let bytes = CALL_BYTES + (request.uri().path().len() + head_bytes(request.headers())) as u64;
    let charge = if is_beat { account.beat(bytes) } else { account.call(bytes) };
    charge.map(CallBytes::of)
}

fn head_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + HEADER_BYTES).sum()
}
