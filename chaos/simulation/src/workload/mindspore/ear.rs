//! Where a process of a node of the parameter server is called, what it hears there, and what it says back.

use std::collections::BTreeSet;
use std::future::pending;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use prost::Message as _;
use tokio::task::JoinHandle;
use tripod_checkers::history::{Act, ClusterRole, LifeId, ListedNode, NodeName, Rank};
use tripod_mindspore::wire::ps::{Format, Frame};
use tripod_proto::mindspore::ps_core as pb;
use tripod_proto::mindspore::ps_core::{ClusterState, NodeCommand, NodeRole};
use tripod_state::mindspore::cluster::Scaling;
use turmoil::net::TcpListener;

use super::scribe::Scribe;
use super::way::Line;
use crate::network;

/// What stands for no rank.
pub(super) const UNRANKED: u32 = u32::MAX;

/// What it has been told.
#[derive(Debug, Clone, Default)]
pub(super) struct Heard {
    pub(super) has_list: bool,
    pub(super) events: BTreeSet<u32>,
    pub(super) has_finished: bool,
    /// How often it was told that the cluster scales.
    pub(super) scales: u64,
    /// It is one of those that leave.
    pub(super) is_leaving: bool,
    /// What it has to report when it is done with it.
    pub(super) owes: Option<Scaling>,
}

/// Whoever drops it ends it, with its connection.
pub(super) struct Ear {
    heard: Arc<Mutex<Heard>>,
    serving: JoinHandle<()>,
}

/// What a frame tells.
enum Told {
    Members(pb::SendMetadataMessage),
    Scale {
        leaving: bool,
    },
    ScaleDone,
    Event(u32),
    Finish,
    /// Something for servers: nobody says it here.
    Data,
}

impl Ear {
    /// Listens at a port of the host that runs.
    ///
    /// # Errors
    /// Somebody listens there.
    pub(super) async fn open(scribe: &Scribe, port: u16) -> io::Result<Self> {
        let listener = network::listen(port).await?;
        let heard = Arc::<Mutex<Heard>>::default();
        let serving = tokio::spawn(serve(listener, scribe.clone(), Arc::clone(&heard)));
        Ok(Self { heard, serving })
    }

    pub(super) fn heard(&self) -> Heard {
        self.heard.lock().clone()
    }

