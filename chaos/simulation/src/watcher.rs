//! Looks at the nodes from outside, between the steps of the simulation, and tells the witness.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tripod_gateway::{Leadership, Role};
use tripod_state::ids::{LogIndex, NodeId, Term};
use tripod_state::member::{self, Suffrage};
use tripod_state::{Fault, Scope, State};

use super::invariant::cluster_generations::ClusterSeen;
use super::invariant::incarnation_fencing::Task;
use super::invariant::one_membership;
use super::node::{Running, Site};
use super::observation::{LogLine, Sample, SimTime};
use super::witness::Witness;
use super::workload;

/// How often the nodes' status is looked at, in milliseconds of simulated time.
const STATUS_EVERY_MS: u64 = 20;
/// How often the logs are compared with each other.
const LOGS_EVERY_MS: u64 = 100;
/// How often states are hashed, and tasks and clusters are looked at.
const STATES_EVERY_MS: u64 = 200;
/// Without progress for so long what happens then may have been decided long before.
const STALL_MS: u64 = 600;
/// An election is without need if nothing has been wrong for so long, and the leader of before is up. Some of them are
/// hand-overs, when members change.
const NO_NEED_MS: u64 = 3000;
/// For how long after such a stall.
const STALL_COUNTS_MS: u64 = 5000;

/// What was seen before.
pub(crate) struct Watcher {
    sites: Vec<Arc<Site>>,
    witness: Witness,
    leaderships: BTreeMap<String, Leadership>,
    dead: BTreeSet<Task>,
    /// When an index above all before was last seen applied, and that index.
    progress: (SimTime, LogIndex),
    last_stall: SimTime,
    /// The last leader that was ready, and its term.
    leader: Option<(Term, NodeId)>,
    /// The highest index after which the scheduler was looked at.
    scheduler: LogIndex,
    looked: Looked,
}

/// A machine with a node, at one moment.
struct Look {
    node: NodeId,
    /// How the node shows itself, and whether it leads and has applied everything of earlier terms.
    up: Option<(Sample, bool)>,
    log: Vec<LogLine>,
}

impl Look {
    /// Whether its disk holds what is at that index, in its log or below it.
    fn holds(&self, index: LogIndex, line: Option<&LogLine>) -> bool {
        match (self.log.first(), self.log.last()) {
            (Some(first), Some(last)) if first.index <= index => {
                let mine = self.log.iter().find(|line| line.index == index);
                last.index >= index && line.is_none_or(|line| mine.is_none_or(|mine| mine == line))
            }
            // What was purged was applied.
            (Some(_), _) => true,
            // Nothing above the last snapshot; of a node that is down that is not known.
            _ => self.up.is_none_or(|(sample, _)| sample.last_log >= index),
        }
    }
}

#[derive(Default)]
struct Looked {
    status: SimTime,
    logs: SimTime,
    states: SimTime,
}

/// Whether something that is done every so often is due.
fn due(last: &mut SimTime, at: SimTime, every_ms: u64) -> bool {
    let due = at.since_ms(*last) >= every_ms;
    if due {
        *last = at;
    }
    due
}

impl Watcher {
    pub(crate) fn new(sites: &[Arc<Site>], witness: &Witness) -> Self {
        Self {
            sites: sites.to_vec(),
            witness: witness.clone(),
            leaderships: BTreeMap::new(),
            dead: BTreeSet::new(),
            progress: Default::default(),
            last_stall: SimTime(0),
            leader: None,
            scheduler: LogIndex(0),
            looked: Looked::default(),
        }
    }

    /// Looks at what is due.
    pub(crate) fn turn(&mut self, at: SimTime) {
        self.leaders(at);
        self.schedulers(at);
        if due(&mut self.looked.status, at, STATUS_EVERY_MS) {
            self.status(at);
        }
        if due(&mut self.looked.states, at, STATES_EVERY_MS) {
            self.states(at);
        }
    }

    /// Looks at the scheduler whenever a node has applied more than any before. What the others make of the same
    /// entries is compared by digests.
    fn schedulers(&mut self, at: SimTime) {
        for site in &self.sites {
            let Some(running) = site.running() else { continue };
            let applied = running.handle.applied_index();
            if applied <= self.scheduler {
                continue;
            }
            self.scheduler = applied;
            running.handle.read(|state| {
                let job = state.job_named(workload::scheduler::JOB);
                if let Some(ray) = job.and_then(|job| state.ray(job)) {
                    self.witness.scheduled_at(at, |rule| rule.look(running.node, applied, ray));
                }
            });
        }
    }

