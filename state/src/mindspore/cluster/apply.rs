//! The match over what is asked of a cluster, and what all of it shares.

use crate::fault::Fault;
use crate::ids::NodeName;
use crate::job::turn::Turn;
use crate::mindspore::apply::Answered;
use crate::mindspore::cluster::record::{Cluster, Phase};
use crate::mindspore::cluster::register::Candidate;
use crate::mindspore::cluster::{ClusterState, Incarnation, Request};
use crate::mindspore::limits::check_node_id;
use crate::mindspore::{Member, Refusal};

impl Turn<'_> {
    pub(in crate::mindspore) fn cluster(&mut self, request: Request) -> Answered {
        match request {
            Request::Register { node, role, ip, port, offered_rank, recovering } => {
                check_node_id(&node)?;
                let name = NodeName::from(node.as_str());
                self.register_in_cluster(Candidate { name, role, ip, port, offered_rank, recovering })
            }
            Request::Finish { node, incarnation } => self.finish_node(&node, incarnation),
            Request::Done { node, incarnation, scaling } => self.node_done(&node, incarnation, scaling),
            Request::Event { node, incarnation, event } => self.node_event(&node, incarnation, event),
            Request::ScaleOut { workers, servers } => self.scale_out(workers, servers),
            Request::ScaleIn { nodes } => self.scale_in(&nodes),
            Request::Abort => self.abort_scaling(),
            Request::Switch { switch, body } => self.switch(switch, body),
        }
    }

    /// What is meant for the cluster of one generation. It is looked at here, where nothing comes between the look and the
    /// change.
    pub(in crate::mindspore) fn planned(&mut self, generation: u64, request: Request) -> Answered {
        let current = self.job.domains.cluster.as_deref().map_or(0, |cluster| cluster.head.generation);
        if generation != current {
            return Err(Refusal::Outdated { planned: generation, current }.into());
        }
        self.cluster(request)
    }

    /// The cluster, and the node that asks, if it is this process of it.
    pub(super) fn asking_node(
        &mut self,
        name: &str,
        process: Option<Incarnation>,
    ) -> Result<(&mut Cluster, Member), Fault> {
        check_node_id(name)?;
        let cluster = self.job.domains.cluster.as_deref_mut();
        let found = cluster.and_then(|cluster| {
            let (member, incarnation) =
                cluster.named(name).map(|(member, node)| (member, node.incarnation))?;
            Some((cluster, member, incarnation))
        });
        let Some((cluster, member, incarnation)) = found else {
            return Err(Refusal::NodeUnknown { node: NodeName::from(name) }.into());
        };
        if process.is_some_and(|process| process != incarnation) {
            return Err(Refusal::Replaced { node: NodeName::from(name) }.into());
        }
        Ok((cluster, member))
    }

    /// The cluster, for what is asked of one whose nodes all live and know of each other.
    pub(super) fn ready_cluster(&mut self) -> Result<&mut Cluster, Fault> {
        let cluster = self.job.domains.cluster.as_deref_mut();
        let Some(cluster) = cluster else {
            return Err(Refusal::NotReady { state: ClusterState::Starting, nodes: 0 }.into());
        };
        cluster.check_ready()?;
        Ok(cluster)
    }

    /// What follows from a change, and who is told.
    pub(super) fn cluster_changed(&mut self) {
        if let Some(cluster) = self.job.domains.cluster.as_deref_mut() {
            cluster.settle();
            cluster.trim_events();
        }
        self.mindspore_changed();
    }
}

impl Cluster {
    /// Whether its nodes all live and know of each other, and it does nothing else.
    pub(super) fn check_ready(&self) -> Result<(), Fault> {
        let untold = self.nodes().values().filter(|node| !node.is_leaving());
        let untold = untold.filter(|node| !node.is_alive() || self.is_behind(node)).count();
        if self.head.phase != Phase::Ready || !self.is_complete() || untold > 0 {
            let nodes = u32::try_from(untold).unwrap_or(u32::MAX);
            return Err(Refusal::NotReady { state: self.announced(), nodes }.into());
        }
        Ok(())
    }
}
