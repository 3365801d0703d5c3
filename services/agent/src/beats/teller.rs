//! Tells due beats to the cluster, in batches.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::{Code, Status};
use tripod_beats::{Beat, Taken, Verdict, millis};
use tripod_proto::metadata;
use tripod_proto::tripod::v1::agents_client::AgentsClient;
use tripod_proto::tripod::v1::{BeatRequest, BeatSet, BeatVerdict, ClientBeat, SetWord};

use super::Beats;
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
            let gathering = (heartbeat_timeout / 10).clamp(TICK_MIN, TICK_MAX);
            next = Instant::now() + gathering;
            // Beats that are made while there is no link are told together when there is one.
            let link = self.beats.upstream.link().await;
            let due = {
                let mut ledger = self.beats.shared.ledger.lock();
                ledger.forget_older(self.beats.upstream.timing().max_outage);
                ledger.take_due()
            };
            if !due.is_empty() {
                let limit = (heartbeat_timeout / 2).max(self.beats.upstream.timing().answer_limit);
                let (beats, job) = (self.beats.clone(), self.job_name.clone());
                let batch =
                    Batch { beats, job, link, due, limit, word_limit: gathering, of_late: heartbeat_timeout };
                under_way.spawn(batch.tell());
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

/// Some beats on their way.
struct Batch {
    beats: Beats,
    job: String,
    link: Arc<Link>,
    due: Vec<Beat>,
    /// A client's own heartbeat would not be held for longer; then it is told again.
    limit: Duration,
    /// How long the word on a set may take; then each beat is told.
    word_limit: Duration,
    /// How long ago a client that lives has made its last beat, at most.
    of_late: Duration,
}

impl Batch {
    async fn tell(self) {
        let mut open: BTreeSet<usize> = (0..self.due.len()).collect();
        tokio::select! {
            () = self.ask(&mut open) => {}
            () = self.beats.upstream.left(&self.link) => {}
            () = tokio::time::sleep(self.limit) => {}
        }
        if open.is_empty() {
            return self.offer().await;
        }
        let mut ledger = self.beats.shared.ledger.lock();
        for place in open {
            ledger.not_judged(&self.due[place]);
        }
        drop(ledger);
        self.beats.shared.due.notify_one();
    }

    /// Tells the beats in a word, or each by itself if that does not do. `open` are those without a verdict.
    async fn ask(&self, open: &mut BTreeSet<usize>) {
        if self.are_as_before().await {
            self.beats.upstream.heard();
            let mut ledger = self.beats.shared.ledger.lock();
            for place in std::mem::take(open) {
                let beat = &self.due[place];
                // It is being told just now, so nobody else has judged it.
                let Some(Taken { answer, .. }) = ledger.taken(beat) else { continue };
                self.beats.meters.told();
                self.beats.meters.told_in_a_word();
                ledger.judged(beat, &Ok(answer));
            }
            return;
        }
        self.gather(open).await;
    }

    /// The beats of the batch, and how those stand that were taken before.
    fn due_and_taken(&self) -> Vec<(Beat, Option<Taken>)> {
        let ledger = self.beats.shared.ledger.lock();
        self.due.iter().map(|beat| (beat.clone(), ledger.taken(beat))).collect()
    }

    /// Whether the cluster takes all beats of the batch as it did before, told as those of the set that it keeps.
    async fn are_as_before(&self) -> bool {
        let due = self.due_and_taken();
        let told = self.beats.shared.sets.lock().told(&due);
        let Some((set, digest)) = told else { return false };
        match tokio::time::timeout(self.word_limit, self.word(set)).await {
            Ok(Ok(SetWord::Same)) => true,
            // A node that is slow, or does not answer, is told each beat, and judged by that.
            Ok(Ok(SetWord::Differs) | Err(_)) | Err(_) => false,
            Ok(Ok(SetWord::None | SetWord::Unknown | SetWord::Kept)) => {
                self.beats.shared.sets.lock().forget(digest);
                false
            }
        }
    }

    /// Has the leader keep a set in which the beats of the batch are, if they are in none.
    async fn offer(&self) {
        let due = self.due_and_taken();
        let offer = {
            let (mut sets, ledger) = (self.beats.shared.sets.lock(), self.beats.shared.ledger.lock());
            sets.offer(&due, || ledger.taken_of_late(self.of_late))
        };
        let Some((set, kept)) = offer else { return };
        let word = tokio::time::timeout(self.limit, self.word(set)).await;
        let is_kept = matches!(word, Ok(Ok(SetWord::Kept)));
        tracing::debug!(address = self.link.address, is_kept, "set of heartbeats offered");
        self.beats.shared.sets.lock().offered(is_kept.then_some(kept));
    }

    /// The word on a set; a node that does not know sets has none.
    async fn word(&self, set: BeatSet) -> Result<SetWord, Status> {
        let request = BeatRequest { job: self.job.clone(), beats: Vec::new(), set: Some(set) };
        let mut verdicts = AgentsClient::new(self.link.wire.clone()).beat(request).await?.into_inner();
        Ok(verdicts.message().await?.map_or(SetWord::None, |verdict| verdict.set()))
    }

    /// Takes verdicts until all are there or the node gives no more. `open` are those without one.
    async fn gather(&self, open: &mut BTreeSet<usize>) {
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
        let request = BeatRequest { job: self.job.clone(), beats, set: None };
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
        if verdict.set() != SetWord::None {
            return;
        }
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
