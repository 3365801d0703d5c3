//! One process of a node of the parameter server, and what it hears.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::watch;
use tripod_checkers::history::{
    Act, ClientId, ClusterNode, ClusterRole, Job, LifeId, ListedNode, NodeName, Rank, Round,
};
use tripod_load::mindspore::{Node, Role, Told};
use tripod_proto::mindspore::ps_core::{NodeRole, SendMetadataMessage, ServersMeta};

use super::super::setting::Setting;
use super::LIMIT;
use super::scribe::Scribe;

/// Whose process it is.
#[derive(Debug, Clone)]
pub(super) struct Whose {
    pub(super) setting: Setting,
    pub(super) id: ClientId,
    pub(super) job: &'static str,
    pub(super) round: u64,
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) addresses: Arc<[String]>,
}

/// What it has been told.
#[derive(Debug, Clone, Default)]
pub(super) struct Heard {
    pub(super) has_list: bool,
    pub(super) events: BTreeSet<u32>,
    pub(super) has_finished: bool,
}

/// The process. It answers for as long as it is kept.
pub(super) struct Life {
    pub(super) node: Node,
    pub(super) scribe: Scribe,
    pub(super) heard: watch::Receiver<Heard>,
}

impl Life {
    /// Begins to listen, and says nothing yet.
    ///
    /// # Errors
    /// It cannot listen.
    pub(super) async fn begin(whose: &Whose, place: usize) -> anyhow::Result<Self> {
        let (hears, heard) = watch::channel(Heard::default());
        // Which life it is its port says, which is known only when it listens; nobody can call it before.
        let (names_life, life) = watch::channel(None);
        let hearing = whose.clone();
        let hear = move |told: &Told| {
            let port: Option<u16> = *life.borrow();
            if let Some(port) = port {
                hearing.scribe(port).write_down(told);
            }
            hears.send_modify(|heard| heard.add(told));
        };
        let at = (Arc::clone(&whose.addresses), place);
        let node = Node::begin(whose.name.clone(), whose.role, at, LIMIT, Arc::new(hear)).await?;
        names_life.send_replace(Some(node.port()));
        let scribe = whose.scribe(node.port());
        Ok(Self { node, scribe, heard })
    }
}

impl Whose {
    fn scribe(&self, port: u16) -> Scribe {
        let role = match self.role {
            Role::Worker => ClusterRole::Worker,
            Role::Server => ClusterRole::Server,
        };
        let node = ClusterNode {
            job: Job::from(self.job),
            round: Round(self.round),
            name: NodeName::from(self.name.as_str()),
            role,
            life: LifeId(port.into()),
        };
        Scribe { setting: self.setting.clone(), id: self.id, node }
    }
}

impl Scribe {
    fn write_down(&self, told: &Told) {
        match told {
            Told::Members(message) => self.note(members(message)),
            Told::Event(event) => self.note(Act::HearEvent { event: *event }),
            Told::Finish => self.note(Act::HearFinish),
            // Nobody scales these clusters.
            Told::ScaleOut(_) | Told::ScaleIn(_) | Told::ScaleDone | Told::Data(_) => {}
        }
    }
}

impl Heard {
    fn add(&mut self, told: &Told) {
        match told {
            Told::Members(_) => self.has_list = true,
            Told::Event(event) => {
                self.events.insert(*event);
            }
            Told::Finish => self.has_finished = true,
            Told::ScaleOut(_) | Told::ScaleIn(_) | Told::ScaleDone | Told::Data(_) => {}
        }
    }
}

fn members(message: &SendMetadataMessage) -> Act {
    let mut members: Vec<ListedNode> = message.servers_meta.iter().filter_map(listed).collect();
    members.sort();
    Act::HearMembers { rank: Rank(message.rank_id), members }
}

fn listed(meta: &ServersMeta) -> Option<ListedNode> {
    let role = match meta.role() {
        NodeRole::Worker => ClusterRole::Worker,
        NodeRole::Server => ClusterRole::Server,
        NodeRole::Scheduler => return None,
    };
    let name = NodeName::from(meta.node_id.as_str());
    Some(ListedNode { role, rank: Rank(meta.rank_id), name, life: LifeId(meta.port.into()) })
}
