//! Whose certificate is expected of a node, and at an address. Before the log has bound one to the node's id nobody knows.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tripod_state::ids::CertificateName;

use crate::base::names::Names;

/// What the log says of certificates and of addresses, together. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expected {
    names: Names,
    /// Who is reached at an address; empty until there is a membership.
    places: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl Expected {
    /// Where names come from.
    pub(crate) fn names(&self) -> Names {
        self.names.clone()
    }

    /// The members are there from now on.
    pub(crate) fn follow(&self, members: &BTreeMap<u64, String>) {
        let places = members.iter().map(|(node, address)| (address.clone(), *node)).collect();
        *self.places.lock() = places;
    }

    /// What the certificate of the member calls it that is reached at `HOST:PORT`, if that is known.
    pub(crate) fn at(&self, address: &str) -> Option<CertificateName> {
        let node = self.places.lock().get(address).copied();
        self.of(node?)
    }

    /// The same of a node.
    pub(crate) fn of(&self, node: u64) -> Option<CertificateName> {
        self.names.of(node)
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::{FeatureLevel, LogIndex, NodeId, Term, TimeMs};
    use tripod_state::member::Listed;
    use tripod_state::{ApplyContext, Command, Envelope, State, level, member};

    use super::*;

    /// Two members, of which the first has said its name.
    fn named() -> State {
        let mut state = State::default();
        let listed =
            [1, 2].map(|node| Listed { node: NodeId(node), peer: format!("h{node}:1"), voter: true });
        state.follow_members(&listed);
        let heard = vec![NodeId(1), NodeId(2)];
        let raise = Command::Level(level::Command::Raise { to: FeatureLevel(11), heard });
        let bind = Command::Member(member::Command::Bind { node: NodeId(1), name: "n1".into() });
        for (index, command) in [(1, raise), (2, bind)] {
            let context = ApplyContext { index: LogIndex(index), term: Term(1), now_ms: TimeMs(1) };
            state.apply(&context, Envelope { stamp: None, command }).reply.expect("it is legal");
        }
        state
    }

    #[test]
    fn a_certificate_is_expected_of_a_node_wherever_it_is_once_the_log_has_bound_it() {
        let expected = Expected::default();
        let members = |first: &str| BTreeMap::from([(1, first.to_owned()), (2, "h2:1".to_owned())]);
        expected.follow(&members("h1:1"));
        assert_eq!((expected.of(1), expected.at("h1:1")), (None, None));
        expected.names().note(&named());
        let name = || Some(CertificateName::from("n1"));
        assert_eq!((expected.of(1), expected.of(2)), (name(), None));
        assert_eq!((expected.at("h1:1"), expected.at("h2:1"), expected.at("h3:1")), (name(), None, None));
        expected.follow(&members("h3:1"));
        assert_eq!((expected.at("h1:1"), expected.at("h3:1")), (None, name()), "it has moved");
    }
}
