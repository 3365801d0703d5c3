//! One connection to a node.

use std::error::Error;
use std::future::poll_fn;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use tokio::time::{Instant, timeout};
use tonic::Code;
use tonic::transport::{Channel, Endpoint};
use tower::Service;
use tripod_proto::tripod::v1::kv_client::KvClient;
use tripod_proto::tripod::v1::{Consistency, GetRequest};

use super::ask::is_own_trouble;
use crate::config::Timing;
use crate::message::{Broken, Message, Reply};

/// HTTP/2 pings, also while nothing else happens: a node that was stopped or cut off is noticed by them.
const PING_INTERVAL: Duration = Duration::from_secs(1);
const PING_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes that a node may send on one call, and on the connection, before we grant more: values of tens
/// of megabytes come.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// Tells links apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkId(pub(crate) u64);

/// A connection to a node that has shown that it can serve.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) id: LinkId,
    pub(crate) address: String,
    pub(crate) since: Instant,
    pub(crate) channel: Channel,
}

impl Link {
    /// Connects, and has the node show that it can serve.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) async fn open(id: LinkId, address: &str, timing: &Timing) -> Result<Self, String> {
        let endpoint = Endpoint::from_shared(format!("http://{address}"))
            .map_err(|error| root_cause(&error))?
            .connect_timeout(timing.connect_limit)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        let channel = match timeout(timing.connect_limit, endpoint.connect()).await {
            Ok(connected) => connected.map_err(|error| root_cause(&error))?,
            Err(_) => return Err("no connection in time".to_owned()),
        };
        let link = Self { id, address: address.to_owned(), since: Instant::now(), channel };
        link.probe(timing.answer_limit).await?;
        Ok(link)
    }

    /// Asks the node whether it can serve: reads a key as of all writes acknowledged so far, for which it
    /// needs a leader as much as a client's call does. An empty batch of heartbeats would be answered by
    /// any node that is up.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) async fn probe(&self, limit: Duration) -> Result<(), String> {
        let request = GetRequest { consistency: Consistency::Linearizable.into(), ..GetRequest::default() };
        match timeout(limit, KvClient::new(self.channel.clone()).get(request)).await {
            Ok(Err(status)) if status.code() == Code::Unimplemented => {
                Err("it answers, but not as a node does; is this a node's client port?".to_owned())
            }
            Ok(Err(status)) if is_own_trouble(&status) => Err(root_cause(&status)),
            // A refusal is an answer, too.
            Ok(_) => Ok(()),
            Err(_) => Err(format!("connected, but no answer within {:.1} s", limit.as_secs_f64())),
        }
    }

    /// One attempt of a client's call.
    ///
    /// # Errors
    /// [`Broken`]: the node may have received and executed it.
    pub(crate) async fn send(
        &self,
        message: &Message,
        ours: &HeaderMap,
        stamp: Option<HeaderValue>,
    ) -> Result<Reply, Broken> {
        let mut channel = self.channel.clone();
        let broken = |error: tonic::transport::Error| Broken(root_cause(&error));
        poll_fn(|context| channel.poll_ready(context)).await.map_err(broken)?;
        Reply::read(channel.call(message.attempt(ours, stamp)).await.map_err(broken)?).await
    }
}

/// The innermost cause of an error: the outer texts of the transport only say that it is one.
pub(crate) fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    match root.downcast_ref::<tonic::Status>() {
        Some(status) => status.message().to_owned(),
        None => root.to_string(),
    }
}
