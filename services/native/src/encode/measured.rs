//! What a node has measured of itself.

use std::time::Duration;

use tripod_gateway::Measures;
use tripod_proto::tripod::v1 as wire;

/// Adds to `response` what was measured, and of each member how long ago it answered.
pub(crate) fn add(response: &mut wire::StatusResponse, measures: &Measures, held_calls: u64) {
    let flush = &measures.flush;
    response.measured = Some(wire::Measured {
        flush_p50_us: flush.p50.map(micros),
        flush_p99_us: flush.p99.map(micros),
        flush_under_way_ms: flush.under_way.map(millis),
        held_calls,
        leader_changes: measures.elections.leader_changes,
    });
    for member in &mut response.members {
        let heard = measures.heard.iter().find(|(node, _)| node.0 == member.node_id);
        member.heard_ms_ago = heard.map(|(_, ago)| millis(*ago));
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use tripod_gateway::FlushTimes;
    use tripod_state::ids::NodeId;

    use super::*;

    #[test]
    fn what_was_not_measured_is_absent_and_silence_is_told_of_its_member() {
        let member = |node_id| wire::Member { node_id, ..Default::default() };
        let mut response = wire::StatusResponse { members: vec![member(1), member(2)], ..Default::default() };
        add(&mut response, &Measures::default(), 0);
        assert_eq!(response.measured, Some(wire::Measured::default()));

        let flush = FlushTimes {
            count: 3,
            p50: Some(Duration::from_micros(900)),
            p99: Some(Duration::from_millis(2)),
            under_way: Some(Duration::from_millis(40)),
        };
        let heard = vec![(NodeId(2), Duration::from_millis(1500))];
        add(&mut response, &Measures { flush, heard, ..Measures::default() }, 7);
        let measured = response.measured.expect("added");
        assert_eq!((measured.flush_p50_us, measured.flush_p99_us), (Some(900), Some(2000)));
        assert_eq!((measured.flush_under_way_ms, measured.held_calls), (Some(40), 7));
        let heard: Vec<_> = response.members.iter().map(|member| member.heard_ms_ago).collect();
        assert_eq!(heard, [None, Some(1500)]);
    }
}
