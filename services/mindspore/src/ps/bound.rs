//! Which process of which node a connection belongs to.

use tripod_state::mindspore::cluster::{Incarnation, NodeView};

use super::release::Release;

/// What is known of whoever is at the other end.
#[derive(Debug, Default)]
pub(crate) struct Bound {
    process: Option<Process>,
    release: Release,
}

#[derive(Debug)]
struct Process {
    node: String,
    incarnation: Incarnation,
    /// It has said that it has nothing left to do, and that was noted.
    finished: bool,
}

impl Bound {
    pub(crate) fn release(&self) -> Release {
        self.release
    }

    /// It said something that tells its release.
    pub(crate) fn learn(&mut self, release: Option<Release>) {
        self.release = release.unwrap_or(self.release);
    }

    /// The node registered on this connection, or sent a heartbeat on it.
    pub(crate) fn bind(&mut self, node: &str, incarnation: Incarnation) {
        let is_same = self.incarnation_of(node) == Some(incarnation);
        if !is_same {
            self.process = Some(Process { node: node.to_owned(), incarnation, finished: false });
        }
    }

    /// It has finished.
    pub(crate) fn finish(&mut self, node: &str) {
        if let Some(process) = self.process.as_mut().filter(|process| process.node == node) {
            process.finished = true;
        }
    }

    pub(crate) fn has_finished(&self, node: &str) -> bool {
        self.process.as_ref().is_some_and(|process| process.node == node && process.finished)
    }

    /// The process that it is, if it is known.
    pub(crate) fn incarnation_of(&self, node: &str) -> Option<Incarnation> {
        self.process.as_ref().filter(|process| process.node == node).map(|process| process.incarnation)
    }

    /// Whether whoever speaks for a node here is the process that the state knows. `at` is where it says that it is, if
    /// it does; on a connection where nobody has spoken for the node yet that is all there is to go by.
    pub(crate) fn is_process_of(&self, view: &NodeView, at: Option<(&str, u32)>) -> bool {
        match self.incarnation_of(view.node.as_str()) {
            Some(incarnation) => incarnation == view.incarnation,
            None => at.is_none_or(|at| at == (view.ip.as_str(), view.port)),
        }
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::NodeName;
    use tripod_state::mindspore::cluster::ClusterState;
    use tripod_state::mindspore::{Member, Role};

    use super::*;

    fn view(incarnation: u64) -> NodeView {
        NodeView {
            node: NodeName::from("a"),
            member: Member(3),
            incarnation: Incarnation(incarnation),
            role: Role::Server,
            rank: Some(0),
            ip: "192.0.2.2".into(),
            port: 4000,
            is_alive: true,
            is_entered: true,
            is_finished: false,
            state: ClusterState::Ready,
        }
    }

    #[test]
    fn who_registered_is_a_process_and_who_only_beats_is_the_one_at_its_address() {
        let mut bound = Bound::default();
        assert!(bound.is_process_of(&view(3), None));
        assert!(bound.is_process_of(&view(3), Some(("192.0.2.2", 4000))));
        assert!(!bound.is_process_of(&view(3), Some(("192.0.2.2", 4001))));
        bound.bind("a", Incarnation(3));
        assert!(bound.is_process_of(&view(3), Some(("192.0.2.2", 4001))));
        assert!(!bound.is_process_of(&view(9), None), "another process has registered since");
    }

    #[test]
    fn what_a_process_has_finished_its_next_one_has_not() {
        let mut bound = Bound::default();
        bound.finish("a");
        assert!(!bound.has_finished("a"), "nobody knows who said it");
        bound.bind("a", Incarnation(3));
        bound.finish("b");
        assert!(!bound.has_finished("a") && !bound.has_finished("b"));
        bound.finish("a");
        bound.bind("a", Incarnation(3));
        assert!(bound.has_finished("a"));
        bound.bind("a", Incarnation(5));
        assert!(!bound.has_finished("a"));
    }
}
