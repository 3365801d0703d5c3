//! Asks the others, waits, and opens the gate; and the other side, which answers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use tonic::Code;
use tripod_state::ids::NodeId;
use tripod_state::{Command, job};

use super::survey::{Decision, PeerState, Question, counted, decide, named};
use super::{Acknowledged, Forming, Marker};
use crate::apply::engine::{Engine, Raft};
use crate::apply::state_machine::StateMachine;
use crate::base::codec;
use crate::base::types::{Peer, Vote};
use crate::disk::identity;
use crate::lead::leadership::LeadershipWatch;
use crate::lead::submit::Submitter;
use crate::peers::calls::{Destination, PeerCalls};
use crate::peers::channels::Class;
use crate::peers::gate::Gate;
use crate::peers::{auth, blob};

/// How long one answer may take.
const ANSWER_DEADLINE: Duration = Duration::from_secs(2);
/// Between two rounds of questions. Every node asks at its first start, so this delays the first leader.
const ROUND_PAUSE: Duration = Duration::from_millis(50);
/// How long to learn before the others are asked anew: what was to be learned may never be committed.
const LEARN_PATIENCE: Duration = Duration::from_secs(10);
/// Rounds in vain after which the log says what is missing.
const ROUNDS_SAID: u32 = 100;
/// The first of them at a first start. The others come one after the other, which takes a while and is no trouble.
const ROUNDS_FIRST_SAID: u32 = 20;

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
pub(crate) struct Newcomer<E = Raft> {
    pub(crate) calls: PeerCalls,
    /// For the texts that an operator reads.
    pub(crate) data: PathBuf,
    pub(crate) marker: Marker,
    /// The voters of the first start.
    pub(crate) initial: BTreeMap<u64, Peer>,
    pub(crate) engine: E,
    pub(crate) machine: StateMachine,
    pub(crate) gate: Gate,
    pub(crate) forming: Forming,
}

impl<E: Engine> Newcomer<E> {
    /// What this node must ask before it takes part, given whether it has no log at all.
    pub(crate) fn must_ask(&self, pristine: bool) -> Asked {
        if self.marker.is_set() {
            return Asked::HowToReturn;
        }
        // A node that is not one of the first is made a voter by a command, when it has caught up.
        if pristine && self.initial.contains_key(&self.calls.node()) {
            Asked::WhetherLost
        } else {
            Asked::Nothing
        }
    }

