//! The task on every node that hashes forks and tells the leader, and what the leader makes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tripod_state::State;
use tripod_state::ids::{LogIndex, NodeId};

use super::judge::{Finding, Judge};
use super::{Answer, Comparisons, Fingerprint, Report, Verdict};
use crate::apply::fork::Fork;
use crate::apply::state_machine::StateMachine;
use crate::base::advice;
use crate::base::error::ProposeError;
use crate::base::failure::Failure;
use crate::disk::Work;
use crate::lead::leader_link::LeaderLink;
use crate::peers::{blob, unblob};

/// How often a node looks whether its log rests, and asks again about what is still open.
const TICK: Duration = Duration::from_secs(5);
/// Ticks without a new entry after which the last state is compared although no period has begun: an idle
/// log would keep the last change from being compared.
const REST_TICKS: u32 = 3;

/// How long the leader may take to answer.
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

/// Compares. Clones are the same.
#[derive(Clone)]
pub(crate) struct Comparer {
    shared: Arc<Shared>,
}

struct Shared {
    node: u64,
    data: PathBuf,
    judge: Mutex<Judge>,
    told: Mutex<Reported>,
    failure: Failure,
    work: Work,
}

/// What was told of the comparisons so far.
#[derive(Debug, Default)]
struct Reported {
    comparisons: Comparisons,
    /// The nodes that the alarm is about, and the index where they were seen to differ.
    suspects: BTreeSet<u64>,
    suspected_at: u64,
}

impl Comparer {
    /// `data` is for the text that an operator reads.
    pub(crate) fn new(node: u64, data: PathBuf, failure: Failure, work: Work) -> Self {
        let (judge, told) = (Mutex::new(Judge::new(node)), Mutex::default());
        Self { shared: Arc::new(Shared { node, data, judge, told, failure, work }) }
    }

    /// What became of the comparisons so far.
    pub(crate) fn comparisons(&self) -> Comparisons {
        self.shared.told.lock().comparisons.clone()
    }

    /// Runs until the node stops.
    pub(crate) async fn run(self, machine: StateMachine, link: LeaderLink, stop: CancellationToken) {
        let Some(mut forks) = machine.take_forks() else { return };
        tokio::select! {
            () = self.work(&machine, &link, &mut forks) => {}
            () = stop.cancelled() => {}
        }
    }

