//! Where everything that happens in a simulation is told: the event log, the history of the clients, and the
//! rules, which judge at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tripod_gateway::Leadership;
use tripod_raft::SeenMembers;
use tripod_state::ids::{LogIndex, NodeId};

use super::event_log::EventLog;
use super::invariant::acknowledged_work::{AcknowledgedWork, Written};
use super::invariant::barrier_all_or_none::{self, Instance};
use super::invariant::cluster_generations::{ClusterGenerations, ClusterSeen};
use super::invariant::election_safety::ElectionSafety;
use super::invariant::equal_digests::EqualDigests;
use super::invariant::heartbeat_rule::HeartbeatRule;
use super::invariant::incarnation_fencing::{IncarnationFencing, Task};
use super::invariant::leader_completeness::LeaderCompleteness;
use super::invariant::log_matching;
use super::invariant::monotone_applied::MonotoneApplied;
use super::invariant::one_membership::{self, OneMembership};
use super::invariant::scheduled_work::ScheduledWork;
use super::invariant::state_machine_safety::StateMachineSafety;
use super::invariant::term_covers_log;
use super::invariant::voters_decide::VotersDecide;
use super::judged::{End, Judged};
use super::observation::{Life, LogLine, Sample, SimTime, Violation};
use tripod_checkers::history::{Call, ClientId, Header, History, Micros, Outcome, Recorder};

/// Violations that are kept; one mistake often shows again and again.
const VIOLATIONS_KEPT: usize = 20;

/// Clones tell the same witness.
#[derive(Clone)]
pub(crate) struct Witness {
    seen: Arc<Mutex<Seen>>,
    recorder: Recorder,
}

struct Seen {
    log: EventLog,
    violations: Vec<Violation>,
    election: ElectionSafety,
    completeness: LeaderCompleteness,
    machines: StateMachineSafety,
    applied: MonotoneApplied,
    digests: EqualDigests,
    work: AcknowledgedWork,
    fencing: IncarnationFencing,
    heartbeats: HeartbeatRule,
    members: OneMembership,
    voters: VotersDecide,
    scheduled: ScheduledWork,
    clusters: ClusterGenerations,
    barriers: u64,
    /// Since when nothing has been wrong with the network, nodes and disks.
    calm_since: Option<SimTime>,
    counts: BTreeMap<&'static str, u64>,
}

