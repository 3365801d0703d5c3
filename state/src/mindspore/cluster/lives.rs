//! What the leader sees: who is silent, who is heard again, and which times ran out. Apply looks at the times again, by
//! what stands in the log.

use crate::ids::DurationMs;
use crate::job::turn::Turn;
use crate::mindspore::Member;
use crate::mindspore::cluster::node::{Life, Node};
use crate::mindspore::cluster::record::{Cluster, Phase};
use crate::mindspore::cluster::{Incarnation, Scaling};
use crate::mindspore::limits::{CLUSTER_TIMEOUT_MS, REPLACEMENT_WINDOW_MS};

/// Processes of nodes.
type Processes = [(Member, Incarnation)];

impl Turn<'_> {
    /// How long nodes are waited for that are to register.
    pub(super) fn available_timeout(&self) -> DurationMs {
        self.job.spec.register_timeout_ms.min(CLUSTER_TIMEOUT_MS)
    }

    pub(in crate::mindspore) fn nodes_silent(&mut self, nodes: &Processes) {
        let window = self.job.spec.register_timeout_ms.min(REPLACEMENT_WINDOW_MS);
        let until = self.context.now_ms.plus(window);
        self.change_lives(nodes, |cluster, member, node| {
            if !node.is_alive() {
                return false;
            }
            if node.is_leaving() {
                return cluster.remove(member).is_some();
            }
            // Nothing is lost with one that had nothing left to do.
            let life = if node.finished { Life::GivenUp } else { Life::Dead { until } };
            cluster.edit(member, |node| node.life = life);
            true
        });
    }

    pub(in crate::mindspore) fn nodes_heard(&mut self, nodes: &Processes) {
        self.change_lives(nodes, |cluster, member, node| {
            let gave_up = node.finished && matches!(cluster.head.phase, Phase::Starting { .. });
            if node.is_alive() || gave_up {
                return false;
            }
            // What all others have is not kept for one that was given up.
            let oldest = cluster.events().get_min().map_or(cluster.head.next_event, |(number, _)| *number);
            cluster.edit(member, |node| {
                node.life = Life::Alive;
                node.told.event = node.told.event.max(oldest);
            });
            true
        });
    }

    /// Nobody came in the place of these.
    pub(in crate::mindspore) fn nodes_gave_up(&mut self, nodes: &Processes) {
        let now = self.context.now_ms;
        self.change_lives(nodes, |cluster, member, node| {
            let is_due = matches!(node.life, Life::Dead { until } if until <= now);
            if is_due && node.newcomer && cluster.can_be_taken_back() {
                cluster.take_back();
                return true;
            }
            match cluster.head.phase {
                // There nobody was told that the cluster is ready, and the deadline of all counts.
                Phase::Starting { .. } => return false,
                _ if !is_due => return false,
                Phase::Ready | Phase::Scaling(_) | Phase::Switching { .. } => cluster.time_out(),
                Phase::TimedOut | Phase::Exit => {}
            }
            cluster.edit(member, |node| node.life = Life::GivenUp);
            true
        });
    }

    /// Not all came in time.
    pub(in crate::mindspore) fn cluster_timed_out(&mut self, generation: u64) {
        let now = self.context.now_ms;
        let Some(cluster) = self.job.domains.cluster.as_deref_mut() else { return };
        if cluster.head.generation != generation || cluster.deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        if cluster.can_be_taken_back() {
            cluster.take_back();
        } else {
            cluster.time_out();
        }
        self.cluster_changed();
    }

    /// `change` tells whether it changed anything.
    fn change_lives(&mut self, nodes: &Processes, change: impl Fn(&mut Cluster, Member, &Node) -> bool) {
        let Some(cluster) = self.job.domains.cluster.as_deref_mut() else { return };
        let mut changed = false;
        for (member, process) in nodes {
            let found = cluster.nodes().get(member).filter(|node| node.incarnation == *process);
            if let Some(node) = found.cloned() {
                changed |= change(cluster, *member, &node);
            }
        }
        if changed {
            self.cluster_changed();
        }
    }
}

impl Cluster {
    /// Whether it scales out, and that can still be taken back.
    pub(super) fn can_be_taken_back(&self) -> bool {
        let Phase::Scaling(scale) = &self.head.phase else { return false };
        scale.scaling == Scaling::Out && scale.published == 0 && !scale.rolled_back
    }
}