    fn leaders(&mut self, at: SimTime) {
        let mut elected = Vec::new();
        for site in &self.sites {
            let Some(running) = site.running() else {
                self.leaderships.remove(&site.name);
                continue;
            };
            let seen = running.leadership();
            if self.leaderships.get(&site.name) == Some(&seen) {
                continue;
            }
            self.leaderships.insert(site.name.clone(), seen);
            let Leadership { leader, term, ready_here } = seen;
            let leader = leader.map_or("nobody".to_owned(), |leader| format!("node {leader}"));
            let ready = if ready_here { ", ready" } else { "" };
            self.witness.note(at, &site.name, format_args!("term {term}: {leader} leads{ready}"));
            self.witness.follows(at, running.node, running.life, &seen);
            if ready_here {
                elected.push((term, running.node));
            }
        }
        elected.into_iter().for_each(|(term, node)| self.elected(at, term, node));
    }

    /// Counts how often somebody was elected while nothing spoke against the leader of before.
    fn elected(&mut self, at: SimTime, term: Term, node: NodeId) {
        let Some((before, old)) = self.leader else {
            self.leader = Some((term, node));
            return;
        };
        if term <= before {
            return;
        }
        self.leader = Some((term, node));
        let is_up = self.sites.iter().any(|site| site.running().is_some_and(|running| running.node == old));
        if old != node && is_up && self.witness.calm_since(SimTime(at.0.saturating_sub(NO_NEED_MS))) {
            self.witness.count("elections without need");
        }
    }

    fn status(&mut self, at: SimTime) {
        let with_logs = due(&mut self.looked.logs, at, LOGS_EVERY_MS);
        let mut looks = Vec::new();
        for site in &self.sites {
            let Some(node) = site.node() else { continue };
            let log = site.disk.log();
            let Some(running) = site.running() else {
                looks.push(Look { node, up: None, log });
                continue;
            };
            let sample = sample(&running);
            self.witness.sampled(at, &sample, &log);
            if sample.applied > self.progress.1 {
                if at.since_ms(self.progress.0) > STALL_MS {
                    self.last_stall = at;
                }
                self.progress = (at, sample.applied);
            }
            let ready = running.leadership().ready_here;
            looks.push(Look { node, up: Some((sample, ready)), log });
        }
        self.leads(at, &looks);
        if with_logs {
            let up = looks.into_iter().filter(|look| look.up.is_some());
            self.witness.logs(at, &up.map(|look| look.log).collect::<Vec<_>>());
        }
    }

    /// Who holds what leaders have applied, and who follows no earlier one.
    fn leads(&self, at: SimTime, looks: &[Look]) {
        for look in looks {
            let Some((leader, ready)) = &look.up else { continue };
            if !leader.leads {
                continue;
            }
            let line = look.log.iter().find(|line| line.index == leader.applied);
            let nodes = |is_so: &dyn Fn(&Look) -> bool| -> BTreeSet<NodeId> {
                looks.iter().filter(|look| is_so(look)).map(|look| look.node).collect()
            };
            let holders = nodes(&|look| look.holds(leader.applied, line));
            let promised = nodes(&|look| look.up.is_none_or(|(sample, _)| sample.term >= leader.term));
            self.witness.leads(at, leader, &holders, &promised, *ready);
        }
    }

    fn states(&mut self, at: SimTime) {
        for site in &self.sites {
            let Some(running) = site.running() else { continue };
            let (applied, digest) = applied_and_digest(&running);
            self.witness.note(at, &site.name, format_args!("applied {applied}: {digest:016x}"));
            self.witness.digest(at, running.node, applied, digest);
            for cluster in running.handle.read(clusters) {
                self.witness.cluster(at, running.node, running.life, &cluster);
            }
            let dead = running.handle.read(silent_tasks);
            for task in dead {
                if self.dead.insert(task.clone()) {
                    let stalled = at.since_ms(self.progress.0) > STALL_MS
                        || (self.last_stall != SimTime(0) && at.since_ms(self.last_stall) < STALL_COUNTS_MS);
                    self.witness.note(at, &site.name, format_args!("{task:?} is dead"));
                    self.witness.count("tasks declared dead");
                    self.witness.task_dead(at, &task, stalled);
                }
            }
        }
    }

    /// The machines that are not free for another node.
    fn taken(&self) -> impl Iterator<Item = &Arc<Site>> {
        self.sites.iter().filter(|site| !site.is_vacant())
    }

