//! A call that begins.

use http::{HeaderMap, Request};
use tripod_gateway::{Account, CALL_BYTES, CallBytes, Short};

/// The methods by which clients say that they live, of all services.
const BEATS: [&str; 2] = ["Heartbeat", "Beat"];
/// What a header takes beside its name and value.
const HEADER_BYTES: usize = 64;

/// Counts a call. Nothing else of it may be held before.
///
/// # Errors
/// [`Short`].
pub fn enter<B>(account: &Account, request: &Request<B>) -> Result<CallBytes, Short> {
    let path = request.uri().path();
    let bytes = CALL_BYTES + (path.len() + head_bytes(request.headers())) as u64;
    let method = path.rsplit('/').next().unwrap_or_default();
    let charge = if BEATS.contains(&method) { account.beat(bytes) } else { account.call(bytes) };
    charge.map(CallBytes::of)
}

fn head_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + HEADER_BYTES).sum()
}
