//! One client's connection: its frames one after the other, and their answers.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, WriteHalf};
use tripod_mindspore_wire::{Opening, ps, rpc0};
use tripod_port::{Accepted, Account, Bytestream, CallerConnection, Stopping};

use super::Relay;
use super::ended::Ended;
use super::incoming::Incoming;
use super::passed::Passed;
use super::way::Way;
use crate::calls::{Kind, Repeat};

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
    let mut conversation = Conversation { relay, incoming, outgoing: Outgoing { writer, account }, stopping };
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
    async fn pass_on<F: Passed>(&mut self) -> Result<(), Ended> {
        let caller = CallerConnection::current().unwrap_or_default();
        if !is_job_settled(&self.relay, &self.stopping).await? {
            return Ok(());
        }
        let mut way = Way::new(self.relay.clone(), self.outgoing.account.clone());
        while let Some(asked) = self.incoming.next::<F>().await? {
            let _counted = self.relay.meters.call(Kind::Other);
            // What changes something is finished for a client that has gone, as a node would that has it already; what it only
            // wanted to know is not.
            let is_look = asked.inner.repeat()? == Repeat::Free;
            let answer = tokio::select! {
                biased;
                answer = way.answer(&asked.inner, caller) => answer?,
                () = self.stopping.overdue() => return Err(Ended::Overdue),
                () = self.incoming.gone(), if is_look => return Ok(()),
            };
            if let Some(answer) = answer {
                self.outgoing.send(&answer.inner.bytes()).await?;
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
