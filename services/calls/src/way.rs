//! How calls get to a node.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{HeaderValue, Request, Response, header};
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::transport::Channel;

use crate::lost::Lost;
use crate::multiplexed;
use crate::one_message::OneMessage;
use crate::stream::CallStream;

type BoxError = Box<dyn Error + Send + Sync>;

/// A connection, and perhaps a stream over it, as a generated client takes them. Cheap to clone.
///
/// A call goes by the stream if there is one. What that does not take, or has certainly not sent, goes by a call of its own.
/// A method that answers by a stream of messages is called over [`Self::channel`].
#[derive(Debug, Clone)]
pub struct Way {
    channel: Channel,
    stream: Option<CallStream>,
    bearer: Option<HeaderValue>,
}

impl Way {
    /// Over this connection, by this stream.
    #[must_use]
    pub fn new(channel: Channel, stream: Option<CallStream>) -> Self {
        Self { channel, stream, bearer: None }
    }

    /// The same, on which each call says who makes it: the value of `authorization`. Whoever gives one knows that the connection is
    /// protected, and whose it is.
    #[must_use]
    pub fn bearing(self, bearer: Option<HeaderValue>) -> Self {
        Self { bearer, ..self }
    }

    /// The same without a stream: for a method that answers by a stream of messages.
    #[must_use]
    pub fn apart(self) -> Self {
        Self { stream: None, ..self }
    }

    /// The connection.
    #[must_use]
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }
}

impl Service<Request<Body>> for Way {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if self.stream.is_some() {
            return Poll::Ready(Ok(()));
        }
        self.channel.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if let Some(bearer) = &self.bearer {
            request.headers_mut().insert(header::AUTHORIZATION, bearer.clone());
        }
        let Some(stream) = self.stream.clone() else {
            let answer = self.channel.call(request);
            return Box::pin(async move { Ok(answer.await?) });
        };
        let channel = self.channel.clone();
        Box::pin(async move {
            let request = match OneMessage::of(request) {
                Err(other) => other,
                Ok(one) => match multiplexed::send(&stream, &one).await {
                    Ok(response) => return Ok(response),
                    Err(lost @ Lost::Unknown(_)) => return Err(lost.into()),
                    Err(Lost::NotSent(_)) => one.into_request(),
                },
            };
            by_itself(channel, request).await
        })
    }
}

async fn by_itself(mut channel: Channel, request: Request<Body>) -> Result<Response<Body>, BoxError> {
    std::future::poll_fn(|context| channel.poll_ready(context)).await?;
    Ok(channel.call(request).await?)
}
