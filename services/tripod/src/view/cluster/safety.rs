//! How many nodes may be lost, and whether a change of members is safe now, by the rules of `tripod diagnose`.

use tripod_client::wire;
use tripod_sight::{Member, Safety, safety};

use super::node::NodeView;

/// Of those nodes. `led`: somebody leads. `is_changing`: a change is under way. `leaving`: the node that a change would take
/// out.
pub(super) fn of(nodes: &[NodeView], (led, is_changing): (bool, bool), leaving: Option<u64>) -> Safety {
    let members = nodes.iter().filter_map(|node| {
        Some(Member {
            node: node.id()?,
            voter: node.voter == Some(true),
            answers: node.why.is_none(),
            // Whoever is cut off follows nobody.
            cut: node.state == "no-leader" && led,
            lag_entries: node.lag_entries,
            leaving: leaving == node.id(),
        })
    });
    safety(&members.collect::<Vec<_>>(), led, is_changing)
}

/// Whether a change of members is under way, as the node knows that is furthest.
pub(super) fn is_changing(told: &[&wire::StatusResponse]) -> bool {
    let status = told.iter().max_by_key(|status| (status.term, status.applied_index));
    status.is_some_and(|status| status.change_under_way)
}

/// Which jobs have tasks that wait for somebody, as the node knows that is furthest.
pub(super) fn jobs_line(told: &[&wire::StatusResponse]) -> Option<(u64, String, String)> {
    let status = told.iter().max_by_key(|status| (status.term, status.applied_index))?;
    if status.jobs_waiting == 0 {
        return None;
    }
    let (count, job) = (status.jobs_waiting, status.waiting_job.clone());
    let verb = if count == 1 { "waits" } else { "wait" };
    let line =
        format!("jobs {}: {count} {verb} for somebody ({job}), next: tripod diagnose {job}", status.jobs);
    Some((count, job, line))
}
