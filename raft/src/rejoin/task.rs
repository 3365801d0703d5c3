//! Asks the others, waits, and opens the gate; and the other side, which answers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use openraft::raft::AppendEntriesRequest;
use tokio::sync::watch;
use tonic::{Code, Request};
use tripod_proto::tripod::peer::v1::Blob;
use tripod_proto::tripod::peer::v1::raft_client::RaftClient;
use tripod_state::ids::NodeId;
use tripod_state::{Command, Envelope, job};

use super::survey::{Decision, Question, Standing, decide};
use super::{Gate, Marker};
use crate::codec;
use crate::failure::Failure;
use crate::identity;
use crate::leadership::LeadershipWatch;
use crate::network::auth::Caller;
use crate::network::channels::{Channels, Class};
use crate::state_machine::StateMachine;
use crate::submit::Submitter;
use crate::types::{Peer, Raft, Types, Vote};

/// How long one answer may take.
const ANSWER_DEADLINE: Duration = Duration::from_secs(2);
/// Between two rounds of questions. Every node asks at its first start, so this delays the first leader.
const ROUND_PAUSE: Duration = Duration::from_millis(50);
/// How long to learn before the others are asked anew: what was to be learned may never be committed.
const LEARN_PATIENCE: Duration = Duration::from_secs(10);
/// Rounds in vain after which the log says what is missing.
const ROUNDS_SAID: u32 = 100;

/// What a node knows of itself when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// It has data, or is no voter: nothing is to be asked.
    Nothing,
    /// It has none: whether it ever had must be asked.
    WhetherLost,
    /// It has lost its data, and has not got everything back.
    HowToReturn,
}

/// A node that may have to ask.
pub(crate) struct Newcomer {
    pub(crate) node: u64,
    /// For the texts that an operator reads.
    pub(crate) data: PathBuf,
    pub(crate) marker: Marker,
    /// The voters of the first start.
    pub(crate) initial: BTreeMap<u64, Peer>,
    pub(crate) cluster_id: String,
    pub(crate) channels: Channels,
    pub(crate) raft: Raft,
    pub(crate) machine: StateMachine,
    pub(crate) gate: Gate,
    pub(crate) failure: Failure,
    pub(crate) stop: watch::Receiver<bool>,
}

impl Newcomer {
    /// What this node must ask before it takes part, given whether it has no log at all.
    pub(crate) fn must_ask(&self, pristine: bool) -> Asked {
        if self.marker.is_set() {
            return Asked::HowToReturn;
        }
        // A node that is not one of the first is made a voter by a command, when it has caught up.
        if pristine && self.initial.contains_key(&self.node) { Asked::WhetherLost } else { Asked::Nothing }
    }

