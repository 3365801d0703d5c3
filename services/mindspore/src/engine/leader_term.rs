//! One job's cluster while this node leads.

use std::sync::Arc;

use tripod_gateway::{Consistency, Gateway};
use tripod_state::ids::JobId;
use tripod_state::mindspore::{self, Decision};
use tripod_state::{Command, Scope, State};

use super::Patience;
use crate::pulse::PeerMemory;

pub(super) struct LeaderTerm {
    pub(super) gateway: Gateway,
    pub(super) job: JobId,
    pub(super) heard: Arc<PeerMemory>,
    pub(super) patience: Patience,
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

    /// Puts a decision into the log, or logs why it is not there. What it was about is looked at again.
    pub(super) async fn decide(&self, decision: Decision) {
        let command = mindspore::Command::Lead { scope: self.scope(), decision };
        match self.gateway.submit(Command::Mindspore(command)).await {
            Ok(Ok(_)) => {}
            Ok(Err(fault)) => {
                tracing::info!(job = self.job.0, ?fault, "a decision of the leader was refused");
            }
            Err(outage) => {
                tracing::info!(job = self.job.0, %outage, "a decision of the leader is not in the log");
            }
        }
    }
}
