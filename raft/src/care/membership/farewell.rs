//! How a node learns that it was removed: from its own log, if the entry still reached it, or from the others,
//! who refuse its calls. Whoever answers at an address of its cluster can say so, also one that came after the node
//! that it asks for.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tripod_state::ids::NodeId;

use crate::apply::engine::{Engine, Raft};
use crate::apply::state_machine::StateMachine;
use crate::base::local_identity::LocalIdentity;
use crate::care::rejoin::Question;
use crate::lead::leadership::LeadershipWatch;
use crate::peers::auth;
use crate::peers::blob;
use crate::peers::calls::{Destination, PeerCalls};
use crate::peers::channels::Class;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The same while a change is under way that takes this node out, and for how long nothing may come then.
const LEAVING_LOOK_EVERY: Duration = Duration::from_millis(50);
const LEAVING_PATIENCE: Duration = Duration::from_millis(100);
/// How long one answer may take.
const ANSWER_DEADLINE: Duration = Duration::from_secs(1);

/// Finds out.
pub(crate) struct Farewell<E = Raft> {
    pub(crate) calls: PeerCalls,
    pub(crate) engine: E,
    pub(crate) machine: StateMachine,
    pub(crate) leadership: LeadershipWatch,
    /// All that a node without data knows: the voters of the first start, or the members when it joined.
    pub(crate) initial: BTreeMap<u64, String>,
    /// For so long nothing may come before the others are asked.
    pub(crate) patience: Duration,
    /// Gets what to tell the operator.
    pub(crate) told: watch::Sender<Option<String>>,
}

impl<E: Engine> Farewell<E> {
    /// Looks until the node stops, or was removed.
    pub(crate) async fn run(self, stop: CancellationToken) {
        tokio::select! {
            text = self.removed() => {
                // Whether that is trouble says whoever ends the process: who was removed on purpose has none.
                tracing::info!(node = self.calls.node(), "{text}");
                self.told.send_replace(Some(text));
            }
            () = stop.cancelled() => {}
        }
    }

    async fn removed(&self) -> String {
        let LocalIdentity { node, cluster_id } = self.calls.own();
        let mut quiet = (self.machine.applied_index(), Instant::now());
        loop {
            let leaves = self.machine.read(|state| state.registry().takes_out(NodeId(*node)));
            let (look_every, patience) =
                if leaves { (LEAVING_LOOK_EVERY, LEAVING_PATIENCE) } else { (LOOK_EVERY, self.patience) };
            tokio::time::sleep(look_every).await;
            if self.machine.read(|state| state.registry().is_removed(NodeId(*node))) {
                return auth::removed(cluster_id, *node);
            }
            // Who gets entries is a member. That a leader was known says nothing: one that calls no more is not
            // forgotten.
            let applied = self.machine.applied_index();
            if self.leadership.leads_here() || applied != quiet.0 {
                quiet = (applied, Instant::now());
            } else if quiet.1.elapsed() >= patience {
                if let Some(text) = self.ask_others().await {
                    return text;
                }
                quiet.1 = Instant::now();
            }
        }
    }

    /// What the leader says, if it knows that this node was removed; if it says nothing, what the others say; and if
    /// none of those says anything, whoever is where others were.
    async fn ask_others(&self) -> Option<String> {
        let this = self.calls.node();
        let mut others = self.initial.clone();
        others.extend(self.engine.addresses());
        others.remove(&this);
        if let Some((leader, address)) =
            self.leadership.get().leader.and_then(|leader| others.remove_entry(&leader.0))
            && let Some(word) = self.ask(leader, &address).await
        {
            return word.told();
        }
        let words = self.ask_all(others.iter().map(|(node, address)| (*node, address.as_str()))).await;
        if !words.is_empty() {
            return words.into_iter().find_map(Word::told);
        }
        let mut places = self.machine.met().addresses();
        places.retain(|address, node| *node != this && !others.values().any(|other| other == address));
        let words = self.ask_all(places.iter().map(|(address, node)| (*node, address.as_str()))).await;
        words.into_iter().find_map(Word::told)
    }

