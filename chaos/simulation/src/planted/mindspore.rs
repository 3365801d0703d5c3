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