/// The simulated time, as the host that runs at the moment sees it.
pub(crate) fn now() -> SimTime {
    let elapsed = turmoil::sim_elapsed().unwrap_or_default();
    SimTime(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}

/// The same for histories.
pub(crate) fn micros(at: SimTime) -> Micros {
    Micros::from_millis(at.0)
}

impl Witness {
    pub(crate) fn new(seed: u64, keep_events: bool) -> Self {
        let seen = Seen {
            log: EventLog::new(keep_events),
            violations: Vec::new(),
            election: ElectionSafety::default(),
            completeness: LeaderCompleteness::default(),
            machines: StateMachineSafety::default(),
            applied: MonotoneApplied::default(),
            digests: EqualDigests::default(),
            work: AcknowledgedWork::default(),
            fencing: IncarnationFencing::default(),
            heartbeats: HeartbeatRule::default(),
            members: OneMembership::default(),
            voters: VotersDecide::default(),
            scheduled: ScheduledWork::default(),
            clusters: ClusterGenerations::default(),
            barriers: 0,
            calm_since: Some(SimTime(0)),
            counts: BTreeMap::new(),
        };
        let recorder = Recorder::new(Header { scenario: "simulation".into(), seed });
        Self { seen: Arc::new(Mutex::new(seen)), recorder }
    }

    /// Notes an event.
    pub(crate) fn note(&self, at: SimTime, who: &str, what: fmt::Arguments<'_>) {
        self.seen.lock().log.note(at, who, what);
    }

    /// Counts something that happened.
    pub(crate) fn count(&self, kind: &'static str) {
        *self.seen.lock().counts.entry(kind).or_default() += 1;
    }

    pub(crate) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Has a client make a call, and writes down both ends of it.
    pub(crate) async fn record(
        &self,
        client: ClientId,
        call: Call,
        made: impl Future<Output = Outcome>,
    ) -> Outcome {
        let pending = self.recorder.invoke(micros(now()), client, call.clone());
        let outcome = made.await;
        pending.complete(micros(now()), outcome.clone());
        self.note(now(), &format!("c{client}"), format_args!("{call}: {outcome}"));
        outcome
    }

    /// A rule that is no invariant of a file of its own was broken: a deadline passed, a node ended.
    pub(crate) fn broken(&self, at: SimTime, rule: &str, what: String) {
        self.seen.lock().judge(at, rule, Err(what));
    }

    /// A node holds a node for its leader.
    pub(crate) fn follows(&self, at: SimTime, node: NodeId, life: Life, leadership: &Leadership) {
        let Some(leader) = leadership.leader else { return };
        let mut seen = self.seen.lock();
        let judged = seen.election.follows(node, life, leadership.term, leader);
        seen.judge(at, "election safety", judged);
        let judged = seen.members.leads(at, leader, leadership.term);
        seen.judge(at, "one membership", judged);
    }

    /// A node, and what could be seen of its log.
    pub(crate) fn sampled(&self, at: SimTime, sample: &Sample, log: &[LogLine]) {
        let mut seen = self.seen.lock();
        let judged = seen.applied.see(sample);
        seen.judge(at, "monotone applied index", judged);
        seen.judge(at, "term covers log", term_covers_log::check(sample, log));
        let judged = seen.completeness.see(sample, log);
        seen.judge(at, "leader completeness", judged);
    }

    /// A node applies an entry.
    pub(crate) fn applied(&self, node: NodeId, line: LogLine) {
        let mut seen = self.seen.lock();
        seen.completeness.applied(node, line);
        let judged = seen.machines.applied(node, line);
        seen.judge(now(), "state machine safety", judged);
    }

    /// A machine was given an id for its node.
    pub(crate) fn joined(&self, at: SimTime, node: NodeId) {
        let mut seen = self.seen.lock();
        let judged = seen.members.joined(node);
        seen.judge(at, "one membership", judged);
    }

    /// A node applies an entry that lists the members.
    pub(crate) fn members(&self, node: NodeId, line: LogLine, members: &SeenMembers) {
        let mut seen = self.seen.lock();
        seen.log.note(
            now(),
            &format!("node {node}"),
            format_args!("index {}: {}", line.index, one_membership::words(members)),
        );
        let judged = seen.members.entered(now(), line, members);
        seen.judge(now(), "one membership", judged);
    }

    /// Whether the id is none of the members', as the last list says that any node has applied.
    pub(crate) fn is_gone(&self, node: NodeId) -> bool {
        self.seen.lock().members.last().is_some_and(|members| !members.nodes.contains(&node))
    }

    /// The members, as the last list says that any node has applied.
    pub(crate) fn last_members(&self) -> SeenMembers {
        self.seen.lock().members.last().cloned().unwrap_or_default()
    }

    /// A node leads. `holders`: who holds what it has applied last; `promised`: who may have promised to follow no
    /// leader of an earlier term. `ready`: it has applied everything of earlier terms.
    pub(crate) fn leads(
        &self,
        at: SimTime,
        leader: &Sample,
        holders: &BTreeSet<NodeId>,
        promised: &BTreeSet<NodeId>,
        ready: bool,
    ) {
        let mut guard = self.seen.lock();
        let seen = &mut *guard;
        let judged = seen.members.leads(at, leader.node, leader.term);
        seen.judge(at, "one membership", judged);
        let judged = seen.voters.applied(leader, &seen.members, holders);
        seen.judge(at, "only voters decide", judged);
        seen.voters.leads(leader, promised);
        if ready {
            let judged = seen.voters.ready(leader, &seen.members);
            seen.judge(at, "only voters decide", judged);
        }
    }

    /// The logs of all nodes at one moment.
    pub(crate) fn logs(&self, at: SimTime, logs: &[Vec<LogLine>]) {
        let mut seen = self.seen.lock();
        for (place, left) in logs.iter().enumerate() {
            for right in &logs[place + 1..] {
                seen.judge(at, "log matching", log_matching::check(left, right));
            }
        }
    }

    pub(crate) fn digest(&self, at: SimTime, node: NodeId, applied: LogIndex, digest: u64) {
        let mut seen = self.seen.lock();
        let judged = seen.digests.see(node, applied, digest);
        seen.judge(at, "equal digests", judged);
    }

    pub(crate) fn acknowledged(&self, key: &str, written: Written, index: LogIndex) {
        let mut seen = self.seen.lock();
        let judged = seen.work.acknowledge(key, written, index);
        seen.judge(now(), "acknowledged work", judged);
    }

    /// The keys that must be there in the end.
    pub(crate) fn acknowledged_keys(&self) -> Vec<String> {
        self.seen.lock().work.keys().map(ToOwned::to_owned).collect()
    }

    pub(crate) fn found_in_the_end(&self, at: SimTime, key: &str, found: Option<&Written>) {
        let mut seen = self.seen.lock();
        let judged = seen.work.end(key, found);
        seen.judge(at, "acknowledged work", judged);
    }

    pub(crate) fn applied_in_the_end(&self, at: SimTime, applied: LogIndex) {
        let mut seen = self.seen.lock();
        let judged = seen.work.applied(applied);
        seen.judge(at, "acknowledged work", judged);
    }

    pub(crate) fn life_registered(&self, task: &Task, life: Life, invoked: SimTime) {
        let mut seen = self.seen.lock();
        let judged = seen.fencing.registered(task, life, invoked, now());
        seen.judge(now(), "incarnation fencing", judged);
    }

    pub(crate) fn life_acknowledged(&self, task: &Task, life: Life, invoked: SimTime, what: &str) {
        let mut seen = self.seen.lock();
        let judged = seen.fencing.acknowledged(task, life, invoked, what);
        seen.judge(now(), "incarnation fencing", judged);
    }

    pub(crate) fn barrier(&self, instance: &Instance) {
        let mut seen = self.seen.lock();
        seen.barriers += 1;
        seen.judge(now(), "barrier all or none", barrier_all_or_none::check(instance));
    }

    pub(crate) fn task_will_beat(&self, task: &Task, timeout_ms: u64) {
        self.seen.lock().heartbeats.task(task, timeout_ms);
    }

    pub(crate) fn beat(&self, task: &Task, node: NodeId, sent: SimTime) {
        self.seen.lock().heartbeats.beat(task, node, sent);
    }

    pub(crate) fn task_silent(&self, task: &Task, since: SimTime) {
        self.seen.lock().heartbeats.silent(task, since);
    }

    pub(crate) fn task_dead(&self, at: SimTime, task: &Task, stalled: bool) {
        let mut seen = self.seen.lock();
        let members = seen.members.last().cloned().unwrap_or_default();
        let judged = seen.heartbeats.dead(task, at, stalled, &members);
        seen.judge(at, "heartbeat rule", judged);
    }

    /// Whether a node has held the task for dead.
    pub(crate) fn is_dead(&self, task: &Task) -> bool {
        self.seen.lock().heartbeats.is_dead(task)
    }

    /// Something happened to what schedulers were given to do.
    pub(crate) fn scheduled(&self, judge: impl FnOnce(&mut ScheduledWork) -> Result<(), String>) {
        self.scheduled_at(now(), judge);
    }

    /// [`Self::scheduled`], as it is seen from outside of all hosts.
    pub(crate) fn scheduled_at(
        &self,
        at: SimTime,
        judge: impl FnOnce(&mut ScheduledWork) -> Result<(), String>,
    ) {
        let mut seen = self.seen.lock();
        let judged = judge(&mut seen.scheduled);
        seen.judge(at, "scheduled work", judged);
    }

    /// A cluster of MindSpore, as the state of a node has it.
    pub(crate) fn cluster(&self, at: SimTime, node: NodeId, life: Life, cluster: &ClusterSeen) {
        let mut seen = self.seen.lock();
        let judged = seen.clusters.see(node, life, cluster);
        seen.judge(at, "cluster generations", judged);
    }

    pub(crate) fn heartbeats_end(&self, at: SimTime) {
        let mut seen = self.seen.lock();
        let judged = seen.heartbeats.end();
        seen.judge(at, "heartbeat rule", judged);
    }

    /// Whether anything is wrong with the network, nodes or disks from now on.
    pub(crate) fn set_calm(&self, at: SimTime, calm: bool) {
        let mut seen = self.seen.lock();
        seen.calm_since = match (calm, seen.calm_since) {
            (true, Some(since)) => Some(since),
            (true, None) => Some(at),
            (false, _) => None,
        };
    }

    /// Whether nothing has been wrong since `since`.
    pub(crate) fn calm_since(&self, since: SimTime) -> bool {
        self.seen.lock().calm_since.is_some_and(|calm| calm <= since)
    }

    /// Whether a rule was broken already: going on would tell nothing new.
    pub(crate) fn is_broken(&self) -> bool {
        !self.seen.lock().violations.is_empty()
    }

    pub(crate) fn history(&self, at: SimTime) -> History {
        self.recorder.history(micros(at))
    }

    pub(crate) fn end(&self) -> End {
        let mut seen = self.seen.lock();
        End {
            violations: seen.violations.clone(),
            hash: seen.log.hash(),
            events: seen.log.events(),
            lines: seen.log.take_lines(),
            counts: seen.counts.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect(),
            judged: Judged {
                leaders: seen.election.leaders(),
                entries: seen.machines.compared(),
                digests: seen.digests.compared(),
                writes: seen.work.writes(),
                barriers: seen.barriers,
                lives: seen.fencing.checked(),
                memberships: seen.members.lists(),
                attempts: seen.scheduled.attempts(),
                results: seen.scheduled.results(),
                schedulers: seen.scheduled.looks(),
                clusters: seen.clusters.looks(),
            },
        }
    }
}

impl Seen {
    fn judge(&mut self, at: SimTime, rule: &str, judged: Result<(), String>) {
        let Err(what) = judged else { return };
        self.log.note(at, "RULE", format_args!("{rule}: {what}"));
        if self.violations.len() < VIOLATIONS_KEPT {
            self.violations.push(Violation { rule: rule.to_owned(), at_ms: at.0, what });
        }
    }
}
