//! What nodes have answered.

use crate::job::turn::Turn;
use crate::mindspore::cluster::node::{Node, Work};
use crate::mindspore::cluster::record::{Cluster, Phase};
use crate::mindspore::cluster::{Echo, Order};
use crate::planted::{Bug, is_planted};

impl Turn<'_> {
    /// Of other processes, and of what was not ordered, nothing comes.
    pub(in crate::mindspore) fn echoed(&mut self, echoes: &[Echo]) {
        let Some(cluster) = self.job.domains.cluster.as_deref_mut() else { return };
        let mut changed = false;
        for echo in echoes {
            let found = cluster.nodes().get(&echo.member).filter(|node| node.incarnation == echo.incarnation);
            let Some(before) = found.cloned() else { continue };
            let mut node = before.clone();
            cluster.note(&mut node, echo.order);
            if node != before {
                cluster.put(echo.member, node);
                changed = true;
            }
        }
        if changed {
            self.cluster_changed();
        }
    }
}

impl Cluster {
    fn note(&self, node: &mut Node, order: Order) {
        let told = &mut node.told;
        match order {
            Order::Scale { generation, .. } if generation <= self.head.generation => {
                told.scale = told.scale.max(generation);
            }
            Order::Metadata { generation, .. } if generation <= self.head.published => {
                told.metadata = told.metadata.max(generation);
                // Taken back, nothing is left to be done: not all versions report it.
                let is_back = matches!(&self.head.phase, Phase::Scaling(scale)
                    if scale.rolled_back && scale.published > 0 && scale.published <= generation);
                if is_back && node.work == Work::Asked {
                    node.work = Work::Done;
                }
            }
            Order::ScaleDone { scaling } if told.done == Some(scaling) => told.done = None,
            Order::Switch { switch } => {
                let is_it = matches!(self.head.phase, Phase::Switching { number, .. } if number == switch);
                if is_it {
                    told.switch = switch;
                }
            }
            Order::Event { sequence, .. } if told.event == sequence && sequence < self.head.next_event => {
                told.event = if is_planted(Bug::EventLost) { self.head.next_event } else { sequence + 1 };
            }
            Order::Finish if self.head.phase == Phase::Exit => told.finish = true,
            Order::Scale { .. }
            | Order::Metadata { .. }
            | Order::ScaleDone { .. }
            | Order::Event { .. }
            | Order::Finish => {}
        }
    }
}
