//! One job's clusters while this node leads.

use std::ops::Deref;

use tripod_gateway::Consistency;
use tripod_state::ids::JobId;
use tripod_state::mindspore::{self, Decision};
use tripod_state::{Command, Scope, State};

use super::Engine;

pub(super) struct LeaderTerm {
    pub(super) engine: Engine,
    pub(super) job: JobId,
}

impl Deref for LeaderTerm {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl LeaderTerm {
    pub(super) fn scope(&self) -> Scope {
        Scope { job: self.job, service: None }
    }

    /// Looks at the state in this node's memory, which is the leader's.
    pub(super) async fn look<T>(&self, look: impl FnOnce(&State) -> Option<T>) -> Option<T> {
        // A local read has no outage.
        self.gateway.read(Consistency::Local, look).await.ok().flatten()
    }

    /// Puts a decision into the log, or logs why it is not there: `false` if it may be there another time. What it was
    /// about is looked at again.
    pub(super) async fn decide(&self, decision: Decision) -> bool {
        let command = mindspore::Command::Lead { scope: self.scope(), decision };
        match self.gateway.submit(Command::Mindspore(command)).await {
            Ok(Ok(_)) => true,
            Ok(Err(fault)) => {
                tracing::info!(job = self.job.0, ?fault, "a decision of the leader was refused");
                true
            }
            Err(outage) => {
                tracing::info!(job = self.job.0, %outage, "a decision of the leader is not in the log");
                false
            }
        }
    }
}
