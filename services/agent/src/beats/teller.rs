//! Tells due beats to the cluster, in batches.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::{Code, Status};
use tripod_proto::metadata;
use tripod_proto::tripod::v1::agents_client::AgentsClient;
use tripod_proto::tripod::v1::{BeatRequest, BeatVerdict, ClientBeat};

use super::Beats;
use super::ledger::{Beat, Verdict};
use crate::job::AgentJob;
use crate::upstream::{Doubt, Link, is_own_trouble, root_cause};

/// How long beats are gathered after a batch: a tenth of the time in which one must come, within these
/// bounds. A beat that comes alone is told at once: some clients cannot leave while one is under way.
const TICK_MIN: Duration = Duration::from_millis(50);
const TICK_MAX: Duration = Duration::from_secs(1);

/// What tells the beats of clients, as long as it runs.
#[derive(Debug)]
pub(crate) struct Teller {
    beats: Beats,
    job: AgentJob,
    job_name: String,
}

impl Teller {
    pub(crate) fn new(beats: Beats, job: AgentJob, job_name: String) -> Self {
        Self { beats, job, job_name }
    }

    /// Runs until it is dropped. A batch does not wait for the one before: a verdict may be held.
    pub(crate) async fn run(self) {
        let mut under_way = JoinSet::new();
        let mut next = Instant::now();
        loop {
            self.wait_for_due().await;
            let heartbeat_timeout = self.heartbeat_timeout().await;
            tokio::time::sleep_until(next).await;
            next = Instant::now() + (heartbeat_timeout / 10).clamp(TICK_MIN, TICK_MAX);
            // Beats that are made while there is no link are told together when there is one.
            let link = self.beats.upstream.link().await;
            let due = {
                let mut ledger = self.beats.shared.ledger.lock();
                ledger.forget_older(self.beats.upstream.timing().max_outage);
                ledger.take_due()
            };
            if !due.is_empty() {
                let limit = (heartbeat_timeout / 2).max(self.beats.upstream.timing().answer_limit);
                let batch = Batch { beats: self.beats.clone(), link, due, limit };
                under_way.spawn(batch.tell(self.job_name.clone()));
            }
            while under_way.try_join_next().is_some() {}
        }
    }

    async fn wait_for_due(&self) {
        loop {
            let due = self.beats.shared.due.notified();
            if self.beats.shared.ledger.lock().has_due() {
                return;
            }
            due.await;
        }
    }

    /// Without a job there is nobody who could be given up.
    async fn heartbeat_timeout(&self) -> Duration {
        self.job.settled().await.unwrap_or(TICK_MAX)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Some beats on their way.
struct Batch {
    beats: Beats,
    link: Arc<Link>,
    due: Vec<Beat>,
    /// A client's own heartbeat would not be held for longer; then it is told again.
    limit: Duration,
}

impl Batch {
    async fn tell(self, job: String) {
        let mut open: BTreeSet<usize> = (0..self.due.len()).collect();
        tokio::select! {
            () = self.gather(job, &mut open) => {}
            () = self.beats.upstream.left(&self.link) => {}
            () = tokio::time::sleep(self.limit) => {}
        }
        if open.is_empty() {
            return;
        }
        let mut ledger = self.beats.shared.ledger.lock();
        for place in open {
            ledger.not_judged(&self.due[place]);
        }
        drop(ledger);
        self.beats.shared.due.notify_one();
    }

    /// Takes verdicts until all are there or the node gives no more. `open` are those without one.
    async fn gather(&self, job: String, open: &mut BTreeSet<usize>) {
        let beats: Vec<_> = {
            let ledger = self.beats.shared.ledger.lock();
            let told = |beat: &Beat| ClientBeat {
                path: beat.path.clone(),
                message: beat.message.clone(),
                deadline_ms: ledger.given(beat).map_or(0, millis),
                presence: None,
            };
            self.due.iter().map(told).collect()
        };
        let request = BeatRequest { job, beats };
        let ended = match AgentsClient::new(self.link.wire.clone()).beat(request).await {
            Err(status) => status,
            Ok(response) => {
                let mut verdicts = response.into_inner();
                loop {
                    match verdicts.message().await {
                        Ok(Some(verdict)) => self.judge(verdict, open),
                        Ok(None) => return,
                        Err(status) => break status,
                    }
                }
            }
        };
        tracing::debug!(address = self.link.address, cause = root_cause(&ended), "heartbeats not told");
        if is_own_trouble(&ended) {
            self.beats.upstream.doubt(&self.link, Doubt::Failed);
        }
    }

    fn judge(&self, verdict: BeatVerdict, open: &mut BTreeSet<usize>) {
        let place = usize::try_from(verdict.beat).expect("32 bits fit");
        match verdict.outage.as_str() {
            "" => {}
            metadata::OUTAGE_STOPPING => return self.beats.upstream.doubt(&self.link, Doubt::Stopping),
            metadata::OUTAGE_NO_LEADER => return self.beats.upstream.doubt(&self.link, Doubt::NoLeader),
            _ => return,
        }
        // A verdict twice, or on nothing, is no verdict.
        if !open.remove(&place) {
            return;
        }
        self.beats.upstream.heard();
        self.beats.meters.told();
        let verdict: Verdict = match Code::from(verdict.code) {
            Code::Ok => Ok(verdict.message),
            code => Err(Status::with_details(code, verdict.text, verdict.details)),
        };
        self.beats.shared.ledger.lock().judged(&self.due[place], &verdict);
    }
}
