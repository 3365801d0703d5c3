//! One HTTP/2 connection to a node.
//!
//! gRPC's library would pass each call through a queue and two tasks of its own, write the headers before
//! it asks for the message, and open another connection when this one is lost. An agent sends small
//! messages that it has in memory, all day, and has to know when a connection ends.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Ping, PingPong, Reason, RecvStream, SendStream};
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::uri::{Authority, Scheme};
use http::{Request, Response, Uri, Version};
use http_body::{Body as HttpBody, Frame};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::body::Body;
use tower::{Service, ServiceExt};

use super::request_body;

/// Pings, also while nothing else happens: a node that was stopped or cut off is noticed by them.
const PING_INTERVAL: Duration = Duration::from_secs(1);
const PING_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes that a node may send on one call, and on the connection, before we grant more: values of tens
/// of megabytes come.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

type BoxError = Box<dyn Error + Send + Sync>;

/// Connects to a node within the process.
pub type Dial = Arc<dyn Fn(&str) -> io::Result<DuplexStream> + Send + Sync>;

/// How nodes are reached: over TCP, unless a simulation brings a network of its own.
#[derive(Clone, Default)]
pub(crate) struct Reach(pub(crate) Option<Dial>);

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Within" } else { "Tcp" })
    }
}

/// A connection. Cheap to clone; it is closed when the last clone and the last call are gone.
#[derive(Debug, Clone)]
pub(crate) struct Wire {
    requests: SendRequest<Bytes>,
    node: Authority,
}

impl Wire {
    /// Connects to `address`, each of whose addresses gets a part of `limit`.
    ///
    /// # Errors
    /// No connection, or its other end does not speak HTTP/2.
    pub(crate) async fn connect(address: &str, limit: Duration, reach: &Reach) -> Result<Self, BoxError> {
        let node: Authority = address.parse()?;
        if let Some(dial) = &reach.0 {
            return Self::over(dial(address)?, node).await;
        }
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(limit));
        let socket: TokioIo<TcpStream> = connector.oneshot(uri(&node, "/")?).await?;
        let Some(tls) = tripod_dial::protection() else { return Self::over(socket.into_inner(), node).await };
        let protected = timeout(limit, tls.connect_and_hear(socket.into_inner(), node.host())).await??;
        Self::over(protected, node).await
    }

    async fn over<S>(socket: S, node: Authority) -> Result<Self, BoxError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (requests, connection) = h2::client::Builder::new()
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .handshake(socket)
            .await?;
        tokio::spawn(keep(connection));
        Ok(Self { requests, node })
    }

    /// Whether further calls may be made: not after the node has said that it takes none, even if those
    /// that wait go on.
    pub(crate) async fn takes_calls(&self) -> bool {
        self.requests.clone().ready().await.is_ok()
    }

    /// Makes a call whose message is complete. Dropping the future, or the response, gives it up.
    ///
    /// # Errors
    /// The connection or the call was broken off; the node may have received and executed it.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Result<Response<Received>, BoxError> {
        let (head, message) = request.into_parts();
        let (response, mut stream) = self.begin(head, message.is_empty()).await?;
        if !message.is_empty() {
            // What does not fit the window waits in h2; it is in memory anyway.
            stream.send_data(message, true)?;
        }
        received(response).await
    }

    /// Makes a call whose body goes on. Its bytes are sent as the node takes them, by a task that ends with the body, or when
    /// the node or the connection ends the call.
    ///
    /// # Errors
    /// As those of [`Self::send`].
    async fn send_streaming(
        &self,
        head: Parts,
        first: Bytes,
        body: Body,
    ) -> Result<Response<Received>, BoxError> {
        let (response, stream) = self.begin(head, false).await?;
        tokio::spawn(request_body::pump(body, first, stream));
        received(response).await
    }

    /// Sends the head of a request; `is_all`: it has no body.
    async fn begin(
        &self,
        mut head: Parts,
        is_all: bool,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), BoxError> {
        head.uri = uri(&self.node, head.uri.path())?;
        head.version = Version::HTTP_2;
        // What the agent was told to show counts for all of its clients, as its certificate does.
        if let Some(bearer) = tripod_dial::bearer() {
            head.headers.insert(AUTHORIZATION, bearer);
        }
        let mut requests = self.requests.clone().ready().await?;
        Ok(requests.send_request(Request::from_parts(head, ()), is_all)?)
    }
}

async fn received(response: ResponseFuture) -> Result<Response<Received>, BoxError> {
    Ok(response.await?.map(|stream| Received { stream, is_data_over: false }))
}

fn uri(node: &Authority, path: &str) -> Result<Uri, http::Error> {
    Uri::builder().scheme(Scheme::HTTP).authority(node.clone()).path_and_query(path).build()
}

/// Runs a connection until it ends or its node is silent.
async fn keep<S: AsyncRead + AsyncWrite + Unpin>(mut connection: h2::client::Connection<S, Bytes>) {
    let pings = connection.ping_pong().expect("nobody else has taken it");
    tokio::select! {
        ended = connection => {
            if let Err(error) = ended {
                tracing::debug!(%error, "connection ended");
            }
        }
        () = until_silent(pings) => tracing::debug!("no answer to a ping, connection given up"),
    }
}

/// Resolves when a ping is not answered in time.
async fn until_silent(mut pings: PingPong) {
    loop {
        tokio::time::sleep(PING_INTERVAL).await;
        match timeout(PING_TIMEOUT, pings.ping(Ping::opaque())).await {
            Ok(Ok(_)) => {}
            // The connection ends by itself.
            Ok(Err(_)) => std::future::pending().await,
            Err(_) => return,
        }
    }
}

/// For the agent's own questions, whose messages are small, and for streams of calls.
impl Service<Request<Body>> for Wire {
    type Response = Response<Received>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let wire = self.clone();
        Box::pin(async move {
            let (head, mut body) = request.into_parts();
            let (first, is_whole) = request_body::read_at_once(&mut body).await?;
            if is_whole {
                return wire.send(Request::from_parts(head, first)).await;
            }
            wire.send_streaming(head, first, body).await
        })
    }
}

/// What a node sends on one call.
#[derive(Debug)]
pub(crate) struct Received {
    stream: RecvStream,
    is_data_over: bool,
}

impl HttpBody for Received {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        if !self.is_data_over {
            match ready!(self.stream.poll_data(context)) {
                Some(Ok(data)) => {
                    self.stream.flow_control().release_capacity(data.len())?;
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                // A node that has answered needs no more of the request.
                Some(Err(error)) if error.reason() == Some(Reason::NO_ERROR) => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => self.is_data_over = true,
            }
        }
        let trailers = ready!(self.stream.poll_trailers(context))?;
        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
    }
}

#[cfg(test)]
#[path = "wire_test.rs"]
mod tests;
