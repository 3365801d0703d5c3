//! Where a node of the parameter server is called, and what it answers there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use prost::Message as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tripod_proto::mindspore::ps_core as pb;
use tripod_proto::mindspore::ps_core::NodeCommand;

use super::frames::Ps;
use super::line::Line;

/// Between two attempts to accept a connection where there was no room for one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// What a node is told by calls to its own address.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// Who belongs to the cluster.
    Members(pb::SendMetadataMessage),
    /// That the cluster scales, so that the node registers again unless it leaves.
    ScaleOut(pb::ScaleOutMessage),
    ScaleIn(pb::ScaleInMessage),
    /// That all are done with scaling.
    ScaleDone,
    Event(u32),
    /// That all have finished.
    Finish,
    /// Something for servers, by its number.
    Data(i32),
}

/// Called with whatever a node is told, before it is answered.
pub type Hear = Arc<dyn Fn(&Told) + Send + Sync>;

/// A node's own address. Whoever drops it ends it, with all connections to it.
#[derive(Debug)]
pub(super) struct Port {
    number: u16,
    serving: JoinHandle<()>,
}

impl Port {
    /// Listens on a free port of loopback.
    ///
    /// # Errors
    /// There is none, or no file descriptor for it.
    pub(super) async fn open(hear: Hear) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("a node cannot listen")?;
        let number = listener.local_addr().context("a listener has an address")?.port();
        Ok(Self { number, serving: tokio::spawn(serve(listener, hear)) })
    }

    pub(super) fn number(&self) -> u16 {
        self.number
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, hear: Hear) {
    // They end with this one.
    let mut connections = JoinSet::new();
    let leaves = Arc::new(AtomicBool::new(false));
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(answer(stream, Arc::clone(&hear), Arc::clone(&leaves)));
                }
                // Nothing is left to accept with, for the moment.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Answers until the scheduler ends the connection.
async fn answer(stream: TcpStream, hear: Hear, leaves: Arc<AtomicBool>) {
    let mut line = Line::of(stream);
    while let Ok(frame) = line.hear::<Ps>().await {
        let Some((told, payload)) = understood(&frame) else { continue };
        if let Told::ScaleIn(message) = &told {
            leaves.store(message.is_node_scale_in, Ordering::Relaxed);
        }
        hear(&told);
        // A node that leaves says nothing to the last list of members.
        let is_silent = matches!(told, Told::Members(_)) && leaves.load(Ordering::Relaxed);
        if !is_silent && line.send(&frame.echo(payload)).await.is_err() {
            return;
        }
    }
}

/// What a frame tells, and what comes back with its echo. A real node ends where it knows no command; a played one says
/// nothing, and whoever called it notices.
fn understood(frame: &Ps) -> Option<(Told, Bytes)> {
    let payload = || frame.payload.clone();
    let told = match NodeCommand::try_from(frame.meta.cmd).ok()? {
        NodeCommand::SendMetadata | NodeCommand::SchedulerRecovery => {
            (Told::Members(pb::SendMetadataMessage::decode(payload()).ok()?), payload())
        }
        NodeCommand::ScaleOut => (Told::ScaleOut(pb::ScaleOutMessage::decode(payload()).ok()?), payload()),
        NodeCommand::ScaleIn => (Told::ScaleIn(pb::ScaleInMessage::decode(payload()).ok()?), payload()),
        NodeCommand::ScaleOutDone | NodeCommand::ScaleInDone => (Told::ScaleDone, Bytes::new()),
        NodeCommand::SendEvent => {
            (Told::Event(pb::EventRespMessage::decode(payload()).ok()?.event), payload())
        }
        NodeCommand::Finish => (Told::Finish, Bytes::new()),
        NodeCommand::SendData => (Told::Data(frame.meta.user_cmd), Bytes::from_static(b"{}")),
        _ => return None,
    };
    Some(told)
}