    /// Asks until this node may take part, and opens the gate. `form` is done at a first start.
    pub(crate) async fn run(self, asked: Asked, form: impl AsyncFnOnce() -> Result<(), String>) {
        let mut stop = self.stop.clone();
        let come = async {
            if let Err(reason) = self.come(asked, form).await {
                self.failure.set(&reason);
            }
        };
        tokio::select! {
            () = come => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    async fn come(&self, asked: Asked, form: impl AsyncFnOnce() -> Result<(), String>) -> Result<(), String> {
        match asked {
            Asked::Nothing => {}
            Asked::WhetherLost if !self.was_lost().await => {
                self.gate.open();
                return form().await;
            }
            Asked::WhetherLost => {
                self.marker.set().map_err(|error| self.unwritable(&error))?;
                tracing::warn!(
                    node = self.node,
                    "T3111 data-lost: the others know this node, but its data is gone; it does not vote before it \
                     holds everything again"
                );
                self.restore().await?;
            }
            Asked::HowToReturn => self.restore().await?,
        }
        self.gate.open();
        Ok(())
    }

    async fn was_lost(&self) -> bool {
        loop {
            match self.survey(false).await {
                Decision::Lost => return true,
                Decision::Fresh => return false,
                Decision::Wait(_) | Decision::Learn { .. } => tokio::time::sleep(ROUND_PAUSE).await,
            }
        }
    }

    /// Takes everything from the others.
    async fn restore(&self) -> Result<(), String> {
        self.raft.runtime_config().elect(false);
        let mut rounds: u32 = 0;
        loop {
            match self.survey(true).await {
                Decision::Learn { vote, target } => {
                    self.promise(vote).await?;
                    self.gate.let_entries_in();
                    self.say_ready(vote).await;
                    if self.reached(target).await {
                        break;
                    }
                }
                Decision::Wait(missing) => {
                    if rounds.is_multiple_of(ROUNDS_SAID) {
                        tracing::warn!(missing, "T3111 data-lost: waiting for the other nodes");
                    }
                    rounds = rounds.saturating_add(1);
                    tokio::time::sleep(ROUND_PAUSE).await;
                }
                Decision::Fresh | Decision::Lost => unreachable!("a node that knows is not asked again"),
            }
        }
        self.marker.clear().map_err(|error| self.unwritable(&error))?;
        self.raft.runtime_config().elect(true);
        tracing::info!(node = self.node, "this node holds everything again, and votes");
        Ok(())
    }

    /// Makes the leader's vote durable here, so that no older leader is listened to.
    async fn promise(&self, vote: Vote) -> Result<(), String> {
        let nothing = AppendEntriesRequest::<Types> {
            vote,
            prev_log_id: None,
            entries: Vec::new(),
            leader_commit: None,
        };
        self.raft.append_entries(nothing).await.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Asks the leader to begin. Should it not hear, everything is asked anew.
    async fn say_ready(&self, vote: Vote) {
        let question = Question { node: self.node, lost: true, ready: true };
        let leader = vote.leader_id.node_id;
        if let Some(peer) = self.initial.get(&leader) {
            self.ask(leader, peer, &question).await;
        }
    }

    async fn reached(&self, target: u64) -> bool {
        let mut applied = self.machine.applied();
        let reached = applied.wait_for(|applied| applied.is_some_and(|id| id.index >= target));
        matches!(tokio::time::timeout(LEARN_PATIENCE, reached).await, Ok(Ok(_)))
    }

    /// One round of questions.
    async fn survey(&self, lost: bool) -> Decision {
        let question = Question { node: self.node, lost, ready: false };
        let others = self.initial.iter().filter(|(node, _)| **node != self.node);
        let mut asked: FuturesUnordered<_> =
            others.map(|(node, peer)| self.ask(*node, peer, &question)).collect();
        let initial: BTreeSet<u64> = self.initial.keys().copied().collect();
        let mut answers = BTreeMap::new();
        while let Some((node, answer)) = asked.next().await {
            // Of nodes that are not there the refusal comes at once; only a silent one is waited for.
            answers.extend(answer.map(|answer| (node, answer)));
        }
        decide(self.node, &initial, lost, &answers)
    }

    /// One node's answer: `None` if it gave none, `Some(None)` if its program knows no such question.
    async fn ask(&self, node: u64, peer: &Peer, question: &Question) -> (u64, Option<Option<Standing>>) {
        let asked = async {
            let channel = self.channels.lazy(node, &peer.address, Class::Leader).ok()?;
            let caller = Caller::new(&self.cluster_id, node).ok()?;
            let request: Request<Blob> = caller.request(Blob { data: codec::encode(question).into() });
            match RaftClient::new(channel).standing(request).await {
                Ok(answer) => codec::decode(&answer.get_ref().data).ok().map(Some),
                Err(status) if status.code() == Code::Unimplemented => Some(None),
                Err(_) => None,
            }
        };
        (node, tokio::time::timeout(ANSWER_DEADLINE, asked).await.unwrap_or(None))
    }

    fn unwritable(&self, error: &std::io::Error) -> String {
        identity::not_written(&self.data, error)
    }
}

/// Answers those who ask.
pub(crate) struct Respondent {
    pub(crate) raft: Raft,
    pub(crate) machine: StateMachine,
    pub(crate) leadership: LeadershipWatch,
    pub(crate) submitter: Submitter,
}

impl Respondent {
    /// Where this node stands.
    ///
    /// # Errors
    /// The engine has stopped.
    pub(crate) async fn answer(&self, question: &Question) -> Result<Standing, String> {
        let asker = question.node;
        let looked = self.raft.with_raft_state(|state| {
            let last_log = state.log_ids.last().map(|id| id.index);
            let voters = state.membership_state.effective().voter_ids().collect();
            (*state.vote_ref(), last_log, voters)
        });
        let (vote, last_log, voters): (Vote, Option<u64>, BTreeSet<u64>) =
            looked.await.map_err(|error| error.to_string())?;
        let now = self.leadership.get();
        let leads = now.ready_here && now.term.0 == vote.leader_id.term;
        if leads && question.lost {
            let allowed = self.raft.trigger().allow_next_revert(&asker, true).await;
            let allowed = allowed.map_err(|error| error.to_string())?;
            if let Err(error) = allowed {
                tracing::warn!(%error, asker, "a node without data is no member");
            }
            if question.ready {
                self.append_something();
            }
        }
        let announced =
            self.machine.read(|state| state.members().iter().any(|(node, _)| *node == NodeId(asker)));
        let had_data = announced || self.has_acknowledged(asker);
        Ok(Standing { vote, last_log, leads, voters, had_data })
    }

    /// openraft believes that the node still holds what it acknowledged, and has nothing to say to it before
    /// there is a new entry. This one is refused on every replica, since no job has such a name.
    fn append_something(&self) {
        let refused = Command::Job(job::Command::Delete { name: String::new() });
        let payload = codec::encode(&Envelope { stamp: None, command: refused });
        let submitter = self.submitter.clone();
        tokio::spawn(async move {
            // Should it fail, the node asks again.
            let _ = submitter.submit(payload.into()).await;
        });
    }

    /// Whether that node has acknowledged anything to this leader.
    fn has_acknowledged(&self, node: u64) -> bool {
        self.acknowledged(node).is_some()
    }

    /// The last entry that a node has acknowledged to this one, if this one leads.
    pub(crate) fn acknowledged(&self, node: u64) -> Option<u64> {
        use openraft::async_runtime::WatchReceiver as _;
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let last = metrics.replication.as_ref().and_then(|all| all.get(&node).copied().flatten());
        last.map(|id| id.index)
    }
}
