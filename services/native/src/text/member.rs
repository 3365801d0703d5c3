//! Why a change of the members was refused, in words, with the next command.

use tripod_gateway::{Unwise, Votes};
use tripod_state::ids::NodeId;
use tripod_state::member::{Change, Ending, Refusal};

use super::ids;

const LIST: &str = "`tripod member list` shows the members";

/// The registry's refusal as one sentence without a full stop.
pub(crate) fn of_refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::InProgress { open } => format!(
            "change in progress by {}: {}; wait for its end, or give it up with `tripod member cancel {}`",
            open.by, open.change, open.id
        ),
        Refusal::NodeUnknown { node } => format!("there is no node {node}; {LIST}"),
        Refusal::NodeRemoved { node } => format!(
            "T4201 node-removed: node {node} was removed, and its id never comes back; to use its machine again \
             empty its data directory and start it with `tripod server --join HOST:PORT`"
        ),
        Refusal::AddressTaken { node, peer } => format!(
            "the peer address {peer} belongs to node {node}; choose another one, or, if that node is gone for good, \
             `tripod member remove {node}` first"
        ),
        Refusal::HadData { node } => format!(
            "T4202 join-lost: this was node {node}, which has taken part, and its data directory is gone; it must \
             not vote again: run `tripod member remove {node}`, empty its data directory and join again"
        ),
        Refusal::NotOpen { change } => {
            format!("change {change} is not in progress; `tripod member list` shows what is")
        }
        Refusal::NameBound { node, bound } => format!(
            "T4207 node-name: node {node} is known by the certificate of node/{bound}, and keeps that name; give it a \
             certificate of that name, or put another node in its place: `tripod member replace {node} HOST:PORT`"
        ),
        Refusal::NameTaken { node, name } => format!(
            "T4207 node-name: node {node} is known by the certificate of node/{name}, so no other node can be; give this \
             one a certificate of its own, or put it in the place of that one: `tripod member replace {node} HOST:PORT`"
        ),
        Refusal::NameInvalid { node } => {
            format!(
                "T4207 node-name: what node {node} says that its certificate calls it is no name of a node"
            )
        }
    }
}

/// Why the leader finds a change unwise.
pub(crate) fn of_unwise(unwise: &Unwise, change: &Change) -> String {
    match unwise {
        Unwise::Address(reason) => format!("{reason}; write it as HOST:PORT"),
        Unwise::NoMember { node } => format!("node {node} is no member yet; {LIST}"),
        Unwise::Voter { node } => format!("node {node} is a voter already; {LIST}"),
        Unwise::Learner { node } => format!("node {node} is a learner already; {LIST}"),
        Unwise::SameAddress { node } => {
            format!("node {node} is reached there already; nothing is to be changed")
        }
        Unwise::Stranger { peer, reason } => {
            format!(
                "at {peer} listens somebody else: {reason}; correct the address, or end that process first"
            )
        }
        Unwise::Silent { node } => format!(
            "node {node} does not answer the leader; see that it runs and that its peer address is right, then try \
             again"
        ),
        Unwise::Lagging { node, entries, limit } => format!(
            "node {node} is {entries} entries behind, at most {limit} are allowed; wait until it has caught up \
             (`tripod member list` shows it), then try again"
        ),
        Unwise::NobodyElse { node } => nobody_else(*node),
        Unwise::LastVoter { node } => format!(
            "node {node} is the only voter, and without it there is no cluster; add and promote another one first"
        ),
        Unwise::TooOld { supports, level } => format!(
            "T4402 level-old: this node's build supports feature level {supports} at most, and the cluster is at level \
             {level}; start it with the build that the other nodes run (`tripod level show` lists them)"
        ),
        Unwise::QuorumLost { after } => format!(
            "to {change} would lose the quorum: {}; bring the silent nodes back first, or remove one of them \
             (--force does it all the same, and the cluster stands still until enough of them are back)",
            votes(after)
        ),
    }
}

/// Why a node is not drained.
pub(crate) fn nobody_else(node: NodeId) -> String {
    format!(
        "every voter but node {node} is drained or does not answer the leader, so nobody else could lead; bring one \
         back first: `tripod node undrain ID`, or see `tripod member list`"
    )
}

/// Who votes, as one part of a sentence.
fn votes(votes: &Votes) -> String {
    let silent = votes.silent();
    let silent = if silent.is_empty() { String::new() } else { format!(", silent: {}", ids(silent)) };
    format!(
        "voters {}, quorum {} of {}, {} answer{silent}",
        ids(&votes.voters),
        votes.quorum(),
        votes.voters.len(),
        votes.answering()
    )
}

/// How a change ended.
pub(crate) fn of_ending(ending: &Ending) -> String {
    match ending {
        Ending::Done => "done".to_owned(),
        Ending::Cancelled => "cancelled".to_owned(),
        Ending::Failed(reason) => format!("failed: {reason}"),
    }
}
