//! Mistakes in the way of the commands of MindSpore's clusters.

use tripod_state::mindspore::cluster::Request;
use tripod_state::mindspore::{Answer, Command};

/// The answer to something that is told all. Nodes are not told which number it has.
pub(super) const ACCEPTED: Answer = Answer::Accepted { sequence: 0 };

/// Whether a node tells all something.
pub(super) fn is_event(command: &Command) -> bool {
    matches!(command, Command::Cluster { request: Request::Event { .. }, .. })
}

/// The same answer, to a node that is the first of its role.
pub(super) fn make_first(answer: &mut Answer) {
    if let Answer::Joined { rank, .. } = answer {
        *rank = 0;
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::mindspore::Member;
    use tripod_state::mindspore::cluster::Incarnation;

    use super::*;

    #[test]
    fn only_the_answer_to_a_registration_is_another_one() {
        let joined =
            |rank| Answer::Joined { member: Member(3), incarnation: Incarnation(3), rank, generation: 1 };
        let mut answer = joined(2);
        make_first(&mut answer);
        assert_eq!(answer, joined(0));
        let mut other = Answer::Registered { rank: 2, nodes: 3 };
        make_first(&mut other);
        assert_eq!(other, Answer::Registered { rank: 2, nodes: 3 });
    }
}
