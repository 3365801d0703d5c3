//! The match over what is asked of a cluster, and what all of it shares.

use crate::fault::Fault;
use crate::ids::NodeName;
use crate::job::turn::Turn;
use crate::mindspore::apply::Answered;
use crate::mindspore::cluster::node::Node;
use crate::mindspore::cluster::record::Cluster;
use crate::mindspore::cluster::{Incarnation, Request, register::Candidate};
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

    /// The cluster, for something that only one that is there can be asked.
    pub(super) fn asked_cluster(&mut self) -> Result<&mut Cluster, Fault> {
        self.job.domains.cluster.as_deref_mut().ok_or_else(|| Refusal::NotFormed.into())
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
    /// The node of that id, if it is this process of it.
    pub(super) fn asking(&self, name: &str, process: Option<Incarnation>) -> Result<(Member, &Node), Fault> {
        check_node_id(name)?;
        let Some((member, node)) = self.named(name) else {
            return Err(Refusal::NodeUnknown { node: NodeName::from(name) }.into());
        };
        if process.is_some_and(|process| process != node.incarnation) {
            return Err(Refusal::Replaced { node: NodeName::from(name) }.into());
        }
        Ok((member, node))
    }
}
