//! What nodes of the parameter server do and hear, as it stands in the history.

use tripod_checkers::history::{Act, Call, ClientId, ClusterNode, Outcome, Reply};

use crate::witness::{Witness, micros, now};

/// Writes for one process of a node.
#[derive(Clone)]
pub(super) struct Scribe {
    pub(super) witness: Witness,
    pub(super) id: ClientId,
    pub(super) node: ClusterNode,
}

impl Scribe {
    /// Something that the node asks.
    pub(super) async fn record(&self, act: Act, made: impl Future<Output = Outcome>) -> Outcome {
        self.witness.record(self.id, self.call(act), made).await
    }

    /// Something that nobody answers: it is so.
    pub(super) fn note(&self, act: Act) {
        let call = self.call(act);
        self.witness.note(now(), &format!("c{}", self.id), format_args!("{call}"));
        let pending = self.witness.recorder().invoke(micros(now()), self.id, call);
        pending.complete(micros(now()), Outcome::Ok(Reply::Done));
    }

    fn call(&self, act: Act) -> Call {
        Call::Node { node: self.node.clone(), act }
    }
}
