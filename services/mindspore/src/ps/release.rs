//! Which family of releases a node is of.

use tripod_proto::mindspore::ps_core::{HeartbeatMessage, MessageMeta, RegisterMessage};

/// Nodes do not say it. What one sends that only later ones send tells it; a node that sends nothing of that kind counts as
/// an earlier one, which understands less.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Release {
    /// 1.2 to 1.7: a list of nodes is one of servers, and a node is told no state beyond the eighth.
    #[default]
    Before2_0,
    /// 1.8 to 2.2.
    From2_0,
}

impl Release {
    /// By a registration. Earlier nodes wait for its answer, so it has a number there; a worker of 2.0 has one, too.
    pub(crate) fn of_registration(meta: &MessageMeta, message: &RegisterMessage) -> Option<Self> {
        let later = meta.request_id == 0 || message.fl_iteration_num > 0 || message.is_recover;
        later.then_some(Self::From2_0)
    }

    /// By a heartbeat: workers of 2.0 say where they are.
    pub(crate) fn of_heartbeat(message: &HeartbeatMessage) -> Option<Self> {
        (message.has_address || message.persistent_state > 0).then_some(Self::From2_0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_a_later_one_by_what_only_later_ones_say() {
        let tracked = MessageMeta { request_id: 1, ..MessageMeta::default() };
        let plain = RegisterMessage::default();
        assert_eq!(Release::of_registration(&tracked, &plain), None);
        assert_eq!(Release::of_registration(&MessageMeta::default(), &plain), Some(Release::From2_0));
        let recovering = RegisterMessage { is_recover: true, ..plain.clone() };
        assert_eq!(Release::of_registration(&tracked, &recovering), Some(Release::From2_0));
        let iterating = RegisterMessage { fl_iteration_num: 1, ..plain };
        assert_eq!(Release::of_registration(&tracked, &iterating), Some(Release::From2_0));
        let beat = HeartbeatMessage { node_id: "a".into(), ..HeartbeatMessage::default() };
        assert_eq!(Release::of_heartbeat(&beat), None);
        let placed = HeartbeatMessage { has_address: true, ..beat };
        assert_eq!(Release::of_heartbeat(&placed), Some(Release::From2_0));
    }
}