    /// It has reported that.
    pub(super) fn has_done(&self, scaling: Scaling) {
        let mut heard = self.heard.lock();
        if heard.owes == Some(scaling) {
            heard.owes = None;
        }
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Only the last connection is listened to: what a leader that was replaced still has on its way would come behind what the
/// next one says.
async fn serve(listener: TcpListener, scribe: Scribe, heard: Arc<Mutex<Heard>>) {
    let mut connection: Option<BoxFuture<'static, ()>> = None;
    loop {
        let listening = async {
            match &mut connection {
                Some(connection) => connection.await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { return };
                let answering = answer(Line::over(stream), scribe.clone(), Arc::clone(&heard));
                connection = Some(Box::pin(answering));
            }
            () = listening => connection = None,
        }
    }
}

/// Answers until the scheduler ends the connection.
async fn answer(mut line: Line, scribe: Scribe, heard: Arc<Mutex<Heard>>) {
    while let Ok(frame) = line.hear::<Frame>().await {
        let Some((told, payload)) = understood(&frame) else { continue };
        if let Some(act) = act(&told) {
            scribe.note(act);
        }
        let is_leaving = {
            let mut heard = heard.lock();
            heard.add(&told);
            heard.is_leaving
        };
        // A node that leaves says nothing to the last list of members.
        let is_silent = is_leaving && matches!(told, Told::Members(_));
        let echo = Frame { format: Format::Raw, meta: frame.meta.clone(), payload };
        if !is_silent && line.send(&echo.encode()).await.is_err() {
            return;
        }
    }
}

/// What a frame tells, and what comes back with its echo.
fn understood(frame: &Frame) -> Option<(Told, Bytes)> {
    let payload = || frame.payload.clone();
    Some(match NodeCommand::try_from(frame.meta.cmd).ok()? {
        NodeCommand::SendMetadata => {
            (Told::Members(pb::SendMetadataMessage::decode(payload()).ok()?), payload())
        }
        NodeCommand::ScaleOut => (Told::Scale { leaving: false }, payload()),
        NodeCommand::ScaleIn => {
            let message = pb::ScaleInMessage::decode(payload()).ok()?;
            (Told::Scale { leaving: message.is_node_scale_in }, payload())
        }
        NodeCommand::ScaleOutDone | NodeCommand::ScaleInDone => (Told::ScaleDone, Bytes::new()),
        NodeCommand::SendEvent => {
            (Told::Event(pb::EventRespMessage::decode(payload()).ok()?.event), payload())
        }
        NodeCommand::Finish => (Told::Finish, Bytes::new()),
        NodeCommand::SendData => (Told::Data, Bytes::from_static(b"{}")),
        _ => return None,
    })
}

/// As it stands in the history. A node that leaves has no rank, and is told of others for the last time.
fn act(told: &Told) -> Option<Act> {
    match told {
        Told::Members(message) if message.rank_id != UNRANKED => {
            let mut members: Vec<ListedNode> = message.servers_meta.iter().filter_map(listed).collect();
            members.sort();
            Some(Act::HearMembers { rank: Rank(message.rank_id), members })
        }
        Told::Event(event) => Some(Act::HearEvent { event: *event }),
        Told::Finish => Some(Act::HearFinish),
        Told::Members(_) | Told::Scale { .. } | Told::ScaleDone | Told::Data => None,
    }
}

fn listed(meta: &pb::ServersMeta) -> Option<ListedNode> {
    let role = match meta.role() {
        NodeRole::Worker => ClusterRole::Worker,
        NodeRole::Server => ClusterRole::Server,
        NodeRole::Scheduler => return None,
    };
    let name = NodeName::from(meta.node_id.as_str());
    Some(ListedNode { role, rank: Rank(meta.rank_id), name, life: LifeId(meta.port.into()) })
}

impl Heard {
    fn add(&mut self, told: &Told) {
        match told {
            Told::Members(message) => {
                self.has_list = true;
                self.owes = match message.cluster_state() {
                    ClusterState::ClusterScaleOut => Some(Scaling::Out),
                    ClusterState::ClusterScaleIn => Some(Scaling::In),
                    _ => None,
                };
            }
            Told::Scale { leaving } => {
                self.scales += 1;
                self.is_leaving |= leaving;
            }
            Told::Event(event) => {
                self.events.insert(*event);
            }
            Told::Finish => self.has_finished = true,
            Told::ScaleDone | Told::Data => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_is_told_of_scaling_is_what_it_owes_and_a_leaving_one_hears_no_rank() {
        let members = |state: ClusterState, rank_id| {
            let message = pb::SendMetadataMessage {
                cluster_state: state.into(),
                rank_id,
                ..pb::SendMetadataMessage::default()
            };
            Told::Members(message)
        };
        let mut heard = Heard::default();
        heard.add(&Told::Scale { leaving: false });
        heard.add(&members(ClusterState::ClusterScaleOut, 1));
        assert_eq!((heard.scales, heard.is_leaving, heard.owes), (1, false, Some(Scaling::Out)));
        heard.add(&Told::Scale { leaving: true });
        heard.add(&members(ClusterState::ClusterScaleIn, UNRANKED));
        assert_eq!((heard.scales, heard.is_leaving, heard.owes), (2, true, Some(Scaling::In)));
        assert!(act(&members(ClusterState::ClusterScaleIn, 1)).is_some());
        assert_eq!(act(&members(ClusterState::ClusterScaleIn, UNRANKED)), None);
    }
}
