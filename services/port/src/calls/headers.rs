//! Metadata of clients as headers, and the other way round.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use tonic::Status;
use tripod_proto::tripod::v1 as wire;

use super::refused;

/// Begins the names that belong to gRPC itself.
const GRPC: &str = "grpc-";
/// The one of those that a client hears from its own gRPC and passes on.
const PREVIOUS_ATTEMPTS: &str = "grpc-previous-rpc-attempts";
/// Names that are HTTP's, or said by fields of an op.
static RESERVED: [HeaderName; 7] = [
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::TE,
    header::HOST,
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Adds metadata, in place of what there was with the same names; `authorization` is passed over.
///
/// # Errors
/// An entry is no header, or one that is reserved.
pub(super) fn put(headers: &mut HeaderMap, metadata: Vec<wire::Metadata>) -> Result<(), Status> {
    let mut entries = Vec::with_capacity(metadata.len());
    for wire::Metadata { key, value } in metadata {
        let name = HeaderName::from_bytes(key.as_bytes());
        let name = name.map_err(|_| refused::misused(format_args!("{key:?} is no name of metadata")))?;
        // Who calls is said by the stream's own head, for all of its ops.
        if name == header::AUTHORIZATION {
            continue;
        }
        let is_grpcs = name.as_str().starts_with(GRPC) && name != PREVIOUS_ATTEMPTS;
        if is_grpcs || RESERVED.contains(&name) {
            return Err(refused::misused(format_args!(
                "metadata cannot say {name}, which is reserved; use the fields of the op"
            )));
        }
        let value = HeaderValue::try_from(value);
        let value = value.map_err(|_| {
            refused::misused(format_args!(
                "the value of {name} is no header; encode it, and end its name in -bin"
            ))
        })?;
        headers.remove(&name);
        entries.push((name, value));
    }
    for (name, value) in entries {
        headers.append(name, value);
    }
    Ok(())
}

/// Adds those headers of an answer that are neither gRPC's own nor HTTP's.
pub(super) fn tell(headers: &HeaderMap, metadata: &mut Vec<wire::Metadata>) {
    for (name, value) in headers {
        let is_own = RESERVED.contains(name)
            || *name == Status::GRPC_STATUS
            || *name == Status::GRPC_MESSAGE
            || *name == Status::GRPC_STATUS_DETAILS;
        // Whatever we say in metadata is printable.
        if let (false, Ok(value)) = (is_own, value.to_str()) {
            metadata.push(wire::Metadata { key: name.as_str().to_owned(), value: value.to_owned() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, value: &str) -> wire::Metadata {
        wire::Metadata { key: key.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn an_ops_own_word_takes_the_place_of_the_streams() {
        let mut headers = HeaderMap::new();
        put(&mut headers, vec![entry("x-a", "1"), entry("x-b", "1")]).unwrap();
        put(&mut headers, vec![entry("X-A", "2"), entry("x-a", "3"), entry(PREVIOUS_ATTEMPTS, "1")]).unwrap();
        let all: Vec<_> = headers.get_all("x-a").iter().collect();
        assert_eq!(all, ["2", "3"]);
        assert_eq!(
            (&headers["x-b"], &headers[PREVIOUS_ATTEMPTS]),
            (&"1".parse().unwrap(), &"1".parse().unwrap())
        );
    }

    #[test]
    fn s30_an_op_has_no_word_in_who_calls() {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer of-the-stream"));
        put(&mut headers, vec![entry("Authorization", "Bearer of-the-op"), entry("x-a", "1")]).unwrap();
        assert_eq!(headers[header::AUTHORIZATION], "Bearer of-the-stream");
        assert_eq!(headers["x-a"], "1");
    }

    #[test]
    fn what_is_reserved_or_no_header_is_refused() {
        for (key, value) in [
            ("grpc-timeout", "1S"),
            ("Grpc-Encoding", "gzip"),
            ("content-type", "text/plain"),
            ("TE", "trailers"),
            ("host", "a"),
            (":path", "/a.B/C"),
            ("", "a"),
            ("a b", "a"),
            ("x-a", "a\nb"),
            ("x-a", "a\0"),
        ] {
            let status = put(&mut HeaderMap::new(), vec![entry(key, value)]).expect_err(key);
            assert_eq!(status.code(), tonic::Code::InvalidArgument);
        }
    }
}
