//! What nodes of a parameter server are told, and what they have answered.
//!
//! What each is still to be told is derived from the state, in its order; a task for each node tells it, so that a slow one
//! delays only itself. What was answered goes into the log, many answers in one decision, and only then does a node get its
//! next order: whoever leads next goes on behind what stands there. Of what is not there the same may be told again, but
//! for a node that has not answered yet, on a connection that is still open.
//!
//! | module | holds |
//! |---|---|
//! | `assignment` | what one node is to be told now |
//! | `node` | the task of one node |
//! | `trouble` | a node that cannot be told, and when the log says so |

mod assignment;
mod node;
mod trouble;

use std::collections::BTreeMap;
use std::future::pending;
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tripod_backoff::Backoff;
use tripod_state::mindspore::cluster::{Echo, Incarnation, Order, Recipient};
use tripod_state::mindspore::{Decision, Member};
use tripod_state::{DomainId, State, Topic};

use self::assignment::{Assigned, Assignment};
use self::node::NodeTask;
use super::leader_term::LeaderTerm;
use crate::calls::Contents;

/// Answers that wait for their turn; beyond it, the tasks of nodes wait.
const ECHOES_WAITING_MAX: usize = 4_096;
/// Answers in one decision.
const ECHOES_MAX: usize = 4_096;
/// Between two attempts to have answers in the log.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));

/// A decision with answers that is on its way into the log; gives whose they were.
type Committing<'a> = Pin<Box<dyn Future<Output = Vec<Answered>> + Send + 'a>>;

/// All nodes of one job that are told something, or were.
struct Teller<'a> {
    led: &'a LeaderTerm,
    nodes: BTreeMap<Member, Told>,
    tasks: JoinSet<()>,
    /// How many there have been.
    begun: u64,
    answers: mpsc::Sender<Answered>,
}

/// A node has answered.
struct Answered {
    /// Whose connection it came on: a node that is lost and found has another task.
    task: u64,
    echo: Echo,
}

/// One node, as far as it was told.
struct Told {
    number: u64,
    incarnation: Incarnation,
    assigned: watch::Sender<Assigned>,
    /// What it was given last.
    orders: Vec<Order>,
    /// How many of its answers are in the log.
    answered: u64,
    task: AbortHandle,
}

/// Runs for as long as it is polled.
pub(super) async fn run(led: &LeaderTerm) {
    let mut changes = led.gateway.watch(Topic::Domain(DomainId::Mindspore, led.job));
    let (answers, mut answered) = mpsc::channel(ECHOES_WAITING_MAX);
    let mut teller = Teller { led, nodes: BTreeMap::new(), tasks: JoinSet::new(), begun: 0, answers };
    let mut committing: Option<Committing<'_>> = None;
    teller.look().await;
    loop {
        let mut batch = Vec::new();
        let commits = committing.is_some();
        let committed = async {
            match &mut committing {
                Some(committing) => committing.await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            answers = committed => {
                committing = None;
                teller.note(&answers);
                teller.look().await;
            }
            // While a decision is on its way the answers gather for the next one.
            _ = answered.recv_many(&mut batch, ECHOES_MAX), if !commits => {
                committing = Some(Box::pin(commit(led, batch)));
            }
            () = changes.changed() => teller.look().await,
        }
    }
}

/// Has answers in the log, however long it takes: what is there twice does no harm.
async fn commit(led: &LeaderTerm, answers: Vec<Answered>) -> Vec<Answered> {
    let echoes: Vec<Echo> = answers.iter().map(|answered| answered.echo).collect();
    let mut backoff = BACKOFF;
    while !led.decide(Decision::Echoed { echoes: echoes.clone() }).await {
        backoff.rest().await;
    }
    answers
}

impl Teller<'_> {
    /// The answers are in the log.
    fn note(&mut self, answers: &[Answered]) {
        for Answered { task, echo } in answers {
            let told = self.nodes.get_mut(&echo.member);
            if let Some(told) = told.filter(|told| told.number == *task) {
                told.answered += 1;
                // Whatever is to be told now is given anew, the same once more if the state says so.
                told.orders.clear();
            }
        }
    }

    /// Gives every node what it is to be told now.
    async fn look(&mut self) {
        while self.tasks.try_join_next().is_some() {}
        // A copy costs little, and apply does not wait while all nodes are looked at.
        let (scope, knows_some) = (self.led.scope(), !self.nodes.is_empty());
        let has_nodes = |state: &State| state.cluster(scope).is_ok_and(|view| view.generation > 0);
        let copied = |state: &State| (knows_some || has_nodes(state)).then(|| state.clone());
        let Some(state) = self.led.look(copied).await else { return };
        let living: BTreeMap<Member, Incarnation> = state.cluster_members(self.led.job).into_iter().collect();
        let mut recipients: BTreeMap<Member, Recipient> =
            state.cluster_orders(self.led.job).into_iter().map(|node| (node.member, node)).collect();
        self.nodes.retain(|member, told| {
            let now = recipients.get(member).map(|node| node.incarnation).or(living.get(member).copied());
            let stays = now == Some(told.incarnation);
            if !stays {
                told.task.abort();
            }
            stays
        });
        for (member, told) in &mut self.nodes {
            if !recipients.contains_key(member) && !told.orders.is_empty() {
                told.orders.clear();
                told.assign(None);
            }
        }
        let mut contents = Contents::new(&state, self.led.scope());
        while let Some((_, recipient)) = recipients.pop_first() {
            self.give(recipient, &mut contents);
        }
    }

    fn give(&mut self, recipient: Recipient, contents: &mut Contents<'_>) {
        let member = recipient.member;
        if let Some(told) = self.nodes.get(&member)
            && told.orders == recipient.orders
        {
            return;
        }
        let orders = recipient.orders.clone();
        let Some(first) = orders.first().and_then(|order| contents.call(member, *order)) else { return };
        let (led, tasks, answers, begun) = (self.led, &mut self.tasks, &self.answers, &mut self.begun);
        let told = self.nodes.entry(member).or_insert_with(|| {
            *begun += 1;
            let number = *begun;
            let (assigned, receiver) = watch::channel(Assigned::default());
            let incarnation = recipient.incarnation;
            let node = NodeTask::new(led, (number, recipient), receiver, answers.clone());
            let task = tasks.spawn(node.run());
            Told { number, incarnation, assigned, orders: Vec::new(), answered: 0, task }
        });
        told.orders.clone_from(&orders);
        told.assign(Some(Assignment { orders, first }));
    }
}

impl Told {
    fn assign(&self, now: Option<Assignment>) {
        self.assigned.send_replace(Assigned::after(self.answered, now));
    }
}
