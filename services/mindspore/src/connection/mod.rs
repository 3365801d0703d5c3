//! One connection: which protocol it speaks, and its messages.
//!
//! | module | holds |
//! |---|---|
//! | `incoming` | frames as they come, counted and within a time |
//! | `outgoing` | answers as they go, likewise |
//! | `held` | what is asked while nobody leads |
//! | `ended` | why a connection ends |
//! | `complaints` | what is told to the log of clients, and how often |

mod complaints;
mod ended;
pub(crate) mod held;
mod incoming;
mod outgoing;

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tripod_dial::Dialler;
use tripod_gateway::{Gateway, JobBinding};
use tripod_port::{Accepted, Account, Ahead, CallerAddress, Deadlines, Stopping};
use tripod_state::Scope;

use crate::calls::Calls;
use crate::pulse::Pulse;
use crate::wire::{Opening, rpc0};
use crate::{http, ps, topology};

pub(crate) use self::complaints::{Complaints, shown};
pub(crate) use self::ended::{Ended, outage_code};
pub(crate) use self::incoming::{Incoming, Received, TIMEOUTS};
pub(crate) use self::outgoing::{ANSWER_TIME, Outgoing};

/// What all connections of a port share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Port {
    pub(crate) gateway: Gateway,
    pub(crate) binding: JobBinding,
    pub(crate) pulse: Pulse,
    pub(crate) complaints: Complaints,
    pub(crate) roster: Arc<ps::Roster>,
    pub(crate) calls: Calls,
    /// Judges where nodes say that they listen.
    pub(crate) dialler: Dialler,
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
    let Some(opening) = incoming.opening().await? else { return Ok(()) };
    let job = port.binding.find(&port.gateway, None, None).await.map_err(Ended::Outage)?;
    // The port closes with its job, so this is a matter of a moment.
    let Ok(job) = job else { return Ok(()) };
    let scope = Scope { job, service: None };
    match opening {
        Opening::PsCore => {
            let session = ps::Session::new(port, scope, peer);
            ps::converse(&session, incoming, Outgoing::new(writer, account), stopping).await
        }
        Opening::Http => {
            let caller = http::Caller::new(port, scope, peer, account);
            http::converse(&caller, incoming.into_rest(), writer, stopping).await
        }
        // What is no protocol is no frame of this one.
        Opening::Rpc0 | Opening::Unknown => {
            let session = topology::Session::new(port, scope, peer);
            one_by_one(session, incoming, Outgoing::new(writer, account), stopping).await
        }
    }
}

/// A connection of a dynamic cluster: its frames have no number by which answers could be told apart, so each is answered
/// before the next has its turn. What a process wanted of an entry, or of the cluster's places, is given up a while after it
/// has gone: another process in its place may have written or registered since. What it asked is, too. The rest of what it has
/// said is done, in its order.
async fn one_by_one(
    mut session: topology::Session,
    incoming: Incoming<impl AsyncRead + Unpin + Send>,
    mut outgoing: Outgoing<impl AsyncWrite + Unpin + Send>,
    stopping: Stopping,
) -> Result<(), Ended> {
    let mut incoming = Ahead::<_, Received<rpc0::Frame>>::new(incoming, stopping.clone());
    while let Some(asked) = incoming.next().await? {
        let patience = topology::patience(&asked.frame);
        let answer = tokio::select! {
            biased;
            answer = session.answer(&asked.frame) => answer?,
            () = stopping.overdue() => return Err(Ended::Overdue),
            () = incoming.left(patience) => None,
        };
        if let Some(answer) = answer {
            match outgoing.send(&answer.encode()).await {
                Err(Ended::Lost(_)) => incoming.lost(),
                sent => sent?,
            }
        }
    }
    Ok(())
}