    /// Judges who the members are in the end: those that the log says, on every node, and nobody else is up.
    pub(crate) fn members_in_the_end(&self, at: SimTime) {
        let last = self.witness.last_members();
        let up: BTreeSet<NodeId> = self.taken().filter_map(|site| site.node()).collect();
        if up != last.nodes || last.sets.len() != 1 {
            let what = format!("nodes {up:?} are there, and the log says {}", one_membership::words(&last));
            self.witness.broken(at, "one membership", what);
        }
        for running in self.sites.iter().filter_map(|site| site.running()) {
            let (registered, open) = running.handle.read(|state| {
                let registry = state.registry();
                let voter = |known: &member::Node| known.suffrage == Suffrage::Voter;
                let nodes: Vec<_> = registry.nodes().map(|(node, known)| (node, voter(known))).collect();
                (nodes, registry.open().map(|open| open.change.to_string()))
            });
            let voters = last.sets.first().cloned().unwrap_or_default();
            let listed: Vec<_> = last.nodes.iter().map(|node| (*node, voters.contains(node))).collect();
            if registered != listed || open.is_some() {
                let what = format!(
                    "node {} has registered {registered:?} with {open:?} under way, and the log says {}",
                    running.node,
                    one_membership::words(&last)
                );
                self.witness.broken(at, "one membership", what);
            }
        }
    }

    /// The index and digest that all nodes have in common, if they are all up and equal.
    pub(crate) fn all_equal(&self) -> Option<(LogIndex, u64)> {
        let mut common = None;
        for site in self.taken() {
            let seen = applied_and_digest(&site.running()?);
            if *common.get_or_insert(seen) != seen {
                return None;
            }
        }
        common
    }

    /// Whether every node is up and knows the same leader, who is ready.
    pub(crate) fn all_follow(&self) -> bool {
        let seen: Option<Vec<_>> =
            self.taken().map(|site| site.running().map(|running| running.leadership())).collect();
        let Some(seen) = seen else { return false };
        let leader = seen[0].leader;
        leader.is_some()
            && seen.iter().all(|one| one.leader == leader && one.term == seen[0].term)
            && seen.iter().any(|one| one.ready_here)
    }

    /// Looks at the state of any node that is up.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&State) -> T) -> Option<T> {
        let running = self.sites.iter().find_map(|site| site.running())?;
        Some(running.handle.read(look))
    }

    /// How the nodes stand, in words.
    pub(crate) fn words(&self) -> String {
        let one = |site: &Arc<Site>| match site.running() {
            None if site.is_vacant() => format!("{} is vacant", site.name),
            None => format!("{} is down", site.name),
            Some(running) => {
                let (applied, digest) = applied_and_digest(&running);
                let Leadership { leader, term, .. } = running.leadership();
                let leader = leader.map_or("nobody".to_owned(), |leader| format!("node {leader}"));
                format!("{} applied {applied}, {digest:016x}, term {term}, follows {leader}", site.name)
            }
        };
        self.sites.iter().map(one).collect::<Vec<_>>().join("; ")
    }
}

fn sample(running: &Running) -> Sample {
    let status = running.handle.status();
    Sample {
        node: status.node,
        life: running.life,
        leads: status.role == Role::Leader,
        term: status.term,
        last_log: status.last_log,
        committed: status.committed,
        applied: running.handle.applied_index(),
    }
}

fn applied_and_digest(running: &Running) -> (LogIndex, u64) {
    // Nothing runs between the two: this is not within a step of the simulation.
    (running.handle.applied_index(), running.handle.read(State::digest))
}

/// The tasks that were given up for want of heartbeats.
fn silent_tasks(state: &State) -> Vec<Task> {
    let mut dead = Vec::new();
    for job in state.jobs() {
        let Ok(report) = state.tasks(Scope { job: job.id, service: None }, &[]) else { continue };
        let silent = report.tasks.iter().filter(
            |info| matches!(&info.error, Some(Fault::HeartbeatTimeout { task }) if *task == info.task),
        );
        dead.extend(silent.map(|info| (job.name.as_str().to_owned(), info.task.0)));
    }
    dead
}

/// The clusters of MindSpore that have begun.
fn clusters(state: &State) -> Vec<ClusterSeen> {
    let scope = |job| Scope { job, service: None };
    let called = state.cluster_jobs().into_iter().filter_map(|job| {
        let view = state.cluster(scope(job)).ok()?;
        let nodes = state.cluster_nodes(scope(job)).ok()?;
        let ranks = nodes.iter().filter_map(|node| Some((node.role.word(), node.rank?))).collect();
        let (generation, published) = (view.generation, view.published);
        Some(ClusterSeen { protocol: "cluster", job, generation, published, ranks })
    });
    let dynamic = state.topology_jobs().into_iter().filter_map(|job| {
        let generation = state.topology(scope(job)).ok()?.generation;
        let nodes = state.topology_nodes(scope(job)).ok()?;
        let ranks = nodes.iter().map(|node| (node.role.base().word(), node.rank)).collect();
        Some(ClusterSeen { protocol: "dynamic cluster", job, generation, published: 0, ranks })
    });
    called.chain(dynamic).collect()
}
