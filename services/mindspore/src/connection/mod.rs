//! One connection: which protocol it speaks, and its messages one after the other.
//!
//! | module | holds |
//! |---|---|
//! | `incoming` | frames as they come, counted and within a time |
//! | `ended` | why a connection ends |
//! | `complaints` | what is told to the log of clients, and how often |

mod complaints;
mod ended;
mod incoming;

use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, WriteHalf};
use tripod_gateway::{Gateway, JobBinding};
use tripod_port::{Accepted, Account, CallerAddress, Deadlines, Stopping};
use tripod_state::Scope;

use self::incoming::Incoming;
use crate::pulse::Pulse;
use crate::topology;
use crate::wire::{Opening, rpc0};

pub(crate) use self::complaints::{Complaints, shown};
pub(crate) use self::ended::{Ended, outage_code};
pub(crate) use self::incoming::TIMEOUTS;

/// How long a client may take over an answer.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// What all connections of a port share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Port {
    pub(crate) gateway: Gateway,
    pub(crate) binding: JobBinding,
    pub(crate) pulse: Pulse,
    pub(crate) complaints: Complaints,
}

/// Serves a connection until the client ends, or the port stops between two messages.
pub(crate) async fn serve(port: Port, accepted: Accepted, stopping: Stopping) {
    let Accepted { stream, peer, account, deadlines } = accepted;
    let complaints = port.complaints.clone();
    if let Err(ended) = converse(port, stream, (peer, account, deadlines), stopping).await {
        if ended.is_told() {
            complaints.tell(peer, &format_args!("{ended}; the connection is closed"));
        } else {
            tracing::debug!(?peer, %ended, "a connection of a MindSpore node ends");
        }
    }
}

async fn converse(
    port: Port,
    stream: impl AsyncRead + AsyncWrite + Send,
    (peer, account, deadlines): (CallerAddress, Account, Deadlines),
    stopping: Stopping,
) -> Result<(), Ended> {
    let (reader, writer) = tokio::io::split(stream);
    let mut incoming = Incoming::new(reader, account.clone(), deadlines, stopping.clone());
    match incoming.opening().await? {
        None => return Ok(()),
        Some(Opening::Rpc0 | Opening::Unknown) => {}
        Some(Opening::PsCore) => return Err(Ended::Unserved("the protocol of parameter servers")),
        Some(Opening::Http) => return Err(Ended::Unserved("HTTP")),
    }
    let job = port.binding.find(&port.gateway, None, None).await.map_err(Ended::Outage)?;
    // The port closes with its job, so this is a matter of a moment.
    let Ok(job) = job else { return Ok(()) };
    let mut session = topology::Session::new(port, Scope { job, service: None }, peer);
    let mut outgoing = Outgoing { writer, account };
    while let Some(asked) = incoming.next::<rpc0::Frame>().await? {
        let answer = tokio::select! {
            biased;
            answer = session.answer(&asked.frame) => answer?,
            () = stopping.overdue() => return Err(Ended::Overdue),
        };
        if let Some(answer) = answer {
            outgoing.send(&answer.encode()).await?;
        }
    }
    Ok(())
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
