//! What is shown of a cluster, and what its leader has to do.

use bytes::Bytes;

use crate::command::Scope;
use crate::fault::Fault;
use crate::ids::{JobId, NodeName, TimeMs};
use crate::mindspore::cluster::node::{Life, Node};
use crate::mindspore::cluster::record::{Cluster, Phase};
use crate::mindspore::cluster::{ClusterState, Incarnation, Order, Switch};
use crate::mindspore::{Decision, Expected, Member, Role};
use crate::state::State;

/// How far a cluster is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// What its nodes are told; one that does not know of the others yet is told [`NodeView::state`].
    pub state: ClusterState,
    /// Of the last change; 0: no cluster has begun.
    pub generation: u64,
    /// In which all nodes were told of each other last; 0: none yet.
    pub published: u64,
    pub expected: Expected,
    /// How many live, are registered, and stay.
    pub present: u32,
    /// How many are dead, whether or not they were given up.
    pub dead: u32,
    /// Whether a worker is dead, or the first server.
    pub is_vital_lost: bool,
    /// Events that not all nodes have been told.
    pub events: u64,
}

/// A node of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    pub node: NodeName,
    pub member: Member,
    pub incarnation: Incarnation,
    pub role: Role,
    /// `None`: it leaves.
    pub rank: Option<u32>,
    pub ip: String,
    pub port: u32,
    pub is_alive: bool,
    /// Whether it belongs to those that all were told of.
    pub is_entered: bool,
    pub is_finished: bool,
    /// What this node is told with its heartbeats.
    pub state: ClusterState,
}

/// A node that is to be told something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient {
    pub member: Member,
    pub incarnation: Incarnation,
    pub node: NodeName,
    pub ip: String,
    pub port: u32,
    /// In this order, the next when the one before was answered.
    pub orders: Vec<Order>,
}

