//! Whether the cluster may grow, from what is known of its disks. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;
use tripod_state::ids::NodeId;

use super::DiskStatus;

/// For how long a report counts. A node that is silent for longer is taken for one that is away, and
/// whose disk holds nothing.
pub(super) const REPORT_MAX_AGE: Duration = Duration::from_secs(5);

/// What a node said of its disk, and when.
pub(super) type Known = BTreeMap<NodeId, (Instant, DiskStatus)>;

/// Why nothing may grow. `own` is the leader, `led_since` when it began to lead: who has not reported
/// since may only not have come to it yet.
pub(super) fn refusal(
    own: NodeId,
    voters: &[NodeId],
    known: &Known,
    led_since: Instant,
    now: Instant,
) -> Option<String> {
    let fresh = |node: &NodeId| {
        let (at, disk) = known.get(node)?;
        (*node == own || now.saturating_duration_since(*at) < REPORT_MAX_AGE).then_some(disk)
    };
    let full: Vec<_> =
        voters.iter().filter_map(|node| Some((*node, fresh(node).filter(|disk| disk.full)?))).collect();
    if full.is_empty() {
        return None;
    }
    let is_new = now.saturating_duration_since(led_since) < REPORT_MAX_AGE;
    let has_room = |node: &&NodeId| fresh(node).map_or(is_new && **node != own, |disk| !disk.full);
    let with_room = voters.iter().filter(has_room).count();
    let own_is_full = full.iter().any(|(node, _)| *node == own);
    (own_is_full || with_room < voters.len() / 2 + 1).then(|| text(&full))
}

fn text(full: &[(NodeId, &DiskStatus)]) -> String {
    let of = |(node, disk): &(NodeId, &DiskStatus)| {
        let DiskStatus { directory, free_bytes, reserve_bytes, .. } = disk;
        format!("node {node} has {free_bytes} bytes free in {directory} and keeps {reserve_bytes}")
    };
    let nodes: Vec<String> = full.iter().map(of).collect();
    format!(
        "T3201 disk-full: {} for votes, deletions and snapshots; nothing that grows is accepted until there is \
         room: free space there, or delete keys and jobs",
        nodes.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEADER: NodeId = NodeId(1);
    const VOTERS: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];

    /// A disk for each node: full, with room, or of a node that is away.
    fn verdict(disks: [Option<bool>; 3]) -> Option<String> {
        let led_since = Instant::now();
        let now = led_since + 2 * REPORT_MAX_AGE;
        let report = |(node, disk): (NodeId, Option<bool>)| {
            let at = if disk.is_some() { now } else { led_since };
            let disk = DiskStatus {
                directory: format!("/data-{node}"),
                free_bytes: 7,
                reserve_bytes: 9,
                full: disk.unwrap_or_default(),
            };
            (node, (at, disk))
        };
        let known = VOTERS.into_iter().zip(disks).map(report).collect();
        refusal(LEADER, &VOTERS, &known, led_since, now)
    }

    const FULL: Option<bool> = Some(true);
    const ROOM: Option<bool> = Some(false);
    const AWAY: Option<bool> = None;

    #[test]
    fn a_quorum_with_room_grows_whatever_a_follower_lacks() {
        assert_eq!(verdict([ROOM, ROOM, ROOM]), None);
        assert_eq!(verdict([ROOM, FULL, ROOM]), None);
        assert_eq!(verdict([ROOM, ROOM, AWAY]), None);
        assert_eq!(verdict([ROOM, AWAY, AWAY]), None, "who is away is none of the disk's business");
    }

    #[test]
    fn without_a_quorum_that_has_room_nothing_grows() {
        assert!(verdict([ROOM, FULL, FULL]).is_some());
        assert!(verdict([ROOM, FULL, AWAY]).is_some(), "every commit would need the full one");
        assert!(verdict([FULL, ROOM, ROOM]).is_some(), "a leader writes all that it replicates");
    }

    #[test]
    fn the_refusal_names_nodes_directories_bytes_and_what_to_do() {
        let text = verdict([FULL, ROOM, FULL]).unwrap();
        for part in
            ["T3201 disk-full", "node 1 has 7 bytes free in /data-1 and keeps 9", "node 3", "delete keys"]
        {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("node 2"), "{text}");
    }

    #[test]
    fn a_new_leader_waits_for_reports_before_it_takes_followers_for_away() {
        let now = Instant::now();
        let full = DiskStatus { full: true, ..DiskStatus::default() };
        let mut known = Known::from([(LEADER, (now, DiskStatus::default())), (NodeId(2), (now, full))]);
        assert_eq!(refusal(LEADER, &VOTERS, &known, now, now), None);
        let later = now + REPORT_MAX_AGE;
        if let Some((at, _)) = known.get_mut(&NodeId(2)) {
            *at = later;
        }
        assert!(refusal(LEADER, &VOTERS, &known, now, later).is_some());
    }
}
