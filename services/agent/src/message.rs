//! A call's two halves, held in memory: the request for every attempt, the reply for the client.

use std::fmt;

use bytes::{BufMut as _, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri, header};
use http_body::Body as HttpBody;
use http_body_util::{BodyExt, Full};
use tonic::body::Body;
use tonic::metadata::{Binary, MetadataValue};
use tonic::{Code, Status};
use tripod_calls::{Answer, CallOptions, OP_MESSAGE_BYTES_MAX};
use tripod_port::overlong::MESSAGE_BYTES_MAX;
use tripod_port::{CallBytes, Charge, Reserved};
use tripod_proto::metadata;

use crate::answer_bytes::{AnswerBytes, NoRoom, refusal};
use crate::calls;
use crate::deadline::{self, Deadline};

/// Bytes of gRPC's frame around a message.
const FRAME_BYTES: usize = 5;
/// What of a client's headers a node must know. The user agent shows up in its logs; the mark of a
/// repeated call lets it recognise a write that was sent through an agent that is gone.
const PASSED_ON: [&str; 6] =
    ["content-type", "te", "grpc-encoding", "grpc-accept-encoding", "user-agent", PREVIOUS_ATTEMPTS];
/// Those of them that an op of a stream says otherwise, or not at all.
const OF_THE_TRANSPORT: [&str; 4] = ["content-type", "te", GRPC_ENCODING, "grpc-accept-encoding"];
const GRPC_ENCODING: &str = "grpc-encoding";
/// gRPC's count of the attempts before this one.
const PREVIOUS_ATTEMPTS: &str = "grpc-previous-rpc-attempts";
/// As many as there can be: after four, gRPC gives a call up.
const PREVIOUS_ATTEMPTS_MAX: &str = "4";
/// Begins the name of every header of ours.
const OURS: &str = "x-tripod-";
/// Tells gRPC's own retries what to do; the agent retries itself.
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// A client's request, complete.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) path: String,
    headers: HeaderMap,
    /// With gRPC's frame, compressed or not, as it came.
    pub(crate) body: Bytes,
    pub(crate) deadline: Option<Deadline>,
}

impl Message {
    /// Reads a request to its end, whose bytes `held` counts.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED beyond what a node takes, and when there is no room; CANCELLED when the client went away.
    pub(crate) async fn read(
        request: Request<Body>,
        deadline: Option<Deadline>,
        held: &CallBytes,
    ) -> Result<Self, Status> {
        let (parts, body) = request.into_parts();
        let mut headers = HeaderMap::with_capacity(PASSED_ON.len());
        for name in PASSED_ON {
            if let Some(value) = parts.headers.get(name) {
                headers.insert(HeaderName::from_static(name), value.clone());
            }
        }
        let body = collect(body).await?;
        // It stays as it came: nothing here unpacks it or makes lists of it.
        held.message(body.len() as u64).map_err(refusal)?;
        Ok(Self { path: parts.uri.path().to_owned(), headers, body, deadline })
    }

    /// Whether a compressed message is one of gzip.
    pub(crate) fn is_gzip(&self) -> bool {
        self.headers.get(GRPC_ENCODING).is_some_and(|encoding| encoding == "gzip")
    }

    /// The message without its frame, if the call can be an op of a stream: one message, short and not compressed, of a
    /// method that is known. What is not known would fill the paths of a stream, which are few.
    pub(crate) fn op(&self) -> Option<Bytes> {
        let content = self.headers.get(header::CONTENT_TYPE)?;
        let is_packed = self.headers.get(GRPC_ENCODING).is_some_and(|encoding| encoding != "identity");
        if !content.as_bytes().starts_with(b"application/grpc") || is_packed {
            return None;
        }
        let (head, message) = self.body.split_at_checked(FRAME_BYTES)?;
        let &[0, a, b, c, d] = head else { return None };
        let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?;
        let is_one = length == message.len() && length <= OP_MESSAGE_BYTES_MAX;
        (is_one && calls::is_listed(&self.path)).then(|| self.body.slice(FRAME_BYTES..))
    }

    /// What an op says of one attempt, besides what the stream says of all.
    pub(crate) fn options(&self, stamp: Option<HeaderValue>) -> CallOptions {
        let mut metadata = HeaderMap::with_capacity(self.headers.len() + 1);
        for (name, value) in &self.headers {
            if !OF_THE_TRANSPORT.contains(&name.as_str()) {
                metadata.insert(name.clone(), value.clone());
            }
        }
        if let Some(stamp) = stamp {
            metadata.insert(HeaderName::from_static(metadata::STAMP), stamp);
        }
        let patience = self.deadline.map(Deadline::left);
        CallOptions { patience, metadata, ..CallOptions::default() }
    }

