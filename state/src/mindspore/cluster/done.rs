//! What nodes report: that they have done what scaling asks of them, and that they have finished.

use crate::job::turn::Turn;
use crate::mindspore::Answer;
use crate::mindspore::apply::Answered;
use crate::mindspore::cluster::node::{Life, Work};
use crate::mindspore::cluster::record::Phase;
use crate::mindspore::cluster::{Incarnation, Scaling};

impl Turn<'_> {
    /// Only of the scaling that is under way, once all have been told of each other: what is reported earlier is late.
    pub(super) fn node_done(
        &mut self,
        name: &str,
        process: Option<Incarnation>,
        reported: Scaling,
    ) -> Answered {
        let (cluster, member) = self.asking_node(name, process)?;
        let published = match &cluster.head.phase {
            Phase::Scaling(scale) if scale.scaling == reported => scale.published,
            _ => 0,
        };
        let is_asked = cluster.nodes().get(&member).is_some_and(|node| node.work == Work::Asked);
        if published == 0 || !is_asked {
            return Ok(Answer::Noted);
        }
        cluster.edit(member, |node| {
            node.work = Work::Done;
            // It would not report if it had not been told.
            node.told.metadata = node.told.metadata.max(published);
        });
        self.cluster_changed();
        Ok(Answer::Noted)
    }

    /// One that leaves is gone. One that finishes before the cluster was ever complete gives up its place.
    pub(super) fn finish_node(&mut self, name: &str, process: Option<Incarnation>) -> Answered {
        let (cluster, member) = self.asking_node(name, process)?;
        let Some(node) = cluster.nodes().get(&member).filter(|node| !node.finished) else {
            return Ok(Answer::Noted);
        };
        let is_starting = matches!(cluster.head.phase, Phase::Starting { .. });
        if node.is_leaving() {
            cluster.remove(member);
        } else {
            cluster.edit(member, |node| {
                node.finished = true;
                node.life = if is_starting { Life::GivenUp } else { Life::Alive };
            });
        }
        self.cluster_changed();
        Ok(Answer::Noted)
    }
}
