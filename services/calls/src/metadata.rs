//! Metadata, as headers and as messages.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use tripod_proto::tripod::v1 as wire;

use crate::bounds::{OP_METADATA_BYTES_MAX, OP_METADATA_MAX, OP_OVERHEAD_BYTES};
use crate::lost::Reason;

/// Begins the names of gRPC's own headers.
const GRPC: &str = "grpc-";
/// The one of those that is passed on.
const PREVIOUS_ATTEMPTS: &str = "grpc-previous-rpc-attempts";
/// HTTP's own, and what a transport says of every request.
static OF_THE_TRANSPORT: [HeaderName; 7] = [
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::TE,
    header::HOST,
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Whether a header belongs to the transport of a call of its own: an op says it otherwise, or not at all.
pub(crate) fn is_of_the_transport(name: &HeaderName) -> bool {
    let is_grpcs = name.as_str().starts_with(GRPC) && name != PREVIOUS_ATTEMPTS;
    is_grpcs || OF_THE_TRANSPORT.contains(name)
}

/// Headers as messages, and how many bytes they are.
///
/// # Errors
/// They are no text, or the transport's, or too many.
pub(crate) fn sent(headers: &HeaderMap) -> Result<(Vec<wire::Metadata>, usize), Reason> {
    if headers.is_empty() {
        return Ok((Vec::new(), 0));
    }
    if headers.len() > OP_METADATA_MAX {
        return Err(Reason::TooLong);
    }
    let mut bytes = 0;
    let mut metadata = Vec::with_capacity(headers.len());
    for (key, value) in headers {
        if is_of_the_transport(key) {
            return Err(Reason::Metadata);
        }
        let value = value.to_str().map_err(|_| Reason::Metadata)?;
        bytes += key.as_str().len() + value.len() + OP_OVERHEAD_BYTES;
        if bytes > OP_METADATA_BYTES_MAX {
            return Err(Reason::TooLong);
        }
        metadata.push(wire::Metadata { key: key.as_str().to_owned(), value: value.to_owned() });
    }
    Ok((metadata, bytes))
}

/// Messages as headers; `None` if some are none.
pub(crate) fn received(metadata: Vec<wire::Metadata>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::with_capacity(metadata.len());
    for wire::Metadata { key, value } in metadata {
        let (key, value) = (HeaderName::try_from(key).ok()?, HeaderValue::try_from(value).ok()?);
        headers.append(key, value);
    }
    Some(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_as_they_went_also_those_with_one_name() {
        let mut headers = HeaderMap::new();
        for (key, value) in [("x-a", "1"), ("x-a", "2"), ("x-b-bin", "AAE=")] {
            headers.append(key, HeaderValue::from_static(value));
        }
        let (metadata, bytes) = sent(&headers).unwrap();
        assert_eq!(received(metadata).unwrap(), headers);
        assert_eq!(bytes, 4 + 4 + 11 + 3 * OP_OVERHEAD_BYTES);
    }

    #[test]
    fn what_is_no_text_or_too_long_is_refused() {
        let mut headers = HeaderMap::new();
        headers.insert("x-a", HeaderValue::from_bytes(b"\xff").unwrap());
        assert_eq!(sent(&headers), Err(Reason::Metadata));
        let long = "a".repeat(OP_METADATA_BYTES_MAX);
        headers.insert("x-a", HeaderValue::try_from(long).unwrap());
        assert_eq!(sent(&headers), Err(Reason::TooLong));
        for name in ["te", "grpc-timeout", "connection"] {
            let headers =
                HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static("1"))]);
            assert_eq!(sent(&headers), Err(Reason::Metadata), "{name}");
        }
        let mut many = HeaderMap::new();
        for _ in 0..=OP_METADATA_MAX {
            many.append("x-a", HeaderValue::from_static("1"));
        }
        assert_eq!(sent(&many), Err(Reason::TooLong));
        for (key, value) in [("a b", "1"), ("x-a", "1\n")] {
            let metadata = wire::Metadata { key: key.to_owned(), value: value.to_owned() };
            assert_eq!(received(vec![metadata]), None, "{key:?}: {value:?}");
        }
    }
}