    /// The same call, marked as one that nobody will make again.
    pub(crate) fn for_the_last_time(&self) -> Self {
        let mut last = self.clone();
        let mark = HeaderValue::from_static(PREVIOUS_ATTEMPTS_MAX);
        last.headers.insert(HeaderName::from_static(PREVIOUS_ATTEMPTS), mark);
        last
    }

    /// The same call, whose answer is to name itself: in its place, or beside it.
    pub(crate) fn naming_devices(&self, wish: &'static str) -> Self {
        let mut naming = self.clone();
        naming.headers.insert(HeaderName::from_static(metadata::DEVICES), HeaderValue::from_static(wish));
        naming
    }

    /// Has nodes told how the client registered that makes this call.
    pub(crate) fn tell_registration(&mut self, registration: &[u8]) {
        let told = MetadataValue::<Binary>::from_bytes(registration);
        let told = HeaderValue::from_bytes(told.as_encoded_bytes()).expect("base64 is text");
        self.headers.insert(HeaderName::from_static(metadata::REGISTRATION), told);
    }

    /// Has nodes told where the client comes from.
    pub(crate) fn tell_origin(&mut self, origin: HeaderValue) {
        self.headers.insert(HeaderName::from_static(metadata::ORIGIN), origin);
    }

    /// The request of one attempt.
    pub(crate) fn attempt(&self, ours: &HeaderMap, stamp: Option<HeaderValue>) -> Request<Bytes> {
        let mut request = Request::new(self.body.clone());
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = Uri::try_from(&self.path).expect("a path that came in a request");
        let headers = request.headers_mut();
        headers.reserve(self.headers.len() + ours.len() + 2);
        for (name, value) in self.headers.iter().chain(ours) {
            headers.insert(name.clone(), value.clone());
        }
        if let Some(stamp) = stamp {
            headers.insert(HeaderName::from_static(metadata::STAMP), stamp);
        }
        if let Some(deadline) = self.deadline {
            headers.insert(HeaderName::from_static(deadline::HEADER), deadline.remaining());
        }
        request
    }
}

/// Gathers a request in one piece: what HTTP/2 gives are parts of a large read buffer, which a call
/// that is held for hours would keep.
async fn collect(mut body: Body) -> Result<Bytes, Status> {
    let mut gathered = BytesMut::new();
    // Who has sent everything does not wait for a turn to send more.
    while !body.is_end_stream()
        && let Some(frame) = body.frame().await
    {
        let Ok(data) = frame.map_err(|refused| without_ours(&refused))?.into_data() else { continue };
        if gathered.len() + data.len() > MESSAGE_BYTES_MAX + FRAME_BYTES {
            return Err(Status::resource_exhausted(format!(
                "the message is longer than {MESSAGE_BYTES_MAX} bytes, the limit of one call; send less at once"
            )));
        }
        gathered.extend_from_slice(&data);
    }
    Ok(gathered.freeze())
}

/// Nodes say by metadata of ours that something is their own trouble. To a client of an agent, it is the agent's.
fn without_ours(refused: &Status) -> Status {
    Status::new(refused.code(), refused.message())
}

/// A node's reply, complete.
#[derive(Debug)]
pub(crate) struct Reply {
    headers: HeaderMap,
    pub(crate) body: Bytes,
    trailers: Option<HeaderMap>,
    /// What is held for a large body.
    charge: Option<Charge>,
}

/// Why a node's response is no whole reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Incomplete {
    /// The stream or the connection broke.
    Broken(String),
    /// There was no room for all of it.
    NoRoom(NoRoom),
}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(why) => f.write_str(why),
            Self::NoRoom(NoRoom::Unread) => f.write_str("its client has not read what it asked for before"),
            Self::NoRoom(NoRoom::Short(short)) => write!(f, "{short}"),
        }
    }
}

