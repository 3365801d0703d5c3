//! A call that begins.

use http::{HeaderMap, Request};

use crate::bytes_held::{Account, CALL_BYTES, CallBytes, Charge, OP_BYTES, Short};

/// What a header takes beside its name and value.
const HEADER_BYTES: usize = 64;

/// Counts a call, which may be one by which its client says that it lives. Nothing else of it may be held before.
///
/// # Errors
/// [`Short`].
pub fn enter<B>(account: &Account, request: &Request<B>, is_beat: bool) -> Result<CallBytes, Short> {
    charge(account, request, CALL_BYTES, is_beat).map(CallBytes::of)
}

/// The same of an op of a stream.
///
/// # Errors
/// [`Short`].
pub(crate) fn enter_op<B>(
    account: &Account,
    request: &Request<B>,
    is_beat: bool,
) -> Result<CallBytes, Short> {
    charge(account, request, OP_BYTES, is_beat).map(CallBytes::of_op)
}

fn charge<B>(account: &Account, request: &Request<B>, base: u64, is_beat: bool) -> Result<Charge, Short> {
    let bytes = base + (request.uri().path().len() + head_bytes(request.headers())) as u64;
    if is_beat { account.beat(bytes) } else { account.call(bytes) }
}

fn head_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + HEADER_BYTES).sum()
}
