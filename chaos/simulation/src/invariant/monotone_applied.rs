//! What a node has applied never shrinks while it lives, and never runs ahead of what is committed.

use std::collections::BTreeMap;

use tripod_state::ids::{LogIndex, NodeId};

use crate::observation::{Life, Sample};

/// How far each node was in its present life.
#[derive(Debug, Default)]
pub(crate) struct MonotoneApplied {
    nodes: BTreeMap<NodeId, (Life, LogIndex)>,
}

impl MonotoneApplied {
    pub(crate) fn see(&mut self, sample: &Sample) -> Result<(), String> {
        let Sample { node, life, applied, .. } = *sample;
        let before = self.nodes.insert(node, (life, applied));
        match before {
            Some((same, before)) if same == life && applied < before => {
                Err(format!("node {node} had applied {before} and shows {applied} in the same life"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::Term;

    use super::*;

    fn sample(life: u32, applied: u64) -> Sample {
        Sample {
            node: NodeId(1),
            life: Life(life),
            leads: false,
            term: Term(1),
            last_log: LogIndex(9),
            committed: LogIndex(9),
            applied: LogIndex(applied),
        }
    }

    #[test]
    fn a_step_back_is_noticed_unless_the_node_was_started_again() {
        let mut rule = MonotoneApplied::default();
        assert_eq!(rule.see(&sample(1, 5)), Ok(()));
        assert_eq!(rule.see(&sample(1, 5)), Ok(()));
        assert_eq!(rule.see(&sample(2, 3)), Ok(()));
        let broken = rule.see(&sample(2, 2)).unwrap_err();
        assert_eq!(broken, "node 1 had applied 3 and shows 2 in the same life");
    }
}
