//! Generated clients over a stream.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{HeaderValue, Request, Response, header};
use tokio::time::timeout;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::{Code, Status};

use crate::answer::Answer;
use crate::lost::Lost;
use crate::message_body::MessageBody;
use crate::one_message::OneMessage;
use crate::stream::CallStream;

/// As tonic says it.
const TIMEOUT_TEXT: &str = "Timeout expired";

/// A stream as a generated client takes it: each of its calls of one message and one answer is an op. Cheap to clone.
///
/// It cannot see what comes back from a method: one that answers by a stream of messages must be called another way, which
/// the node says, too.
#[derive(Debug, Clone)]
pub struct Multiplexed {
    stream: CallStream,
}

/// Why a call over a stream has no answer. It is the source of the status that a generated client gives.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    #[error(transparent)]
    Lost(#[from] Lost),
    /// It is too long, or compressed, or a stream: it is to go by a call of its own, and was not sent.
    #[error(
        "it is no single message of at most {} B, and needs a call of its own",
        crate::OP_MESSAGE_BYTES_MAX
    )]
    NeedsOwnCall,
}

impl Multiplexed {
    /// Over this stream.
    #[must_use]
    pub fn new(stream: CallStream) -> Self {
        Self { stream }
    }
}

impl Service<Request<Body>> for Multiplexed {
    type Response = Response<Body>;
    type Error = NoAnswer;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, NoAnswer>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NoAnswer>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let stream = self.stream.clone();
        Box::pin(async move {
            let one = OneMessage::of(request).map_err(|_| NoAnswer::NeedsOwnCall)?;
            Ok(send(&stream, &one).await?)
        })
    }
}

/// Sends one call over a stream.
///
/// # Errors
/// [`Lost`].
pub(crate) async fn send(stream: &CallStream, one: &OneMessage) -> Result<Response<Body>, Lost> {
    let options = one.options();
    let calling = stream.call(one.path(), one.message.clone(), &options);
    let answer = match options.patience {
        None => calling.await?,
        Some(patience) => match timeout(patience, calling).await {
            Ok(answer) => answer?,
            Err(_) => return Ok(Status::cancelled(TIMEOUT_TEXT).into_http()),
        },
    };
    Ok(response(answer))
}

/// An answer as a node's own response would be.
fn response(answer: Answer) -> Response<Body> {
    if answer.code != Code::Ok {
        return answer.into_status().into_http();
    }
    let mut trailers = answer.metadata;
    trailers.insert(Status::GRPC_STATUS, HeaderValue::from_static("0"));
    let body = MessageBody::of(answer.message, Some(trailers)).unwrap_or_default();
    let mut response = Response::new(Body::new(body));
    *response.version_mut() = http::Version::HTTP_2;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}
