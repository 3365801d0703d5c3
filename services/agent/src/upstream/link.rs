//! One connection to a node.

use std::error::Error;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use tokio::time::{Instant, timeout};
use tonic::Code;
use tripod_calls::Lost;
use tripod_dial::Shown;
use tripod_proto::tripod::v1::kv_client::KvClient;
use tripod_proto::tripod::v1::{Consistency, GetRequest};

use super::ask::is_own_trouble;
use super::link_stream::LinkStream;
use super::wire::{Reach, Wire};
use crate::answer_bytes::AnswerBytes;
use crate::config::Timing;
use crate::message::{Incomplete, Message, Reply};

/// Why a call is made again that was refused by a token in whose place there is another one.
const REPLACED: &str = "the token that it showed has run out, and there is another one";

/// Tells links apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkId(pub(crate) u64);

/// A connection to a node that has shown that it can serve.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) id: LinkId,
    pub(crate) address: String,
    pub(crate) since: Instant,
    pub(crate) wire: Wire,
    stream: LinkStream,
}

impl Link {
    /// Connects, and has the node show that it can serve.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) async fn open(
        id: LinkId,
        address: &str,
        timing: &Timing,
        reach: &Reach,
    ) -> Result<Self, String> {
        let limit = timing.connect_limit;
        let wire = match timeout(limit, Wire::connect(address, limit, reach)).await {
            Ok(connected) => connected.map_err(|error| root_cause(error.as_ref()))?,
            Err(_) => return Err("no connection in time".to_owned()),
        };
        let stream = LinkStream::default();
        let link = Self { id, address: address.to_owned(), since: Instant::now(), wire, stream };
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
        match timeout(limit, KvClient::new(self.wire.clone()).get(request)).await {
            Ok(Err(status)) if status.code() == Code::Unimplemented => {
                Err("it answers, but not as a node does; is this a node's client port?".to_owned())
            }
            Ok(Err(status)) if is_own_trouble(&status) => Err(root_cause(&status)),
            // A refusal is an answer, too.
            Ok(_) => Ok(()),
            Err(_) => Err(format!("connected, but no answer within {:.1} s", limit.as_secs_f64())),
        }
    }

    /// One attempt of a client's call: by the link's stream if that takes it now, else by itself. `ours` is the same for all
    /// calls that are sent so. Dropping the future gives the call up.
    ///
    /// # Errors
    /// [`Incomplete`]: the node may have received and executed it.
    pub(crate) async fn send(
        &self,
        message: &Message,
        ours: &HeaderMap,
        stamp: Option<HeaderValue>,
        answer_bytes: &AnswerBytes,
    ) -> Result<Reply, Incomplete> {
        let shown = Shown::now();
        // A large answer would come whole by the stream, in front of those of others.
        if !answer_bytes.is_asked_again()
            && let Some(op) = message.op()
            && let Some(stream) = self.stream.ready(&self.wire, ours, &shown)
        {
            let calling = stream.call(&message.path, op, &message.options(stamp.clone()));
            match calling.await {
                Ok(answer) => return unless_replaced(Reply::of_answer(answer, answer_bytes)?, &shown),
                Err(Lost::Unknown(reason)) => return Err(Incomplete::Broken(reason.to_string())),
                Err(Lost::NotSent(reason)) => {
                    tracing::debug!(path = message.path, %reason, "no op, the call goes by itself");
                }
            }
        }
        self.send_by_itself(message, ours, stamp, answer_bytes).await
    }

    /// Whether the node has said by the link's stream that it stops. It is told once.
    pub(crate) fn takes_leave(&self) -> bool {
        self.stream.takes_leave()
    }

    /// One attempt of a client's call, as a call of its own.
    ///
    /// # Errors
    /// As those of [`Self::send`].
    pub(crate) async fn send_by_itself(
        &self,
        message: &Message,
        ours: &HeaderMap,
        stamp: Option<HeaderValue>,
        answer_bytes: &AnswerBytes,
    ) -> Result<Reply, Incomplete> {
        let shown = Shown::now();
        let sent = self.wire.send(message.attempt(ours, stamp)).await;
        let response = sent.map_err(|error| Incomplete::Broken(root_cause(error.as_ref())))?;
        unless_replaced(Reply::read(response, answer_bytes).await?, &shown)
    }
}

/// The reply, unless it only says that the agent's own token has run out, and the agent has another one. A client hears nothing of
/// that: it would take it for the end of its job.
fn unless_replaced(reply: Reply, shown: &Shown) -> Result<Reply, Incomplete> {
    match reply.is_unauthenticated() && shown.is_replaced() {
        true => Err(Incomplete::Broken(REPLACED.to_owned())),
        false => Ok(reply),
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

#[cfg(test)]
mod tests {
    use tripod_calls::Answer;
    use tripod_port::{Budget, CALL_BYTES, CallBytes, MemoryLimits};

    use super::*;

    #[test]
    fn s26_no_client_hears_that_a_token_has_run_out_in_whose_place_there_is_another_one() {
        let reply = |code| {
            let (text, details, message) = (String::new(), bytes::Bytes::new(), bytes::Bytes::new());
            let answer = Answer { code, text, details, message, metadata: HeaderMap::new() };
            let account = Budget::new(MemoryLimits::none()).account();
            let held = CallBytes::of(account.call(CALL_BYTES).expect("there is no limit"));
            Reply::of_answer(answer, &AnswerBytes::of(held)).expect("there is room")
        };
        let before = Shown::from(HeaderValue::from_static("Bearer trp_agent_x"));
        let refused = unless_replaced(reply(Code::Unauthenticated), &before).map(drop);
        assert_eq!(refused, Err(Incomplete::Broken(REPLACED.to_owned())));
        assert!(
            unless_replaced(reply(Code::Unauthenticated), &Shown::now()).is_ok(),
            "there is no other one"
        );
        assert!(unless_replaced(reply(Code::NotFound), &before).is_ok());
    }
}
