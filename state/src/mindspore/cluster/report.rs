//! What operators are shown of a cluster, beyond what its nodes and its leader go by.

use crate::command::Scope;
use crate::fault::Fault;
use crate::ids::{NodeName, TimeMs};
use crate::job::Spec;
use crate::mindspore::Expected;
use crate::mindspore::cluster::node::{Life, Node};
use crate::mindspore::cluster::record::{Cluster, Phase};
use crate::mindspore::cluster::{NodeView, Order, Scaling, View};
use crate::mindspore::limits::REPLACEMENT_WINDOW_MS;
use crate::state::State;

/// A cluster that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    pub view: View,
    /// Nodes whose places can still be taken, but of whom the others were told that they are lost. Among [`View::dead`].
    pub given_up: u32,
    /// Of those who live and stay.
    pub finished: u32,
    /// The number of the next event.
    pub next_event: u64,
    /// When a time runs out that the cluster waits for.
    pub deadline_ms: Option<TimeMs>,
    pub scaling: Option<ScalingView>,
}

/// How far scaling is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScalingView {
    pub scaling: Scaling,
    /// It was taken back.
    pub is_taken_back: bool,
    /// How many were expected before.
    pub before: Expected,
    /// The generation that it began in.
    pub begun: u64,
    /// All have registered, and are told of each other.
    pub is_complete: bool,
    /// Nodes that live and have not said that they are done.
    pub undone: u32,
}

/// A node, and how far it has been told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReport {
    pub view: NodeView,
    pub life: NodeLife,
    /// The generation in which this process was told of the others last, as it has answered; 0: not yet.
    pub told: u64,
    /// What it is to be told next.
    pub next: Option<Order>,
    /// Kept events that it has not answered.
    pub events: u64,
}

/// Whether a node lives, as far as the leader has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeLife {
    Alive,
    /// It was found silent, and its place waits for it, or for another.
    Dead {
        since_ms: TimeMs,
        until_ms: TimeMs,
    },
    GivenUp,
}

/// What nodes told all, as far as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Events {
    /// Those behind the asked number that are kept, ascending.
    pub events: Vec<EventView>,
    /// How many behind the asked number are kept no more, since every node has them.
    pub missed: u64,
    /// The number of the next event.
    pub next: u64,
}

/// Something that a node told all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventView {
    pub number: u64,
    pub event: u32,
    /// `None`: the node does not belong to the cluster any more.
    pub from: Option<NodeName>,
    /// How many nodes do not have it yet.
    pub untold: u32,
}

impl State {
    /// The cluster of a job; `None` when none has begun.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn cluster_report(&self, scope: Scope) -> Result<Option<Report>, Fault> {
        let view = self.cluster(scope)?;
        let deadline_ms = self.cluster_next_due(scope.job);
        Ok(self.cluster_of(scope.job).map(|cluster| Report {
            view,
            given_up: cluster.tally().given_up,
            finished: cluster.tally().finished,
            next_event: cluster.head.next_event,
            deadline_ms,
            scaling: cluster.scaling(),
        }))
    }

    /// All nodes, by role and rank; those that leave come last.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn cluster_node_reports(&self, scope: Scope) -> Result<Vec<NodeReport>, Fault> {
        let job = self.jobs.scoped(scope)?;
        let Some(cluster) = job.domains.cluster.as_deref() else { return Ok(Vec::new()) };
        let views = self.cluster_nodes(scope)?.into_iter();
        let reports = views.filter_map(|view| {
            let node = cluster.nodes().get(&view.member)?;
            Some(cluster.report_of(&job.spec, view, node))
        });
        Ok(reports.collect())
    }

    /// What nodes told all behind the event of that number.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn cluster_events(&self, scope: Scope, after: u64) -> Result<Events, Fault> {
        let job = self.jobs.scoped(scope)?;
        let none = || Events { events: Vec::new(), missed: 0, next: 1 };
        Ok(job.domains.cluster.as_deref().map_or_else(none, |cluster| cluster.events_after(after)))
    }
}

impl Cluster {
    fn scaling(&self) -> Option<ScalingView> {
        let Phase::Scaling(scale) = &self.head.phase else { return None };
        Some(ScalingView {
            scaling: scale.scaling,
            is_taken_back: scale.rolled_back,
            before: scale.before,
            begun: scale.begun,
            is_complete: scale.published > 0,
            undone: self.tally().undone,
        })
    }

    fn report_of(&self, spec: &Spec, view: NodeView, node: &Node) -> NodeReport {
        let life = match node.life {
            Life::Alive => NodeLife::Alive,
            Life::Dead { until } => {
                let window = spec.register_timeout_ms.min(REPLACEMENT_WINDOW_MS);
                NodeLife::Dead { since_ms: TimeMs(until.0.saturating_sub(window.0)), until_ms: until }
            }
            Life::GivenUp => NodeLife::GivenUp,
        };
        let events =
            if node.holds_events() { self.head.next_event.saturating_sub(node.told.event) } else { 0 };
        NodeReport {
            view,
            life,
            told: node.told.metadata,
            next: self.orders_of(node).into_iter().next(),
            events,
        }
    }

    fn events_after(&self, after: u64) -> Events {
        let next = self.head.next_event;
        let oldest = self.events().get_min().map_or(next, |(number, _)| *number);
        let mut waiting = self.waiting().peekable();
        let mut untold = 0;
        let mut events = Vec::new();
        for (number, event) in self.events() {
            while let Some((_, nodes)) = waiting.next_if(|(first, _)| first <= number) {
                untold += nodes;
            }
            if *number > after {
                let from = self.nodes().get(&event.from).map(|node| node.name.clone());
                events.push(EventView { number: *number, event: event.event, from, untold });
            }
        }
        Events { events, missed: oldest.saturating_sub(after.saturating_add(1)), next }
    }
}