    async fn work(&self, machine: &StateMachine, link: &LeaderLink, forks: &mut mpsc::Receiver<Fork>) {
        let mut leadership = link.leadership().subscribe();
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut resting_at, mut resting_for) = (0, 0);
        loop {
            tokio::select! {
                fork = forks.recv() => match fork {
                    Some(fork) => self.take(fork).await,
                    None => return,
                },
                _ = ticks.tick() => {
                    let applied = machine.applied_index();
                    resting_for = if applied == resting_at { resting_for + 1 } else { 0 };
                    resting_at = applied;
                    let newest = self.shared.judge.lock().newest_own();
                    if resting_for >= REST_TICKS
                        && newest.is_none_or(|newest| newest < applied)
                        && let Some(fork) = machine.fork()
                    {
                        self.take(fork).await;
                    }
                }
                changed = leadership.changed() => match changed {
                    Ok(()) => self.shared.judge.lock().unsettle(),
                    Err(_) => return,
                },
            }
            self.tell(link).await;
        }
    }

    /// Hashes a fork, where it disturbs nobody, and remembers what came out.
    async fn take(&self, fork: Fork) {
        let Fork { id, state, voters } = fork;
        // Dropping a fork whose original has moved on frees memory, which takes time as well.
        let Ok(digest) = self.shared.work.run(move || state.digest()).await else { return };
        let seen = Fingerprint { term: id.leader_id.term, digest };
        tracing::debug!(index = id.index, digest = format_args!("{digest:016x}"), "state hashed");
        self.shared.judge.lock().own(id.index, voters, seen);
        self.conclude(id.index);
    }

    /// Tells the leader of all states that nobody has judged, and takes in what it says.
    async fn tell(&self, link: &LeaderLink) {
        let now = link.leadership().get();
        if now.leader.is_none() || now.leader == Some(NodeId(self.shared.node)) {
            return;
        }
        let points = self.shared.judge.lock().unsettled();
        if points.is_empty() {
            return;
        }
        let (node, digest_version) = (self.shared.node, State::DIGEST_VERSION);
        let report = Report { node, digest_version, points };
        match ask(link, &report).await {
            Ok(answer) => self.take_answer(&report, answer),
            // The leader is gone, or is too old to compare: it is asked again.
            Err(error) => tracing::debug!(%error, "states not compared"),
        }
    }

    fn take_answer(&self, report: &Report, answer: Answer) {
        for (index, verdict) in answer.verdicts {
            let own = report.points.iter().find(|(known, _)| *known == index);
            let Some((_, own)) = own else { continue };
            match verdict {
                Verdict::Open => {}
                Verdict::Never => {
                    self.shared.judge.lock().settle(index);
                }
                Verdict::Agrees => self.agreed(index),
                Verdict::Diverged { majority, of } => self.stop(index, *own, majority, &of),
            }
        }
    }

    /// The leader's answer to another node.
    pub(crate) fn answer(&self, report: &Report) -> Answer {
        let comparable = report.digest_version == State::DIGEST_VERSION;
        let verdicts = report.points.iter().map(|(index, seen)| {
            if !comparable {
                return (*index, Verdict::Never);
            }
            self.shared.judge.lock().told(report.node, *index, *seen);
            self.conclude(*index);
            (*index, self.shared.judge.lock().verdict(report.node, *index))
        });
        Answer { verdicts: verdicts.collect() }
    }

    /// Acts on all that was said of an index.
    fn conclude(&self, index: u64) {
        let finding = self.shared.judge.lock().finding(index);
        match finding {
            Finding::Open => {}
            Finding::Agreed => self.agreed(index),
            Finding::Diverged { majority, of, others } => {
                if of.contains(&self.shared.node) {
                    self.agreed(index);
                }
                for (node, own) in others {
                    if node == self.shared.node {
                        self.stop(index, own, majority, &of);
                    } else {
                        self.suspect(index, BTreeSet::from([node]), || {
                            format!("the state of {}", differs(node, index, own, majority, &of))
                        });
                    }
                }
            }
            Finding::Split(said) => {
                // At the next index the node that a majority has named may have spoken before the others.
                if self.is_named(&said) {
                    return;
                }
                let nodes = said.keys().copied().collect();
                self.suspect(index, nodes, || {
                    let each = said.iter().map(|(node, seen)| format!("node {node} has {:016x}", seen.digest));
                    format!(
                        "at log index {index} the states differ, and no majority says which is right: {}; nobody \
                         is stopped: start the nodes that are down, their word decides",
                        each.collect::<Vec<_>>().join(", ")
                    )
                });
            }
        }
    }

    /// This node's own state is the majority's.
    fn agreed(&self, index: u64) {
        let all = matches!(self.shared.judge.lock().finding(index), Finding::Agreed);
        let first = self.shared.judge.lock().settle(index);
        let mut told = self.shared.told.lock();
        if first {
            told.comparisons.agreed += 1;
            told.comparisons.last = told.comparisons.last.max(LogIndex(index));
        }
        let said = |node: &u64| self.shared.judge.lock().has_said(*node, index);
        if all && index > told.suspected_at && told.suspects.iter().all(said) && !told.suspects.is_empty() {
            tracing::info!(index, "the states are equal again");
            told.suspects.clear();
            told.comparisons.alarm = None;
        }
    }

    /// Whether the alarm names a node by a majority's word, and the others are of one mind here.
    fn is_named(&self, said: &BTreeMap<u64, Fingerprint>) -> bool {
        let told = self.shared.told.lock();
        let others = said.iter().filter(|(node, _)| !told.suspects.contains(node));
        let minds: BTreeSet<Fingerprint> = others.map(|(_, mind)| *mind).collect();
        told.suspects.len() == 1 && minds.len() == 1
    }

    /// Raises an alarm, once for an index and these nodes.
    fn suspect(&self, index: u64, nodes: BTreeSet<u64>, text: impl FnOnce() -> String) {
        let mut told = self.shared.told.lock();
        // What is known of one index is asked for again together with the next ones.
        if told.suspected_at >= index && told.suspects == nodes {
            return;
        }
        if nodes.len() == 1 {
            told.comparisons.diverged += 1;
        }
        let text = format!("T3112 state-diverged: {}", text());
        tracing::error!(index, reason = text, "states differ");
        (told.suspects, told.suspected_at) = (nodes, index);
        told.comparisons.alarm = Some(text);
    }

    fn stop(&self, index: u64, own: Fingerprint, majority: Fingerprint, of: &[u64]) {
        let Shared { node, data, failure, .. } = &*self.shared;
        failure.set(&format!(
            "T3112 state-diverged: the state of {}. It must not be served. {}",
            differs(*node, index, own, majority, of),
            advice::rejoin(data)
        ));
    }
}

