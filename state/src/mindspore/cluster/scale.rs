//! More nodes, and fewer.

use imbl::OrdSet;

use crate::fault::Fault;
use crate::ids::{NodeName, TimeMs};
use crate::job::turn::Turn;
use crate::limits::within;
use crate::mindspore::apply::Answered;
use crate::mindspore::cluster::Scaling;
use crate::mindspore::cluster::node::{Node, Work};
use crate::mindspore::cluster::record::{Cluster, Phase, Scale};
use crate::mindspore::limits::{NODES_MAX, WITH_LEAVING_MAX, check_node_id};
use crate::mindspore::{Answer, Expected, Member, Refusal, Role};

impl Turn<'_> {
    pub(super) fn scale_out(&mut self, workers: u32, servers: u32) -> Answered {
        let deadline = self.context.now_ms.plus(self.available_timeout());
        let generation = self.ready_cluster()?.scale_out(workers, servers, deadline)?;
        self.cluster_changed();
        Ok(Answer::Scaling { generation })
    }

    pub(super) fn scale_in(&mut self, names: &[String]) -> Answered {
        let deadline = self.context.now_ms.plus(self.available_timeout());
        let generation = self.ready_cluster()?.scale_in(names, deadline)?;
        self.cluster_changed();
        Ok(Answer::Scaling { generation })
    }

    pub(super) fn abort_scaling(&mut self) -> Answered {
        let cluster = self.job.domains.cluster.as_deref_mut().filter(|cluster| cluster.can_be_taken_back());
        let Some(cluster) = cluster else { return Err(Refusal::NotAbortable.into()) };
        cluster.take_back();
        self.cluster_changed();
        Ok(Answer::Noted)
    }
}

impl Cluster {
    /// More servers, of a cluster that is ready; the generation in which it begins.
    pub(super) fn scale_out(&mut self, workers: u32, servers: u32, deadline: TimeMs) -> Result<u64, Fault> {
        if workers > 0 {
            return Err(Refusal::WorkersFixed.into());
        }
        if servers == 0 {
            return Err(Refusal::NothingToScale.into());
        }
        let before = self.head.expected;
        let total = u64::from(before.total()) + u64::from(servers);
        within("nodes of a MindSpore cluster", total, NODES_MAX)?;
        let leaving = self.nodes().values().filter(|node| node.is_leaving()).count() as u64;
        within("nodes of a MindSpore cluster, with those that leave", total + leaving, WITH_LEAVING_MAX)?;
        let expected = Expected { servers: before.servers + servers, ..before };
        Ok(self.begin_scaling(Scaling::Out, expected, deadline))
    }

    /// Fewer servers, of a cluster that is ready; the generation in which it begins.
    pub(super) fn scale_in(&mut self, names: &[String], deadline: TimeMs) -> Result<u64, Fault> {
        if names.is_empty() {
            return Err(Refusal::NothingToScale.into());
        }
        let mut leaving = OrdSet::new();
        for name in names {
            leaving.insert(self.can_leave(name)?);
        }
        for member in &leaving {
            self.edit(*member, |node| node.rank = None);
        }
        let staying: Vec<Member> = self.ranks().of(Role::Server).map(|(_, member)| member).collect();
        // In their order, so that no rank is one that another still has.
        for (rank, member) in (0..).zip(staying) {
            self.edit(member, |node| node.rank = Some(rank));
        }
        let before = self.head.expected;
        let fewer = u32::try_from(leaving.len()).unwrap_or(u32::MAX);
        let expected = Expected { servers: before.servers.saturating_sub(fewer), ..before };
        let generation = self.begin_scaling(Scaling::In, expected, deadline);
        for member in leaving {
            self.edit(member, |node| node.work = Work::Asked);
        }
        Ok(generation)
    }

    /// The server of that id, if it may leave.
    fn can_leave(&self, name: &str) -> Result<Member, Fault> {
        check_node_id(name)?;
        let node = || NodeName::from(name);
        match self.named(name) {
            None => Err(Refusal::NodeUnknown { node: node() }.into()),
            Some((_, Node { role: Role::Worker, .. })) => Err(Refusal::NoServer { node: node() }.into()),
            Some((_, Node { rank: None, .. })) => Err(Refusal::NodeLeft { node: node() }.into()),
            Some((_, Node { rank: Some(0), .. })) => Err(Refusal::FirstServer { node: node() }.into()),
            Some((member, _)) => Ok(member),
        }
    }

    /// From now on everybody who stays must register. Those who left earlier have nothing to do with it.
    fn begin_scaling(&mut self, scaling: Scaling, expected: Expected, deadline: TimeMs) -> u64 {
        self.head.generation = self.head.generation.saturating_add(1);
        let begun = self.head.generation;
        let before = self.head.expected;
        self.head.expected = expected;
        let scale = Scale { scaling, rolled_back: false, before, deadline, begun, published: 0 };
        self.head.phase = Phase::Scaling(scale);
        self.edit_all(|node| {
            if !node.is_leaving() {
                node.registered = false;
                node.work = Work::Asked;
            }
        });
        begun
    }

    /// Scaling out is taken back: those who came for it are forgotten, and the others go on as soon as they have
    /// registered.
    pub(super) fn take_back(&mut self) {
        let Phase::Scaling(scale) = &mut self.head.phase else { return };
        scale.rolled_back = true;
        self.head.expected = scale.before;
        self.head.generation = self.head.generation.saturating_add(1);
        self.remove_newcomers();
    }

    pub(super) fn remove_newcomers(&mut self) {
        let newcomers = self.nodes().iter().filter(|(_, node)| node.newcomer);
        let newcomers: Vec<Member> = newcomers.map(|(member, _)| *member).collect();
        for member in newcomers {
            self.remove(member);
        }
    }

    /// Until when nodes must register, if any can come late: who was there when scaling began may take as long as an
    /// iteration takes.
    pub(super) fn deadline(&self) -> Option<TimeMs> {
        match &self.head.phase {
            Phase::Starting { deadline } => Some(*deadline),
            Phase::Scaling(scale) if self.can_be_taken_back() => Some(scale.deadline),
            _ => None,
        }
    }
}