impl State {
    /// How far the cluster of a job is.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn cluster(&self, scope: Scope) -> Result<View, Fault> {
        let job = self.jobs.scoped(scope)?;
        let Some(cluster) = job.domains.cluster.as_deref() else {
            return Ok(View {
                state: ClusterState::Starting,
                generation: 0,
                published: 0,
                expected: Expected::of(&job.spec),
                present: 0,
                dead: 0,
                is_vital_lost: false,
                events: 0,
            });
        };
        let tally = cluster.tally();
        Ok(View {
            state: cluster.announced(),
            generation: cluster.head.generation,
            published: cluster.head.published,
            expected: cluster.head.expected,
            present: tally.present,
            dead: tally.dead + tally.given_up,
            is_vital_lost: cluster.is_vital_lost(),
            events: cluster.events().len() as u64,
        })
    }

    /// A node; `None` when it does not belong to the cluster.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn cluster_node(&self, scope: Scope, node: &str) -> Result<Option<NodeView>, Fault> {
        let cluster = self.jobs.scoped(scope)?.domains.cluster.as_deref();
        Ok(cluster.and_then(|cluster| {
            let (member, node) = cluster.named(node)?;
            Some(cluster.view(member, node))
        }))
    }

    /// All nodes, by role and rank; those that leave come last.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn cluster_nodes(&self, scope: Scope) -> Result<Vec<NodeView>, Fault> {
        let Some(cluster) = self.jobs.scoped(scope)?.domains.cluster.as_deref() else {
            return Ok(Vec::new());
        };
        let nodes = cluster.nodes().iter();
        let mut nodes: Vec<NodeView> = nodes.map(|(member, node)| cluster.view(*member, node)).collect();
        nodes.sort_by_key(|node| (node.rank.is_none(), node.role, node.rank, node.member));
        Ok(nodes)
    }

    /// Whom a new leader must watch: the processes that live, and have not been told that all have finished.
    #[must_use]
    pub fn cluster_members(&self, job: JobId) -> Vec<(Member, Incarnation)> {
        let nodes = self.cluster_of(job).into_iter().flat_map(Cluster::nodes);
        let watched = nodes.filter(|(_, node)| node.is_alive() && !node.told.finish);
        watched.map(|(member, node)| (*member, node.incarnation)).collect()
    }

    /// The jobs that have a cluster, by id.
    #[must_use]
    pub fn cluster_jobs(&self) -> Vec<JobId> {
        self.jobs.iter().filter(|job| job.domains.cluster.is_some()).map(|job| job.id).collect()
    }

    /// Every node that is to be told something, and what. Whoever leads tells them and proposes
    /// [`Decision::Echoed`].
    #[must_use]
    pub fn cluster_orders(&self, job: JobId) -> Vec<Recipient> {
        let Some(cluster) = self.cluster_of(job) else { return Vec::new() };
        cluster.nodes().iter().filter_map(|(member, node)| cluster.recipient(*member, node)).collect()
    }

    /// The same of one node.
    #[must_use]
    pub fn cluster_orders_of(&self, job: JobId, member: Member) -> Option<Recipient> {
        let cluster = self.cluster_of(job)?;
        cluster.recipient(member, cluster.nodes().get(&member)?)
    }

    /// What the servers are told by [`Order::Switch`], and its number, while there is such an order.
    #[must_use]
    pub fn cluster_switch(&self, job: JobId) -> Option<(u64, Switch, Bytes)> {
        match &self.cluster_of(job)?.head.phase {
            Phase::Switching { number, switch, body } => Some((*number, *switch, body.clone())),
            _ => None,
        }
    }

    /// When a time of the cluster runs out next: what is to be proposed then is [`Self::cluster_due`].
    #[must_use]
    pub fn cluster_next_due(&self, job: JobId) -> Option<TimeMs> {
        let cluster = self.cluster_of(job)?;
        let windows = cluster.windows().map(|(_, _, until)| until);
        windows.chain(cluster.deadline()).min()
    }

    /// What has run out at that time.
    #[must_use]
    pub fn cluster_due(&self, job: JobId, now_ms: TimeMs) -> Vec<Decision> {
        let Some(cluster) = self.cluster_of(job) else { return Vec::new() };
        let lost = cluster.windows().filter(|(_, _, until)| *until <= now_ms);
        let nodes: Vec<_> = lost.map(|(member, process, _)| (member, process)).collect();
        let lost = (!nodes.is_empty()).then_some(Decision::ClusterGaveUp { nodes });
        let late = cluster.deadline().filter(|deadline| *deadline <= now_ms);
        let late = late.map(|_| Decision::ClusterTimedOut { generation: cluster.head.generation });
        lost.into_iter().chain(late).collect()
    }

    pub(super) fn cluster_of(&self, job: JobId) -> Option<&Cluster> {
        self.jobs.get(job)?.domains.cluster.as_deref()
    }
}

impl Cluster {
    /// Dead nodes whose places wait for them, and until when. While nodes are waited for at first, only the deadline of
    /// all counts.
    fn windows(&self) -> impl Iterator<Item = (Member, Incarnation, TimeMs)> {
        let any = self.tally().dead > 0 && !matches!(self.head.phase, Phase::Starting { .. });
        let nodes = any.then(|| self.nodes().iter()).into_iter().flatten();
        nodes.filter_map(|(member, node)| match node.life {
            Life::Dead { until } => Some((*member, node.incarnation, until)),
            Life::Alive | Life::GivenUp => None,
        })
    }

    fn is_vital_lost(&self) -> bool {
        let dead = |node: &Node| !node.is_alive() && !node.finished;
        let any_dead = self.tally().dead + self.tally().given_up > 0;
        any_dead
            && (self.with_rank(Role::Server, 0).is_some_and(dead)
                || self.nodes().values().any(|node| node.role == Role::Worker && dead(node)))
    }

    pub(super) fn view(&self, member: Member, node: &Node) -> NodeView {
        NodeView {
            node: node.name.clone(),
            member,
            incarnation: node.incarnation,
            role: node.role,
            rank: node.rank,
            ip: node.ip.to_string(),
            port: node.port,
            is_alive: node.is_alive(),
            is_entered: node.entered,
            is_finished: node.finished,
            state: self.announced_to(node),
        }
    }

    fn recipient(&self, member: Member, node: &Node) -> Option<Recipient> {
        let orders = self.orders_of(node);
        (!orders.is_empty()).then(|| Recipient {
            member,
            incarnation: node.incarnation,
            node: node.name.clone(),
            ip: node.ip.to_string(),
            port: node.port,
            orders,
        })
    }
}
