//! That all have finished, and are told so.

use super::seen::{Cluster, Life};
use crate::check::Violation;

pub(super) fn check(subject: &str, cluster: &Cluster<'_>) -> Vec<Violation> {
    // Who was ended counts for nothing, and who is told nothing at all is no node of such a cluster.
    let staying = cluster.lives.iter().filter(|(_, life)| life.ended.is_none());
    let staying: Vec<_> =
        staying.filter(|(_, life)| !life.lists.is_empty() || !life.finishes.is_empty()).collect();
    let mut violations = Vec::new();
    if staying.iter().all(|(_, life)| life.has_finished()) {
        violations.extend(staying.iter().filter(|(_, life)| life.released.is_none()).map(|(node, life)| {
            let text = format!("all have finished, and node {} was never told so", node.name);
            Violation::new("finish-lost", subject, text, &life.finishes)
        }));
    }
    let early = staying.iter().find_map(|(_, life)| {
        let released = life.released?;
        let has_begun =
            |life: &Life<'_>| life.finishes.iter().any(|finish| finish.invoked < released.completed);
        let (node, _) = staying.iter().find(|(_, other)| !has_begun(other))?;
        let text = format!("a node was told that all have finished, and node {} had not", node.name);
        Some(Violation::new("finish-early", subject, text, &[released]))
    });
    violations.extend(early);
    violations
}