    /// Asks until this node may take part, and opens the gate. `form` is done at a first start.
    ///
    /// # Errors
    /// This node can never take part, or its disk fails; with what to do.
    pub(crate) async fn run(
        self,
        asked: Asked,
        form: impl AsyncFnOnce() -> Result<(), String>,
    ) -> Result<(), String> {
        match asked {
            Asked::Nothing => {}
            Asked::WhetherLost if !self.was_lost().await => {
                self.gate.open();
                return form().await;
            }
            Asked::WhetherLost => {
                self.marker.set().map_err(|error| self.unwritable(&error))?;
                tracing::warn!(
                    node = self.calls.node(),
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
        let mut rounds: u32 = 0;
        loop {
            let decision = self.survey(false).await.0;
            rounds = rounds.saturating_add(1);
            let says = rounds % ROUNDS_SAID == ROUNDS_FIRST_SAID;
            match decision {
                Decision::Lost | Decision::Fresh => {
                    self.forming.done();
                    return decision == Decision::Lost;
                }
                Decision::Forming(silent) => {
                    if says {
                        tracing::info!(node = self.calls.node(), "forming: waiting for {}", counted(&silent));
                    }
                    self.forming.waits_for(silent);
                    tokio::time::sleep(ROUND_PAUSE).await;
                }
                Decision::Wait(missing) => {
                    self.forming.done();
                    if says {
                        tracing::warn!(
                            missing,
                            "waiting for the other nodes; those that answer have other members than --initial names: if \
                             members were replaced since the first start, empty the data directory and start this node \
                             with `tripod server --join` instead of `--initial`"
                        );
                    }
                    tokio::time::sleep(ROUND_PAUSE).await;
                }
                Decision::Learn { .. } | Decision::Strangers(_) => {
                    unreachable!("only a node that lost its data")
                }
            }
        }
    }

    /// Takes everything from the others.
    async fn restore(&self) -> Result<(), String> {
        self.engine.stand_for_election(false);
        let (mut rounds, mut in_vain): (u32, u32) = (0, 0);
        loop {
            let (decision, places) = self.survey(true).await;
            match decision {
                Decision::Learn { vote, target } => {
                    self.engine.hold_vote(vote).await?;
                    self.gate.let_entries_in();
                    self.say_ready(vote, &places).await;
                    if self.reached(target).await {
                        break;
                    }
                }
                Decision::Strangers(voters) => {
                    // One that is where a node of the first start was may be about to start.
                    in_vain += 1;
                    if in_vain >= ROUNDS_SAID {
                        return Err(self.replaced(&voters));
                    }
                    tokio::time::sleep(ROUND_PAUSE).await;
                }
                Decision::Wait(missing) => {
                    if rounds.is_multiple_of(ROUNDS_SAID) {
                        tracing::warn!(missing, "T3111 data-lost: waiting for the other nodes");
                    }
                    rounds = rounds.saturating_add(1);
                    tokio::time::sleep(ROUND_PAUSE).await;
                }
                Decision::Fresh | Decision::Lost | Decision::Forming(_) => {
                    unreachable!("a node that knows is not asked again")
                }
            }
        }
        self.marker.clear().map_err(|error| self.unwritable(&error))?;
        self.engine.stand_for_election(true);
        tracing::info!(node = self.calls.node(), "this node holds everything again, and votes");
        Ok(())
    }

    /// Asks the leader to begin. Should it not hear, everything is asked anew.
    async fn say_ready(&self, vote: Vote, places: &BTreeMap<u64, Peer>) {
        let question = Question { node: self.calls.node(), lost: true, ready: true };
        let leader = vote.leader_id.node_id;
        if let Some(peer) = places.get(&leader) {
            self.ask(leader, peer, &question).await;
        }
    }

    async fn reached(&self, target: u64) -> bool {
        let mut applied = self.machine.applied();
        let reached = applied.wait_for(|applied| applied.is_some_and(|id| id.index >= target));
        matches!(tokio::time::timeout(LEARN_PATIENCE, reached).await, Ok(Ok(_)))
    }

    /// One round of questions: what follows from the answers, and where those are who gave them.
    async fn survey(&self, lost: bool) -> (Decision, BTreeMap<u64, Peer>) {
        let question = Question { node: self.calls.node(), lost, ready: false };
        let others = self.initial.iter().filter(|(node, _)| **node != self.calls.node());
        let mut asked: FuturesUnordered<_> =
            others.map(|(node, peer)| self.ask_at(*node, peer, &question)).collect();
        let initial: BTreeSet<u64> = self.initial.keys().copied().collect();
        let (mut answers, mut places) = (BTreeMap::new(), BTreeMap::new());
        while let Some((node, peer, answer)) = asked.next().await {
            // Of nodes that are not there the refusal comes at once; only a silent one is waited for.
            let standing = match answer {
                Said::Standing(standing) => Some(standing),
                Said::TooOld => None,
                Said::Another(_) | Said::Nothing => continue,
            };
            answers.insert(node, standing);
            places.insert(node, peer.clone());
        }
        (decide(self.calls.node(), &initial, lost, &answers), places)
    }

    /// The answer of `node`, or of whoever has come to its place since, and whose it is.
    async fn ask_at<'a>(&self, node: u64, peer: &'a Peer, question: &Question) -> (u64, &'a Peer, Said) {
        match self.ask(node, peer, question).await {
            Said::Another(other) if other != self.calls.node() => {
                (other, peer, self.ask(other, peer, question).await)
            }
            said => (node, peer, said),
        }
    }

    async fn ask(&self, node: u64, peer: &Peer, question: &Question) -> Said {
        let to =
            Destination { node, address: &peer.address, class: Class::Leader, deadline: ANSWER_DEADLINE };
        let asked = self
            .calls
            .call(to, blob(question), |mut client, request| async move { client.standing(request).await });
        match asked.await {
            Ok(answer) => codec::decode(&answer.data).map_or(Said::Nothing, Said::Standing),
            Err(status) if status.code() == Code::Unimplemented => Said::TooOld,
            Err(status) => auth::refused_by(&status).map_or(Said::Nothing, Said::Another),
        }
    }

    /// What an operator is told of a node that lost its data and can never ask all others.
    fn replaced(&self, voters: &BTreeSet<u64>) -> String {
        let (node, data) = (self.calls.node(), self.data.display());
        format!(
            "T3111 data-lost: node {node} has lost its data, and before it votes again it must ask all other voters, \
             but it does not find {}: --initial names the nodes of the first start, and members were replaced \
             since. Start those that are down. If all run, this machine can only come back as a new node: \
             `tripod member remove {node}`, `mv {data} {data}.lost`, start it with `tripod server --join HOST:PORT` (the \
             client address of a member) instead of --node and --initial, and when it has caught up `tripod member \
             promote ID`, where ID is the one that it got",
            named(voters)
        )
    }

    fn unwritable(&self, error: &std::io::Error) -> String {
        identity::not_written(&self.data, error)
    }
}

/// What came of a question.
enum Said {
    Standing(PeerState),
    /// Its program knows no such question.
    TooOld,
    /// That address is this node's now.
    Another(u64),
    Nothing,
}

/// Answers those who ask.
pub(crate) struct Respondent {
    pub(crate) raft: Raft,
    pub(crate) machine: StateMachine,
    pub(crate) leadership: LeadershipWatch,
    pub(crate) submitter: Submitter,
    pub(crate) acknowledged: Acknowledged,
}

impl Respondent {
    /// Where this node stands.
    ///
    /// # Errors
    /// The engine has stopped.
    pub(crate) async fn answer(&self, question: &Question) -> Result<PeerState, String> {
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
        let had_data = announced || self.acknowledged.by(asker).is_some();
        Ok(PeerState { vote, last_log, leads, voters, had_data })
    }

    /// openraft believes that the node still holds what it acknowledged, and has nothing to say to it before
    /// there is a new entry. This one is refused on every replica, since no job has such a name.
    fn append_something(&self) {
        let refused = Command::Job(job::Command::Delete { name: String::new() });
        let submitter = self.submitter.clone();
        tokio::spawn(async move {
            // Should it fail, the node asks again.
            let _ = submitter.propose(refused).await;
        });
    }
}
