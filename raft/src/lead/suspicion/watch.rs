//! Keeps the connection to the leader, and does what is to be done when it has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use openraft::raft::TransferLeaderRequest;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use tripod_proto::tripod::peer::v1::SuspectRequest;

use super::judge::{Budget, End, turn};
use super::{FINDING_TIME, Known, LeaderTerm, Suspicion};
use crate::base::types::Vote;
use crate::lead::held_votes::is_quorum;
use crate::lead::leader_signs::LeaderSigns;
use crate::lead::leadership::{Leadership, LeadershipWatch};
use crate::peers::calls::{Destination, PeerCalls};
use crate::peers::channels::Class;
use crate::peers::gate::Gate;

/// Between two attempts to connect to the leader.
const CONNECT_PAUSE: Duration = Duration::from_millis(100);
/// How often a port is asked whether it refuses: a process that ends closes its connections before it closes its port.
const ASKED_MAX: u32 = 10;
/// From one of these to the next.
const ASK_PAUSE: Duration = Duration::from_millis(4);
/// So many in a row must be refused. One refusal may be the word of a firewall about a connection that was.
const REFUSALS: u32 = 2;
/// How long the other voters may take to answer. They may take [`FINDING_TIME`] to find out.
const ANSWER_TIME: Duration = FINDING_TIME.saturating_add(Duration::from_millis(50));
/// How long those are waited for whose answer a majority does not need: their logs may be longer.
const LATE_ANSWER_TIME: Duration = Duration::from_millis(10);
/// How long one that stands has until the next one does.
const TURN_TIME: Duration = Duration::from_millis(40);
/// So many stand. The second one, because the first one's disk may be the slow one, or its log have been overtaken
/// while it was asked.
const TURNS_MAX: u32 = 2;
/// Suspicions in [`BUDGET_TIME`]. More of them are no accident of one process, and the timers are as good.
pub(super) const SUSPICIONS_MAX: usize = 6;
const BUDGET_TIME: Duration = Duration::from_secs(60);
/// How long nobody is suspected after a leader that turned out to live.
const REST_TIME: Duration = Duration::from_secs(60);

/// Watches the leader.
pub(crate) struct Watcher {
    suspicion: Suspicion,
    calls: PeerCalls,
    leadership: LeadershipWatch,
    heard: LeaderSigns,
    gate: Gate,
    budget: Budget,
    /// The last term whose leader was suspected.
    suspected: Option<u64>,
    /// When this node lost the leader whom it watches.
    lost_at: Option<Instant>,
    /// Until when nobody is suspected.
    rests_until: Option<Instant>,
}

impl Watcher {
    pub(crate) fn new(
        suspicion: Suspicion,
        calls: PeerCalls,
        leadership: LeadershipWatch,
        heard: LeaderSigns,
        gate: Gate,
    ) -> Self {
        let budget = Budget::new(SUSPICIONS_MAX, BUDGET_TIME);
        let (suspected, lost_at, rests_until) = (None, None, None);
        Self { suspicion, calls, leadership, heard, gate, budget, suspected, lost_at, rests_until }
    }