/// What the leader makes of this node's states.
async fn ask(link: &LeaderLink, report: &Report) -> Result<Answer, ProposeError> {
    let target = link.target()?;
    let mut client = link.lazy_client(&target)?;
    let request = link.caller(target.leader).request(blob(report));
    let answer = link.bounded(&target, ANSWER_DEADLINE, client.compare(request)).await?;
    unblob(answer.get_ref()).map_err(|status| ProposeError::NoLeader(status.message().to_owned()))
}

fn differs(node: u64, index: u64, own: Fingerprint, majority: Fingerprint, of: &[u64]) -> String {
    let of: Vec<String> = of.iter().map(u64::to_string).collect();
    let terms = if own.term == majority.term {
        String::new()
    } else {
        format!(" (of terms {} and {})", own.term, majority.term)
    };
    format!(
        "node {node} differs from the majority's: at log index {index}{terms} its digest is {:016x}, that of nodes \
         {} is {:016x}",
        own.digest,
        of.join(", "),
        majority.digest
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The leader of nodes 1, 2 and 3.
    fn leader() -> Comparer {
        Comparer::new(1, PathBuf::from("data"), Failure::new(), Work::Threads)
    }

    fn own(leader: &Comparer, index: u64, digest: u64) {
        let voters = vec![BTreeSet::from([1, 2, 3])];
        leader.shared.judge.lock().own(index, voters, Fingerprint { term: 1, digest });
        leader.conclude(index);
    }

    fn told(leader: &Comparer, node: u64, index: u64, digest: u64) {
        let points = vec![(index, Fingerprint { term: 1, digest })];
        leader.answer(&Report { node, digest_version: State::DIGEST_VERSION, points });
    }

    fn alarm(leader: &Comparer) -> String {
        leader.comparisons().alarm.unwrap()
    }

    #[test]
    fn an_alarm_that_names_a_node_stays_though_that_node_is_first_to_speak_of_the_next_index() {
        let leader = leader();
        own(&leader, 5, 7);
        told(&leader, 3, 5, 8);
        assert!(alarm(&leader).contains("no majority says which is right"));
        told(&leader, 2, 5, 7);
        let named = alarm(&leader);
        assert!(named.contains("the state of node 3 differs"), "{named}");
        own(&leader, 6, 9);
        told(&leader, 3, 6, 10);
        assert_eq!(alarm(&leader), named);
        told(&leader, 2, 6, 9);
        assert!(alarm(&leader).contains("the state of node 3 differs"));
        // Two others that differ are another matter.
        own(&leader, 7, 11);
        told(&leader, 2, 7, 12);
        assert!(alarm(&leader).contains("node 1 has") && alarm(&leader).contains("node 2 has"));
    }

    #[test]
    fn each_index_counts_once_however_often_it_is_told() {
        let leader = leader();
        for index in [5, 6] {
            own(&leader, index, index);
            told(&leader, 2, index, index);
        }
        for index in [5, 6, 5, 6] {
            told(&leader, 3, index, 8);
        }
        assert_eq!(leader.comparisons().diverged, 2);
    }
}
