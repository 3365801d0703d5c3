//! What agents say with the frames that they pass on: to the domain's words, and back.

use tripod_state::ids::{Sequence, SessionId};
use tripod_state::{Fault, Stamp};

use crate::connection::{Ended, held};
use crate::wire::{self, Word};

/// A command's place in a session of its agent. Whoever names a session has been given it, for its id is 128 bits; that of a
/// node nobody can name.
pub(crate) fn stamp(stamp: wire::Stamp) -> Stamp {
    Stamp {
        session: SessionId::of_client(stamp.session),
        sequence: Sequence(stamp.sequence),
        acknowledged_below: Sequence(stamp.acknowledged_below),
    }
}

/// What an agent is told of its session; `None` if the fault is about what its client asked.
pub(crate) fn word_of(fault: &Fault) -> Option<Word> {
    match fault {
        Fault::SessionExpired | Fault::SessionWindow { .. } => Some(Word::SessionGone),
        Fault::ReplyForgotten | Fault::StampReused => Some(Word::Unknown),
        _ => None,
    }
}

/// Whether a connection ends because of what its client has said, or because there is no room for it: the same frame would
/// end it on every node. What only this node cannot do is no such end.
pub(crate) fn is_refusal(ended: &Ended) -> bool {
    match ended {
        Ended::Unreadable { .. } | Ended::Unknown { .. } => true,
        Ended::Outage(outage) => held::is_refusal(outage),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_agent_can_name_a_session_of_a_node() {
        let node = SessionId::of_node(7);
        let named = stamp(wire::Stamp { session: node.0, sequence: 12, acknowledged_below: 9 });
        assert_eq!(named.session, SessionId(7));
        assert_eq!((named.sequence, named.acknowledged_below), (Sequence(12), Sequence(9)));
    }

    #[test]
    fn an_agent_hears_of_its_session_and_its_client_of_the_rest() {
        assert_eq!(word_of(&Fault::SessionExpired), Some(Word::SessionGone));
        assert_eq!(word_of(&Fault::ReplyForgotten), Some(Word::Unknown));
        assert_eq!(word_of(&Fault::RegistrationReplaced), None);
    }
}
