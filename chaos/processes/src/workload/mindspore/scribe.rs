//! What nodes do and hear, as it stands in the history.

use tripod_checkers::history::{Act, Call, ClientId, ClusterNode, Outcome, Pending, Reply};
use tripod_load::mindspore::Failure;

use super::super::setting::Setting;

/// Writes for one process of a node.
#[derive(Debug, Clone)]
pub(super) struct Scribe {
    pub(super) setting: Setting,
    pub(super) id: ClientId,
    pub(super) node: ClusterNode,
}

impl Scribe {
    pub(super) fn begin(&self, act: Act) -> Pending {
        self.setting.invoke(self.id, Call::Node { node: self.node.clone(), act })
    }

    pub(super) fn end(&self, pending: Pending, told: Result<Reply, &Failure>) {
        self.setting.complete(pending, outcome(told));
    }

    /// Something that nobody answers: it is so.
    pub(super) fn note(&self, act: Act) {
        let pending = self.begin(act);
        self.setting.complete(pending, Outcome::Ok(Reply::Done));
    }
}

/// What a failure says of whether it was done.
pub(super) fn outcome(told: Result<Reply, &Failure>) -> Outcome {
    match told {
        Ok(reply) => Outcome::Ok(reply),
        Err(failure @ Failure::Unanswered(_)) => Outcome::Unknown(failure.to_string()),
        Err(failure @ (Failure::Unsent(_) | Failure::Refused(_))) => Outcome::Fail(failure.to_string()),
    }
}