impl Reply {
    /// Reads a response to its end, as far as there is room for it.
    ///
    /// # Errors
    /// [`Incomplete`]; a response that is not gRPC's is a broken one.
    pub(crate) async fn read<B>(response: Response<B>, answer_bytes: &AnswerBytes) -> Result<Self, Incomplete>
    where
        B: HttpBody<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        let (parts, mut body) = response.into_parts();
        let (mut chunks, mut bytes, mut charge) = (Vec::new(), 0, None);
        let mut trailers = None;
        while let Some(frame) = body.frame().await {
            match frame.map_err(|error| Incomplete::Broken(error.to_string()))?.into_data() {
                Ok(data) => {
                    bytes += data.len() as u64;
                    answer_bytes.hold(&mut charge, bytes).map_err(Incomplete::NoRoom)?;
                    chunks.push(data);
                }
                Err(frame) => trailers = frame.into_trailers().ok(),
            }
        }
        let reply = Self { headers: parts.headers, body: join(chunks), trailers, charge };
        if reply.field("grpc-status").is_none() {
            let why = format!("the answer has no gRPC status (HTTP {})", parts.status.as_u16());
            return Err(Incomplete::Broken(why));
        }
        Ok(reply)
    }

    /// An answer by a stream, as the response that it would have been, as far as there is room for it.
    ///
    /// # Errors
    /// [`Incomplete::NoRoom`].
    pub(crate) fn of_answer(answer: Answer, answer_bytes: &AnswerBytes) -> Result<Self, Incomplete> {
        if answer.code != Code::Ok {
            let response: Response<Body> = answer.into_status().into_http();
            let headers = response.into_parts().0.headers;
            return Ok(Self { headers, body: Bytes::new(), trailers: None, charge: None });
        }
        let Answer { message, metadata: mut trailers, .. } = answer;
        let mut charge = None;
        answer_bytes.hold(&mut charge, (FRAME_BYTES + message.len()) as u64).map_err(Incomplete::NoRoom)?;
        let length = u32::try_from(message.len());
        let length = length.map_err(|_| Incomplete::Broken("the answer is no message of gRPC".to_owned()))?;
        // It is a copy, so that what a client has not read does not keep its frame.
        let mut body = BytesMut::with_capacity(FRAME_BYTES + message.len());
        body.put_u8(0);
        body.put_u32(length);
        body.extend_from_slice(&message);
        trailers.insert(Status::GRPC_STATUS, HeaderValue::from_static("0"));
        let content = (header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        let headers = HeaderMap::from_iter([content]);
        Ok(Self { headers, body: body.freeze(), trailers: Some(trailers), charge })
    }

    /// An answer of which another client's call had the body: with its frame and not compressed.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub(crate) fn of_kept(body: Bytes, answer_bytes: &AnswerBytes) -> Result<Self, NoRoom> {
        let mut charge = None;
        answer_bytes.hold(&mut charge, body.len() as u64)?;
        let content = (header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        let trailers = HeaderMap::from_iter([(Status::GRPC_STATUS, HeaderValue::from_static("0"))]);
        Ok(Self { headers: HeaderMap::from_iter([content]), body, trailers: Some(trailers), charge })
    }

    /// How an answer with all devices names itself, if the node knows names.
    pub(crate) fn devices(&self) -> Option<&str> {
        self.field(metadata::DEVICES)?.to_str().ok()
    }

    /// The body of a good answer, if every client can read it.
    pub(crate) fn plain_body(&self) -> Option<Bytes> {
        // The first byte of gRPC's frame says whether the message is compressed.
        (self.is_ok() && self.body.first() == Some(&0)).then(|| self.body.clone())
    }

    /// Whether the call succeeded.
    pub(crate) fn is_ok(&self) -> bool {
        self.field("grpc-status").is_some_and(|status| status == "0")
    }

    /// What the node says of its own trouble; `None` when the reply is the domain's word.
    pub(crate) fn outage(&self) -> Option<&str> {
        self.field(metadata::OUTAGE).map(|word| word.to_str().unwrap_or_default())
    }

    /// The text of a refusal, for logs.
    pub(crate) fn text(&self) -> &str {
        self.field("grpc-message").and_then(|text| text.to_str().ok()).unwrap_or_default()
    }

    /// The reply as the client gets it: without what only the agent must know.
    pub(crate) fn into_response(mut self) -> Response<Body> {
        remove_ours(&mut self.headers);
        let body = match self.trailers {
            None => Body::new(Full::new(self.body)),
            Some(mut trailers) => {
                remove_ours(&mut trailers);
                Body::new(Full::new(self.body).with_trailers(std::future::ready(Some(Ok(trailers)))))
            }
        };
        let mut response = Response::new(body);
        *response.headers_mut() = self.headers;
        if let Some(charge) = self.charge {
            // It is held until the client has read it.
            response.extensions_mut().insert(Reserved::of(charge));
        }
        response
    }

    /// A status field, which is in the trailers, or in the headers of a reply without message.
    /// Whether the node does not believe who calls.
    pub(crate) fn is_unauthenticated(&self) -> bool {
        self.field("grpc-status").is_some_and(|code| code == "16")
    }

    fn field(&self, name: &str) -> Option<&HeaderValue> {
        self.trailers.as_ref().and_then(|trailers| trailers.get(name)).or_else(|| self.headers.get(name))
    }
}

fn join(mut chunks: Vec<Bytes>) -> Bytes {
    match chunks.len() {
        0 => Bytes::new(),
        1 => chunks.remove(0),
        _ => {
            let mut whole = BytesMut::with_capacity(chunks.iter().map(Bytes::len).sum());
            chunks.iter().for_each(|chunk| whole.extend_from_slice(chunk));
            whole.freeze()
        }
    }
}

/// Takes out what only agents must know.
pub(crate) fn remove_ours(headers: &mut HeaderMap) {
    let ours: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with(OURS) || name.as_str() == PUSHBACK)
        .cloned()
        .collect();
    for name in ours {
        headers.remove(name);
    }
}

#[cfg(test)]
#[path = "message_test.rs"]
mod tests;
