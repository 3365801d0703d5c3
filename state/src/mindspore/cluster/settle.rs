//! What follows from a change: that the cluster is complete, that scaling is over, that all have finished.

use crate::mindspore::cluster::Scaling;
use crate::mindspore::cluster::node::Work;
use crate::mindspore::cluster::record::{Cluster, Phase};

impl Cluster {
    pub(super) fn settle(&mut self) {
        if self.all_have_finished() {
            self.head.phase = Phase::Exit;
        }
        if self.is_complete() && self.head.phase != Phase::Exit {
            let unpublished = self.awaits_registrations();
            let forming = matches!(self.head.phase, Phase::Starting { .. });
            if self.head.dirty || unpublished || forming {
                self.publish();
            }
            if matches!(self.head.phase, Phase::TimedOut) {
                self.head.phase = Phase::Ready;
            }
        }
        self.end_scaling();
        self.end_switching();
    }

    /// Whether scaling waits for nodes to register.
    pub(super) fn awaits_registrations(&self) -> bool {
        matches!(&self.head.phase, Phase::Scaling(scale) if scale.published == 0)
    }

    /// Everybody is there: all are told of each other.
    fn publish(&mut self) {
        self.head.generation = self.head.generation.saturating_add(1);
        let generation = self.head.generation;
        self.head.published = generation;
        self.head.dirty = false;
        if self.head.formed == 0 {
            self.head.formed = generation;
        }
        match &mut self.head.phase {
            Phase::Starting { .. } => self.head.phase = Phase::Ready,
            Phase::Scaling(scale) if scale.published == 0 => scale.published = generation,
            _ => {}
        }
        let outside: Vec<_> = self.outside().iter().copied().collect();
        for member in outside {
            self.edit(member, |node| node.entered = true);
        }
    }

    /// Dead nodes are not waited for.
    fn all_have_finished(&self) -> bool {
        let tally = self.tally();
        let is_under_way = !matches!(self.head.phase, Phase::Starting { .. } | Phase::Exit);
        is_under_way && tally.finished > 0 && tally.finished == tally.staying
    }

    fn end_scaling(&mut self) {
        let Phase::Scaling(scale) = &self.head.phase else { return };
        if scale.published == 0 || self.tally().undone > 0 {
            return;
        }
        let scaling = scale.scaling;
        self.head.phase = Phase::Ready;
        self.edit_all(|node| {
            if node.work == Work::Done && !node.is_leaving() {
                node.told.done = Some(scaling);
            }
            node.newcomer = false;
            node.work = Work::Nothing;
        });
    }

    fn end_switching(&mut self) {
        let Phase::Switching { number, .. } = self.head.phase else { return };
        let untold =
            self.nodes().values().find(|node| node.is_told_of_switches() && node.told.switch < number);
        if untold.is_none() {
            self.head.phase = Phase::Ready;
        }
    }

    /// The nodes are told that one is lost. Scaling that not all have taken part in is forgotten; who had not registered for
    /// it must still do so before the cluster is complete.
    pub(super) fn time_out(&mut self) {
        if let Phase::Scaling(scale) = &self.head.phase
            && scale.published == 0
        {
            if scale.scaling == Scaling::Out {
                self.head.expected = scale.before;
                self.remove_newcomers();
            }
            self.head.generation = self.head.generation.saturating_add(1);
            self.head.dirty = true;
        }
        self.edit_all(|node| {
            node.work = Work::Nothing;
            node.newcomer = false;
        });
        self.head.phase = Phase::TimedOut;
    }
}
