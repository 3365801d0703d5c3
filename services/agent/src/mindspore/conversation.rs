//! One client's connection: its frames one after the other, and their answers.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, WriteHalf};
use tripod_mindspore_wire::{Opening, ps, rpc0};
use tripod_port::{Accepted, Account, Ahead, Bytestream, CallerConnection, Stopping};

use super::Relay;
use super::ended::Ended;
use super::incoming::{Held, Incoming};
use super::passed::Passed;
use super::way::Way;
use crate::calls::Kind;

/// How long a client may take over an answer.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// Serves a connection until the client ends, or the agent stops between two messages.
pub(super) async fn serve(relay: Relay, accepted: Accepted, stopping: Stopping) {
    let _counted = relay.meters.client();
    let complaints = relay.complaints.clone();
    if let Err(ended) = converse(relay, accepted, stopping).await {
        if ended.is_told() {
            complaints.tell(&format_args!("{ended}; the connection of a MindSpore node is closed"));
        } else {
            tracing::debug!(%ended, "a connection of a MindSpore node ends");
        }
    }
}

async fn converse(relay: Relay, accepted: Accepted, stopping: Stopping) -> Result<(), Ended> {
    let Accepted { stream, account, deadlines, .. } = accepted;
    let (reader, writer) = tokio::io::split(stream);
    let mut incoming = Incoming::new(reader, account.clone(), deadlines, stopping.clone());
    let Some(opening) = incoming.opening().await? else { return Ok(()) };
    let conversation = Conversation { relay, incoming, outgoing: Outgoing { writer, account }, stopping };
    match opening {
        Opening::Rpc0 | Opening::Unknown => conversation.pass_on::<rpc0::Frame>().await,
        Opening::PsCore => conversation.pass_on::<ps::Parts>().await,
        Opening::Http => Err(Ended::Unserved("HTTP")),
    }
}

/// What comes from a client, and what goes to it.
struct Conversation<R> {
    relay: Relay,
    incoming: Incoming<R>,
    outgoing: Outgoing<Bytestream>,
    stopping: Stopping,
}

impl<R: AsyncRead + Unpin + Send> Conversation<R> {
    async fn pass_on<F: Passed>(self) -> Result<(), Ended> {
        let Self { relay, incoming, mut outgoing, stopping } = self;
        let caller = CallerConnection::current().unwrap_or_default();
        if !is_job_settled(&relay, &stopping).await? {
            return Ok(());
        }
        let mut way = Way::new(relay.clone(), outgoing.account.clone());
        let mut incoming = Ahead::<_, Held<F>>::new(incoming, stopping.clone());
        while let Some(asked) = incoming.next().await? {
            let _counted = relay.meters.call(Kind::Other);
            let patience = asked.inner.patience()?;
            let answer = tokio::select! {
                biased;
                answer = way.answer(&asked.inner, caller) => answer?,
                () = stopping.overdue() => return Err(Ended::Overdue),
                () = incoming.left(patience) => None,
            };
            if let Some(answer) = answer {
                match outgoing.send(&answer.inner.bytes()).await {
                    Err(Ended::Lost(_)) => incoming.lost(),
                    sent => sent?,
                }
            }
        }
        Ok(())
    }
}

/// Waits until it is known whether there is a job. `false`: the agent stops before.
async fn is_job_settled(relay: &Relay, stopping: &Stopping) -> Result<bool, Ended> {
    tokio::select! {
        biased;
        settled = relay.job.settled() => {
            settled.map_err(|missing| Ended::NotServed(missing.message().to_owned()))?;
            Ok(true)
        }
        given_up = relay.upstream.given_up() => Err(Ended::GivenUp(given_up.message().to_owned())),
        () = stopping.begun() => Ok(false),
    }
}

/// What goes to the client.
struct Outgoing<S> {
    writer: WriteHalf<S>,
    account: Account,
}

impl<S: AsyncWrite> Outgoing<S> {
    async fn send(&mut self, frame: &Bytes) -> Result<(), Ended> {
        let _held = self.account.answer(frame.len() as u64)?;
        let written = tokio::time::timeout(ANSWER_TIME, async {
            self.writer.write_all(frame).await?;
            self.writer.flush().await
        });
        let late = Ended::Untaken { seconds: ANSWER_TIME.as_secs() };
        Ok(written.await.map_err(|_| late)??)
    }
}
