//! What every op of a stream has.

use http::{HeaderMap, HeaderValue, header};
use tonic::Status;
use tripod_proto::tripod::v1 as wire;

use super::bounds::SESSION_DIGITS_MAX;
use super::{headers, refused};

/// A stream's first word, as it is used for each op.
#[derive(Debug)]
pub(super) struct Hello {
    /// Each op has a copy.
    pub(super) headers: HeaderMap,
    /// Of the ops with a sequence.
    pub(super) session: Option<String>,
}

impl Hello {
    /// # Errors
    /// Its session is no number, or its metadata cannot be said.
    pub(super) fn of(wire::Hello { metadata, session }: wire::Hello) -> Result<Self, Status> {
        let is_number =
            session.len() <= SESSION_DIGITS_MAX && session.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number {
            return Err(refused::misused("the session of the hello is no number in decimal"));
        }
        // Room for what an op adds, so that its copy does not grow.
        let mut headers = HeaderMap::with_capacity(metadata.len() + 6);
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers::put(&mut headers, metadata)?;
        Ok(Self { headers, session: (!session.is_empty()).then_some(session) })
    }

    /// The same for a stream whose head has said so who calls.
    pub(super) fn bearing(mut self, bearer: &[HeaderValue]) -> Self {
        for said in bearer {
            self.headers.append(header::AUTHORIZATION, said.clone());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s30_who_calls_is_said_by_the_head_of_the_stream_alone() {
        let said =
            wire::Metadata { key: "authorization".to_owned(), value: "Bearer of-the-hello".to_owned() };
        let hello = || {
            let metadata = vec![said.clone()];
            Hello::of(wire::Hello { metadata, ..Default::default() }).unwrap()
        };
        assert!(!hello().bearing(&[]).headers.contains_key(header::AUTHORIZATION));
        // A stream is admitted by the one that is a token, wherever that stands.
        let said = ["Basic YTpi", "Bearer of-the-stream"].map(HeaderValue::from_static);
        let headers = hello().bearing(&said).headers;
        assert!(headers.get_all(header::AUTHORIZATION).iter().eq(&said));
    }

    #[test]
    fn a_session_is_a_number_in_decimal_or_none() {
        let hello =
            |session: &str| Hello::of(wire::Hello { session: session.to_owned(), ..Default::default() });
        assert_eq!(hello("").unwrap().session, None);
        assert_eq!(hello("4242").unwrap().session.as_deref(), Some("4242"));
        for session in ["-1", "0x7", "1.2", "a", "1\n", &"1".repeat(SESSION_DIGITS_MAX + 1)] {
            hello(session).expect_err(session);
        }
    }
}