    /// The words of those who gave one.
    async fn ask_all(&self, nodes: impl Iterator<Item = (u64, &str)>) -> Vec<Word> {
        let asked = nodes.map(|(node, address)| self.ask(node, address));
        futures::future::join_all(asked).await.into_iter().flatten().collect()
    }

    /// One node's word; `None` if it gave none.
    async fn ask(&self, node: u64, address: &str) -> Option<Word> {
        let to = Destination { node, address, class: Class::Leader, deadline: ANSWER_DEADLINE };
        let question = Question { node: self.calls.node(), lost: false, ready: false };
        let asked = self
            .calls
            .call(to, blob(&question), |mut client, request| async move { client.standing(request).await });
        match asked.await {
            Ok(_) => Some(Word::Member),
            Err(status) if auth::says_end(&status) => Some(Word::Removed(status.message().to_owned())),
            Err(_) => None,
        }
    }
}

/// What another node takes this one for.
enum Word {
    Member,
    /// With what to tell the operator.
    Removed(String),
}

impl Word {
    fn told(self) -> Option<String> {
        match self {
            Self::Member => None,
            Self::Removed(text) => Some(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::{LogIndex, Term};
    use tripod_state::member::{self, Change, Listed};
    use tripod_state::{ApplyContext, Command, Envelope, State};
    use tripod_wait::within;

    use super::*;
    use crate::care::rejoin::PeerState;
    use crate::test_care::{IdleEngine, calls_of, machine, serve_peer};
    use crate::test_cluster::network::Exchange;
    use crate::test_cluster::once;

    /// Far longer than anything here takes but an election.
    const PATIENCE: Duration = Duration::from_secs(24);
    /// The node that was removed.
    const REMOVED: u64 = 3;

    fn begin(state: &mut State, change: Change) {
        let command = Command::Member(member::Command::Begin { change, by: "test".to_owned() });
        let context = ApplyContext { index: LogIndex(1), term: Term(1), now_ms: state.now_ms() };
        state.apply(&context, Envelope { stamp: None, command }).reply.unwrap();
    }

    /// What a node hears of which the others say that it was removed, and after how long. Its own log ends with the
    /// beginning of a change, if there is one.
    async fn told(change: Option<Change>) -> (String, Duration) {
        let exchange = Exchange::new();
        let mut initial = BTreeMap::new();
        for node in 1..REMOVED {
            initial.insert(node, serve_peer(&exchange, node, PeerState::of_a_follower(), &[REMOVED]).await);
        }
        let machine = machine();
        machine.corrupt(|state| {
            let peer = |node: u64| initial.get(&node).cloned().unwrap_or_else(|| exchange.new_address());
            let listed =
                (1..=REMOVED).map(|node| Listed { node: NodeId(node), peer: peer(node), voter: true });
            state.follow_members(&listed.collect::<Vec<_>>());
            if let Some(change) = change {
                begin(state, change);
            }
        });
        let told = watch::Sender::new(None);
        let farewell = Farewell {
            calls: calls_of(REMOVED, &exchange),
            engine: IdleEngine::default(),
            machine,
            leadership: LeadershipWatch::without_leader(REMOVED),
            initial,
            patience: PATIENCE,
            told: told.clone(),
        };
        let began = Instant::now();
        within("word of the removal", farewell.run(CancellationToken::new())).await;
        let text = told.borrow().clone();
        (text.unwrap(), began.elapsed())
    }

    /// Calls that it has taken wait for entries that do not come any more. It does not wait for an election to be due
    /// before it asks why.
    #[test]
    fn who_is_taken_out_is_told_long_before_an_election_is_due() {
        once(async || {
            let (text, after) = told(Some(Change::Remove { node: NodeId(REMOVED) })).await;
            assert!(text.starts_with("T4201 node-removed: node 3 "), "{text}");
            assert!(after < Duration::from_secs(1), "{after:?}");
            let (_, after) = told(Some(Change::Demote { node: NodeId(REMOVED) })).await;
            assert!(after >= PATIENCE, "it asked after {after:?}, and has no reason to");
        });
    }
}
