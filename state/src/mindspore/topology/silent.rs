//! What the leader sees: who is silent, and that time ran out.

use crate::job::turn::Turn;
use crate::mindspore::Member;
use crate::mindspore::topology::TopoState;
use crate::mindspore::topology::record::Node;

impl Turn<'_> {
    pub(in crate::mindspore) fn mark_in_topology(&mut self, members: &[Member], silent: bool) {
        let Some(topology) = self.job.domains.topology.as_deref_mut() else { return };
        let mut changed = false;
        for member in members {
            let Some(name) = topology.members().get(member).cloned() else { continue };
            let found = topology.node(name.as_str()).filter(|node| !node.left && node.silent != silent);
            let Some(node) = found.cloned() else { continue };
            topology.put(name, Node { silent, ..node });
            changed = true;
        }
        if changed {
            self.mindspore_changed();
        }
    }

    pub(in crate::mindspore) fn time_out_topology(&mut self, generation: u64) {
        let now = self.context.now_ms;
        let Some(topology) = self.job.domains.topology.as_deref_mut() else { return };
        let is_due = topology.deadline.is_some_and(|deadline| deadline <= now);
        if topology.generation == generation && topology.phase == TopoState::Initializing && is_due {
            topology.phase = TopoState::Failed;
            topology.deadline = None;
            self.mindspore_changed();
        }
    }
}