    /// Watches whoever leads, until the node stops.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        tokio::select! {
            () = self.watch_leaders() => {}
            () = stop.cancelled() => {}
        }
    }

    async fn watch_leaders(&mut self) {
        let node = self.calls.node();
        let mut leadership = self.leadership.subscribe();
        loop {
            let now = leadership.wait_for(|now| elsewhere(node, now).is_some()).await;
            let Ok(Some(leader)) = now.map(|now| elsewhere(node, &now)) else { return };
            let another = async {
                let now = leadership.wait_for(|now| elsewhere(node, now) != Some(leader)).await;
                now.is_ok()
            };
            tokio::select! {
                biased;
                is_there = another => if !is_there {
                    return;
                },
                () = self.watch(leader) => {}
            }
            self.withdraw();
            self.lost_at = None;
        }
    }

    /// Watches one leader, for as long as nobody else leads: who calls drops this then.
    async fn watch(&mut self, leader: LeaderTerm) {
        loop {
            if let Some(address) = self.address(leader).await
                && let Ok(connection) = self.calls.idle(&address).await
            {
                self.withdraw();
                let heard = async {
                    self.rest_if_heard(leader).await;
                    std::future::pending::<()>().await;
                };
                tokio::select! {
                    () = connection.ended() => {}
                    () = heard => {}
                }
                if self.is_gone(leader, &address).await && self.may_suspect(leader) {
                    self.suspect(leader).await;
                }
            }
            sleep(CONNECT_PAUSE).await;
        }
    }

    /// Where the leader is reached, if this node is a voter, whose word counts.
    async fn address(&self, leader: LeaderTerm) -> Option<String> {
        let known = self.suspicion.look().await.ok()?;
        let address = known.addresses.get(&leader.leader)?;
        known.voters().contains(&self.calls.node()).then(|| address.clone())
    }

    /// Whether the port at which the leader was reached refuses, and the leader has nothing open to this node.
    async fn is_gone(&self, leader: LeaderTerm, address: &str) -> bool {
        let mut refusals = 0;
        for _ in 0..ASKED_MAX {
            let is_refused = self.calls.is_refused(address).await;
            refusals = if is_refused { refusals + 1 } else { 0 };
            if refusals >= REFUSALS && !self.heard.is_streaming(leader.term) {
                return true;
            }
            sleep(ASK_PAUSE).await;
        }
        false
    }

    fn may_suspect(&mut self, leader: LeaderTerm) -> bool {
        let now = Instant::now();
        self.suspected != Some(leader.term)
            && self.gate.check_votes().is_ok()
            && self.rests_until.is_none_or(|until| until <= now)
            && self.budget.take(now)
    }

    async fn suspect(&mut self, leader: LeaderTerm) {
        self.suspected = Some(leader.term);
        self.lost_at = Some(Instant::now());
        self.suspicion.lost.send_replace(Some(leader));
        let node = self.calls.node();
        let LeaderTerm { leader: suspect, term } = leader;
        match self.replace(leader).await {
            Ok(()) => tracing::info!(node, leader = suspect, term, "the leader's process has ended"),
            Err(why) => tracing::info!(node, leader = suspect, term, why, "the leader is not replaced early"),
        }
    }

    /// No leader is lost.
    fn withdraw(&self) {
        self.suspicion.lost.send_if_modified(|lost| lost.take().is_some());
    }

    /// Waits until the leader that this node had lost is heard, and rests from then on. Ends at once if it had lost
    /// none.
    async fn rest_if_heard(&mut self, leader: LeaderTerm) {
        while let Some(lost_at) = self.lost_at {
            if self.heard.heard_at(leader.term).is_some_and(|heard_at| heard_at > lost_at) {
                self.lost_at = None;
                self.rests_until = Some(Instant::now() + REST_TIME);
                tracing::warn!(
                    node = self.calls.node(),
                    leader = leader.leader,
                    "T3301 leader-lives: connections to the leader were reset and refused while it led; look at \
                     firewalls between the peer addresses"
                );
                return;
            }
            sleep(CONNECT_PAUSE).await;
        }
    }

    /// Asks the others, and stands for election if it is this node's turn.
    ///
    /// # Errors
    /// Why this node does not, in words.
    async fn replace(&self, leader: LeaderTerm) -> Result<(), String> {
        let node = self.calls.node();
        let known = self.suspicion.look().await?;
        known.check(node, leader).map_err(|status| status.message().to_owned())?;
        let agreeing = self.ask(&known, leader).await;
        if !is_quorum(&known.quorums_of, &agreeing.keys().copied().collect()) {
            return Err(format!("only nodes {:?} have lost it", agreeing.keys().collect::<Vec<_>>()));
        }
        let standing = agreeing.into_iter().filter_map(|(node, end)| Some((node, end?))).collect();
        match turn(node, &standing) {
            Some(0) => self.stand(leader, |vote| *vote == leader.vote()).await,
            Some(turn) if turn < TURNS_MAX => {
                sleep(TURN_TIME * turn).await;
                // Whoever stood before has not been elected, as far as is known here.
                self.stand(leader, |vote| *vote == leader.vote() || !vote.committed).await
            }
            _ => Ok(()),
        }
    }

    /// Who agrees that the leader is lost, and where their logs end if they stand for election.
    async fn ask(&self, known: &Known, leader: LeaderTerm) -> BTreeMap<u64, Option<End>> {
        let node = self.calls.node();
        let mut agreeing = BTreeMap::from([(node, self.suspicion.candidacy(known))]);
        let others = known.voters().into_iter().filter(|voter| *voter != node && *voter != leader.leader);
        let mut asked: FuturesUnordered<_> = others.map(|voter| self.ask_one(known, voter, leader)).collect();
        let mut until = Instant::now() + ANSWER_TIME;
        while let Ok(Some(answer)) = timeout_at(until, asked.next()).await {
            agreeing.extend(answer);
            let nodes: BTreeSet<u64> = agreeing.keys().copied().collect();
            if is_quorum(&known.quorums_of, &nodes) {
                until = until.min(Instant::now() + LATE_ANSWER_TIME);
            }
        }
        agreeing
    }

    /// `None`: it does not agree, or does not say.
    async fn ask_one(&self, known: &Known, voter: u64, leader: LeaderTerm) -> Option<(u64, Option<End>)> {
        let address = known.addresses.get(&voter)?;
        let to = Destination { node: voter, address, class: Class::Vote, deadline: ANSWER_TIME };
        let question = SuspectRequest { node: self.calls.node(), leader: leader.leader, term: leader.term };
        let asked =
            self.calls.call(to, question, |mut client, request| async move { client.suspect(request).await });
        let answer = asked.await.ok().filter(|answer| answer.agrees)?;
        let end = answer.end.map(|end| End { term: end.term, node: end.node, index: end.index });
        Some((voter, end))
    }

    /// Stands for election as if the lost leader had handed over to this node.
    ///
    /// # Errors
    /// The vote here is not one that may be replaced, the leader is heard, or the engine does not do it.
    async fn stand(&self, leader: LeaderTerm, may_replace: impl Fn(&Vote) -> bool) -> Result<(), String> {
        let known = self.suspicion.look().await?;
        if !may_replace(&known.vote) {
            return Err(format!("the vote here is {} by now", known.vote));
        }
        if self.heard.is_streaming(leader.term) {
            return Err("it is heard again".to_owned());
        }
        // Lets voters answer within their leases, and waits until all that this node has is on its disk.
        let request = TransferLeaderRequest::new(known.vote, self.calls.node(), known.last_log_id);
        let stood = self.suspicion.raft.handle_transfer_leader(request).await;
        stood.map_err(|fatal| fatal.to_string())?.map_err(|refused| refused.to_string())
    }
}

/// The leader, if it is not this node.
fn elsewhere(node: u64, now: &Leadership) -> Option<LeaderTerm> {
    let leader = now.leader.filter(|leader| leader.0 != node)?;
    Some(LeaderTerm { leader: leader.0, term: now.term.0 })
}
