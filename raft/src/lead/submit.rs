//! Proposals on the leader itself, and what openraft's errors mean for the caller.

use bytes::Bytes;
use futures::StreamExt;
use openraft::errors::{ClientWriteError, Fatal, ForwardToLeader, RaftError};
use openraft::raft::ClientWriteResponse;
use tripod_state::ids::LogIndex;
use tripod_state::{Command, Envelope};

use crate::apply::engine::Raft;
use crate::base::clock::WallClock;
use crate::base::codec;
use crate::base::error::{Applied, ProposeError};
use crate::base::stages::Stages;
use crate::base::types::{LogCommand, Response, Types};
use crate::lead::gathering::Gatherer;
use crate::lead::leadership::LeadershipWatch;

/// Appends commands to the log of this node, which should be the leader.
#[derive(Clone)]
pub(crate) struct Submitter {
    proposer: Proposer,
    leadership: LeadershipWatch,
    gatherer: Gatherer,
}

/// What hands commands to the engine.
#[derive(Clone)]
pub(super) struct Proposer {
    raft: Raft,
    clock: WallClock,
    stages: Stages,
}

impl Submitter {
    /// Must be called within a tokio runtime.
    pub(crate) fn new(raft: Raft, clock: WallClock, stages: Stages, leadership: LeadershipWatch) -> Self {
        let proposer = Proposer { raft, clock, stages };
        let gatherer = Gatherer::start(proposer.clone());
        Self { proposer, leadership, gatherer }
    }

    /// Replicates a command of this node's own, and waits for it no longer than this node leads.
    ///
    /// # Errors
    /// [`ProposeError`]; only after [`ProposeError::Unknown`] it may have taken effect.
    pub(crate) async fn propose(&self, command: Command) -> Result<Applied, ProposeError> {
        self.submit_as_leader(codec::encode(&Envelope { stamp: None, command }).into()).await
    }

    /// [`Self::submit`] that waits no longer than this node leads.
    ///
    /// # Errors
    /// As [`Self::propose`].
    pub(crate) async fn submit_as_leader(&self, payload: Bytes) -> Result<Applied, ProposeError> {
        tokio::select! {
            biased;
            applied = self.submit(payload) => applied,
            () = self.leadership.deposed() => Err(ProposeError::Unknown("this node ceased to lead".into())),
        }
    }

    /// Replicates one encoded envelope.
    pub(crate) async fn submit(&self, payload: Bytes) -> Result<Applied, ProposeError> {
        if let Some(outcome) = self.gatherer.take(&payload) {
            // Nobody answers when the whole runtime ends.
            return outcome.await.unwrap_or_else(|_| Err(broken(&Fatal::Stopped)));
        }
        let Proposer { raft, stages, .. } = &self.proposer;
        let proposing = stages.propose(std::slice::from_ref(&payload));
        let written = raft.client_write(self.proposer.stamp(payload)).await;
        let applied = written.map(applied).map_err(refused)?;
        proposing.answered();
        Ok(applied)
    }

    /// Replicates several, in order; one outcome each. `taken` is called when the engine has them all, or will have none.
    pub(crate) async fn submit_many(
        &self,
        payloads: Vec<Bytes>,
        taken: impl FnOnce() + Send,
    ) -> Vec<Result<Applied, ProposeError>> {
        let mut outcomes = Vec::with_capacity(payloads.len());
        self.proposer.propose_each(payloads, taken, |outcome| outcomes.push(outcome)).await;
        outcomes
    }
}

impl Proposer {
    /// Replicates several, in order, and gives the outcome of each, in order, as soon as it is known. `taken` is called when
    /// the engine has them all, or will have none of them.
    pub(super) async fn propose_each(
        &self,
        payloads: Vec<Bytes>,
        taken: impl FnOnce() + Send,
        mut answer: impl FnMut(Result<Applied, ProposeError>) + Send,
    ) {
        let mut open = payloads.len();
        let proposing = self.stages.propose(&payloads);
        let mut is_last_applied = false;
        let results =
            self.raft.client_write_many(payloads.into_iter().map(|payload| self.stamp(payload))).await;
        taken();
        match results {
            Ok(mut results) => {
                while let Some(result) = results.next().await {
                    let outcome = match result {
                        Ok(Ok(written)) => Ok(reply(written.log_id.index, written.response)),
                        Ok(Err(error)) => Err(refused(RaftError::APIError(error))),
                        Err(fatal) => Err(broken(&fatal)),
                    };
                    (open, is_last_applied) = (open.saturating_sub(1), outcome.is_ok());
                    answer(outcome);
                }
            }
            Err(fatal) => {
                open = open.saturating_sub(1);
                answer(Err(broken(&fatal)));
            }
        }
        if is_last_applied {
            proposing.answered();
        }
        // The stream ends at a fatal error, which leaves the rest open.
        for _ in 0..open {
            answer(Err(broken(&Fatal::Stopped)));
        }
    }

    fn stamp(&self, payload: Bytes) -> LogCommand {
        LogCommand { now_ms: (self.clock)().0, payload }
    }
}

fn applied(written: ClientWriteResponse<Types>) -> Applied {
    reply(written.log_id.index, written.data)
}

fn reply(index: u64, response: Response) -> Applied {
    let reply = response.reply.expect("an entry with a command has a reply");
    Applied { index: LogIndex(index), reply }
}

/// Sorts openraft's refusals by what may have happened to the entry.
fn refused(error: RaftError<Types, ClientWriteError<Types>>) -> ProposeError {
    match error {
        // Checked before the entry is appended, whatever the reason: not the leader, leadership being
        // handed over, or the lease over.
        RaftError::APIError(ClientWriteError::ForwardToLeader(forward)) => {
            ProposeError::NoLeader(elsewhere(&forward))
        }
        // Appended here, then cut off by another leader, who may have had it from this node all the same.
        RaftError::APIError(ClientWriteError::LogEntryDiscarded(forward)) => {
            ProposeError::Unknown(format!("leadership was lost: {}", elsewhere(&forward)))
        }
        RaftError::APIError(
            error @ (ClientWriteError::ChangeMembershipError(_) | ClientWriteError::PreconditionFailed(_)),
        ) => ProposeError::Unknown(error.to_string()),
        RaftError::Fatal(fatal) => broken(&fatal),
    }
}

/// The engine stopped under the call: the entry may have reached a follower before.
fn broken(fatal: &Fatal<Types>) -> ProposeError {
    ProposeError::Unknown(format!("this node stopped: {fatal}"))
}

fn elsewhere(forward: &ForwardToLeader<Types>) -> String {
    match forward.leader_id {
        Some(leader) => format!("this node does not lead ({:?}), node {leader} may", forward.reason),
        None => format!("this node does not lead ({:?})", forward.reason),
    }
}
