//! Events: what one node tells all.

use crate::job::turn::Turn;
use crate::limits::within;
use crate::mindspore::apply::Answered;
use crate::mindspore::cluster::Incarnation;
use crate::mindspore::cluster::record::{Event, Phase};
use crate::mindspore::limits::EVENTS_KEPT_MAX;
use crate::mindspore::{Answer, Refusal};

impl Turn<'_> {
    /// Before all were told of each other nobody would hear of it, and after all have finished nobody waits for it.
    pub(super) fn node_event(&mut self, name: &str, process: Option<Incarnation>, event: u32) -> Answered {
        let (cluster, from) = self.asking_node(name, process)?;
        if cluster.head.formed == 0 {
            return Err(Refusal::NotFormed.into());
        }
        if cluster.head.phase == Phase::Exit {
            return Err(Refusal::Ending.into());
        }
        let kept = cluster.events().len() as u64 + 1;
        within("events that not all nodes have been told", kept, EVENTS_KEPT_MAX)?;
        let sequence = cluster.keep(Event { event, from });
        self.cluster_changed();
        Ok(Answer::Accepted { sequence })
    }
}
