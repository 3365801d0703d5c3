//! Looks at the disk again and again, tells the leader, and on the leader decides for the cluster.

use std::sync::Arc;
use std::time::Duration;

use openraft::async_runtime::WatchReceiver as _;
use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tripod_state::ids::{NodeId, Term};

use super::verdict::{self, Known};
use super::{Admission, DiskStatus, Gauge};
use crate::apply::engine::Raft;
use crate::apply::state_machine::StateMachine;
use crate::base::error::ProposeError;
use crate::lead::leader_link::LeaderLink;
use crate::lead::leadership::LeadershipWatch;
use crate::peers::{blob, unblob};

/// How often the disk is looked at: what a busy node writes in this time is a part of the reserve.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How often a follower tells the leader when nothing has changed.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// How long the leader may take to answer.
const ANSWER_DEADLINE: Duration = Duration::from_secs(3);
/// While a disk is full, a new snapshot may give space back: after deletions it is smaller, and what of
/// the log it covers can go.
const SNAPSHOT_EVERY: Duration = Duration::from_mins(1);

/// What this node knows of all disks. Clones share it.
#[derive(Clone)]
pub(crate) struct Reports {
    gauge: Gauge,
    admission: Admission,
    leadership: LeadershipWatch,
    raft: Raft,
    known: Arc<Mutex<Known>>,
}

impl Reports {
    pub(crate) fn new(gauge: Gauge, admission: Admission, leadership: LeadershipWatch, raft: Raft) -> Self {
        Self { gauge, admission, leadership, raft, known: Arc::default() }
    }

    /// This node.
    fn own(&self) -> NodeId {
        NodeId(self.leadership.node())
    }

    /// Notes what a follower tells; gives the leader's word on growth.
    pub(crate) fn take(&self, node: NodeId, disk: DiskStatus) -> Option<String> {
        self.known.lock().insert(node, (Instant::now(), disk));
        self.admission.decided().map(|reason| reason.to_string())
    }

    /// Runs until the node stops.
    pub(crate) async fn run(self, machine: StateMachine, link: LeaderLink, stop: CancellationToken) {
        let reporting = tokio::spawn(tell(self.clone(), link, stop.clone()));
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut led_since: Option<(Term, Instant)> = None;
        let mut saved: Option<(Instant, u64)> = None;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = stop.cancelled() => break,
            }
            let (gauge, unsaved) = (self.gauge.clone(), machine.unsaved_bytes());
            // A file system that does not answer must not hold up anything else.
            let Ok(disk) = tokio::task::spawn_blocking(move || gauge.measure(unsaved)).await else { break };
            self.save(&disk, machine.applied_index(), &mut saved).await;
            led_since = self.decide(disk, led_since);
        }
        reporting.abort();
    }

    /// Decides for the cluster if this node leads. Gives since when it does.
    fn decide(&self, disk: DiskStatus, led_since: Option<(Term, Instant)>) -> Option<(Term, Instant)> {
        let leadership = self.leadership.get();
        if leadership.leader != Some(self.own()) {
            return None;
        }
        let now = Instant::now();
        let led_since =
            led_since.filter(|(term, _)| *term == leadership.term).unwrap_or((leadership.term, now));
        let voters: Vec<NodeId> = {
            let metrics = self.raft.metrics();
            let metrics = metrics.borrow_watched();
            metrics.membership_config.membership().voter_ids().map(NodeId).collect()
        };
        let mut known = self.known.lock();
        known.insert(self.own(), (now, disk));
        let refusal = verdict::refusal(self.own(), &voters, &known, led_since.1, now);
        drop(known);
        self.admission.decide(refusal);
        Some(led_since)
    }

    /// Asks for a snapshot when the disk is full, and again after a while if anything was applied since.
    async fn save(&self, disk: &DiskStatus, applied: u64, saved: &mut Option<(Instant, u64)>) {
        if !disk.full {
            *saved = None;
            return;
        }
        if saved.is_some_and(|(at, index)| index == applied || at.elapsed() < SNAPSHOT_EVERY) {
            return;
        }
        *saved = Some((Instant::now(), applied));
        // An engine that has stopped is found out elsewhere.
        let _ = self.raft.trigger().snapshot().await;
    }
}

/// Tells the leader of this node's disk while another node leads.
async fn tell(reports: Reports, link: LeaderLink, stop: CancellationToken) {
    let mut told = false;
    let mut due = Instant::now();
    while !stop.is_cancelled() {
        tokio::time::sleep(LOOK_EVERY).await;
        let disk = reports.gauge.last();
        let leader = reports.leadership.get().leader;
        let another = leader.is_some_and(|leader| leader != reports.own());
        if !another || (disk.full == told && Instant::now() < due) {
            continue;
        }
        let full = disk.full;
        match report(&link, reports.own(), disk).await {
            Ok(refusal) => {
                // This node may have begun to lead meanwhile, and knows better then.
                if !reports.leadership.leads_here() {
                    reports.admission.hear(refusal);
                }
                told = full;
            }
            Err(error) => tracing::debug!(%error, "the leader was not told of this node's disk"),
        }
        due = Instant::now() + TELL_EVERY;
    }
}

/// Tells the leader of this node's disk; gives the leader's word on growth.
async fn report(link: &LeaderLink, own: NodeId, disk: DiskStatus) -> Result<Option<String>, ProposeError> {
    let target = link.target()?;
    let mut client = link.lazy_client(&target)?;
    let request = link.caller(target.leader).request(blob(&(own.0, disk)));
    let answer = link.bounded(&target, ANSWER_DEADLINE, client.report_disk(request)).await?;
    unblob(answer.get_ref()).map_err(|status| ProposeError::NoLeader(status.message().to_owned()))
}
