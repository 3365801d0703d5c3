//! Coming and leaving.

use crate::ids::{DurationMs, NodeName};
use crate::job::turn::Turn;
use crate::limits::within;
use crate::mindspore::apply::Answered;
use crate::mindspore::limits::{
    HOST_IP_BYTES_MAX, HOST_NAME_BYTES_MAX, NODES_MAX, TOPOLOGY_TIMEOUT_MS, check_node_id,
};
use crate::mindspore::topology::record::{Node, Topology};
use crate::mindspore::topology::{Dialect, Request, Role, TopoState, rank};
use crate::mindspore::{Answer, Expected, Member, Refusal};

/// What a node says of itself.
struct Candidate {
    name: NodeName,
    host_name: String,
    host_ip: String,
    role: Role,
    wanted_rank: Option<u32>,
    dialect: Dialect,
}

impl Turn<'_> {
    pub(in crate::mindspore) fn topology(&mut self, request: Request) -> Answered {
        match request {
            Request::Register { node, host_name, host_ip, role, wanted_rank, dialect } => {
                check_node_id(&node)?;
                within("bytes of a host's name", host_name.len() as u64, HOST_NAME_BYTES_MAX as u64)?;
                within("bytes of a host's address", host_ip.len() as u64, HOST_IP_BYTES_MAX as u64)?;
                let name = NodeName::from(node.as_str());
                self.register_in_topology(Candidate { name, host_name, host_ip, role, wanted_rank, dialect })
            }
            Request::Unregister { node } => self.unregister_from_topology(&node),
            Request::Write { name, value } => self.write_metadata(&name, value),
            Request::Delete { name } => self.delete_metadata(&name),
        }
    }

    fn register_in_topology(&mut self, candidate: Candidate) -> Answered {
        let expected = Expected::of(&self.job.spec);
        within("nodes of a MindSpore cluster", u64::from(expected.total()), NODES_MAX)?;
        let current = self.job.domains.topology.as_deref();
        let under_way = current.filter(|topology| !topology.is_over());
        if let Some(node) = under_way.and_then(|topology| topology.node(candidate.name.as_str())) {
            let node = node.clone();
            return self.recover_in_topology(candidate, &node, expected);
        }
        let (role, member) = (candidate.role.base(), Member(self.context.index.0));
        let places = expected.count(role);
        if under_way.map_or(0, |topology| topology.ranks().taken(role)) >= places {
            return Err(Refusal::Full { role, places }.into());
        }
        let deadline = self.context.now_ms.plus(self.topology_timeout());
        let topology = self.topology_under_way();
        topology.deadline.get_or_insert(deadline);
        topology.dialect = Some(candidate.dialect);
        let node = Node {
            member,
            role: candidate.role,
            rank: rank::on_arrival(
                topology,
                &candidate.name,
                &candidate.host_ip,
                (role, candidate.wanted_rank),
                places,
            ),
            host_name: candidate.host_name.into(),
            host_ip: candidate.host_ip.into(),
            wanted_rank: candidate.wanted_rank,
            recovered: false,
            silent: false,
            left: false,
            ports: None,
        };
        topology.put(candidate.name.clone(), node);
        if topology.registered() == expected.total() {
            topology.complete();
        }
        let rank = topology.node(candidate.name.as_str()).map_or(0, |node| node.rank);
        self.mindspore_changed();
        Ok(Answer::Registered { rank, nodes: expected.total() })
    }

    /// A node that is known registers again: as another process, or because it heard no answer.
    fn recover_in_topology(&mut self, candidate: Candidate, node: &Node, expected: Expected) -> Answered {
        if node.left {
            return Err(Refusal::NodeLeft { node: candidate.name }.into());
        }
        if node.role != candidate.role {
            return Err(Refusal::OtherRole { node: candidate.name, role: node.role.base() }.into());
        }
        let rank = node.rank;
        let node = Node {
            host_name: candidate.host_name.into(),
            host_ip: candidate.host_ip.into(),
            recovered: true,
            silent: false,
            ..node.clone()
        };
        let topology = self.topology_under_way();
        topology.dialect = Some(candidate.dialect);
        topology.put(candidate.name, node);
        self.mindspore_changed();
        Ok(Answer::Registered { rank, nodes: expected.total() })
    }

    /// The generation that takes nodes now, which begins if none does.
    fn topology_under_way(&mut self) -> &mut Topology {
        let kept = &mut self.job.domains.topology;
        let next = match kept.as_deref() {
            Some(topology) if topology.is_over() => Some(topology.generation.saturating_add(1)),
            Some(_) => None,
            None => Some(1),
        };
        if let Some(generation) = next {
            *kept = Some(Box::new(Topology::new(generation)));
        }
        kept.as_deref_mut().expect("it was just made, if it was not there")
    }

    fn topology_timeout(&self) -> DurationMs {
        self.job.spec.register_timeout_ms.min(TOPOLOGY_TIMEOUT_MS)
    }

    fn unregister_from_topology(&mut self, name: &str) -> Answered {
        check_node_id(name)?;
        let Some(topology) = self.job.domains.topology.as_deref_mut() else {
            return Err(Refusal::NotInitialized.into());
        };
        if matches!(topology.phase, TopoState::Initializing | TopoState::Failed) {
            return Err(Refusal::NotInitialized.into());
        }
        let name = NodeName::from(name);
        let Some(node) = topology.node(name.as_str()).cloned() else {
            return Err(Refusal::NodeUnknown { node: name }.into());
        };
        if node.left {
            return Ok(Answer::Unregistered);
        }
        topology.put(name, Node { left: true, ..node });
        if topology.all_left() {
            topology.phase = TopoState::Finished;
        }
        self.mindspore_changed();
        Ok(Answer::Unregistered)
    }
}
