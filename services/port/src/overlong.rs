//! Tells a caller that its message is too large with the code that means so.

use http::Response;
use tonic::{Code, Status};

/// Bytes of one message that are decoded. More than the largest value that the store takes, so that
/// the store's own limit answers first and names itself.
pub const MESSAGE_BYTES_MAX: usize = 66 << 20;

/// How tonic begins its text when a message is longer than that.
const TONIC_TEXT: &str = "Error, decoded message length too large";

/// tonic answers a message beyond its decode limit OUT_OF_RANGE, which the protocol reserves for
/// what tasks report; this makes it RESOURCE_EXHAUSTED, as every gRPC of upstream does. A failed decode is answered before
/// any message, so its status is in the headers.
pub fn mend<B: Default>(response: Response<B>) -> Response<B> {
    match Status::from_header_map(response.headers()) {
        Some(status) if status.code() == Code::OutOfRange && status.message().starts_with(TONIC_TEXT) => {
            Status::resource_exhausted(status.message()).into_http()
        }
        _ => response,
    }
}
