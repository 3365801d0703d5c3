//! What a node has seen, as it travels between two nodes' gateways.

use bytes::Bytes;
use prost::Message as _;
use tripod_proto::tripod::peer::v1 as pb;

use super::ring::EVENTS_MAX;
use super::{NodeEvent, NodeEventsSeen};

pub(super) fn encode(seen: &NodeEventsSeen) -> Bytes {
    let event = |event: &NodeEvent| pb::NodeEvent {
        number: event.number,
        at_ms: event.at_ms,
        until_ms: event.until_ms,
        kind: event.kind.clone(),
        name: event.name.clone(),
        text: event.text.clone(),
        times: event.times,
    };
    let seen = pb::NodeEvents {
        events: seen.events.iter().map(event).collect(),
        made: seen.made,
        merged: seen.merged,
        dropped: seen.dropped,
        began_ms: seen.began_ms,
        own_since_ms: seen.own_since_ms,
        since_ms: seen.since_ms,
    };
    seen.encode_to_vec().into()
}

/// # Errors
/// What is wrong with the bytes.
pub(super) fn decode(bytes: Bytes) -> Result<NodeEventsSeen, String> {
    let seen = pb::NodeEvents::decode(bytes).map_err(|error| format!("an answer: {error}"))?;
    let event = |event: pb::NodeEvent| {
        let pb::NodeEvent { number, at_ms, until_ms, kind, name, text, times } = event;
        NodeEvent { number, at_ms, until_ms, kind, name, text, times }
    };
    let surplus = seen.events.len().saturating_sub(EVENTS_MAX);
    Ok(NodeEventsSeen {
        events: seen.events.into_iter().skip(surplus).map(event).collect(),
        made: seen.made,
        merged: seen.merged,
        dropped: seen.dropped,
        began_ms: seen.began_ms,
        own_since_ms: seen.own_since_ms,
        since_ms: seen.since_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read_as_it_was_written_and_nothing_else_is() {
        let event = NodeEvent {
            number: 7,
            at_ms: 1,
            until_ms: 2,
            kind: "paused".into(),
            name: "n".into(),
            text: "t".into(),
            times: 3,
        };
        let (began_ms, own_since_ms, since_ms) = (9, 10, 11);
        let (events, made, merged, dropped) = (vec![event], 7, 2, 1);
        let seen = NodeEventsSeen { events, made, merged, dropped, began_ms, own_since_ms, since_ms };
        assert_eq!(decode(encode(&seen)), Ok(seen));
        assert!(decode(Bytes::from_static(b"\xff")).is_err());
    }
}
