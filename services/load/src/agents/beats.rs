//! Heartbeats of an agent's tasks, told as agents tell them: gathered for a while, by a call of their own, and in a word as
//! soon as the leader keeps them. Which are due and in the set is decided by what agents decide it with.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tonic::transport::Channel;
use tonic::{Code, Status};
use tripod_beats::{Beat, Lease, Ledger, Sets, Taken, Verdict, millis};
use tripod_proto::metadata::OUTAGE_STOPPING;
use tripod_proto::tripod::v1::agents_client::AgentsClient;
use tripod_proto::tripod::v1::{BeatRequest, BeatSet, BeatVerdict, ClientBeat, SetWord};

use super::agent::PlayedAgent;
use super::tally::GaveUp;

/// Which part of a client's patience the cluster gets before an agent answers as it was answered before, in percent.
const PATIENCE_PERCENT: u32 = 60;
/// How long agents gather beats after a batch: a tenth of the heartbeat timeout, within these bounds.
const GATHERED_MIN: Duration = Duration::from_millis(50);
const GATHERED_MAX: Duration = Duration::from_secs(1);

/// Those of one agent.
#[derive(Debug, Default)]
pub(super) struct Beats {
    ledger: Mutex<Ledger>,
    sets: Mutex<Sets>,
    /// Told when a beat has become due.
    due: Notify,
}

/// What answers a beat.
#[derive(Debug)]
pub(super) enum Answered {
    Cluster(Verdict),
    /// The cluster was silent, and this is what it said the last time.
    Lease(Bytes),
    /// Nobody has in time.
    Nobody,
}

impl Beats {
    /// A task beats, and waits no longer than `patience` for an answer.
    pub(super) async fn made(&self, beat: &Beat, patience: Duration) -> Answered {
        let begun = Instant::now();
        let Some(mut verdict) = self.ledger().join(beat, Some(patience)) else { return Answered::Nobody };
        self.due.notify_one();
        if let Ok(Ok(verdict)) = timeout(patience * PATIENCE_PERCENT / 100, &mut verdict).await {
            return Answered::Cluster(verdict);
        }
        if let Lease::Answer(answer) = self.ledger().lease(beat) {
            return Answered::Lease(answer);
        }
        match timeout_at(begun + patience, verdict).await {
            Ok(Ok(verdict)) => Answered::Cluster(verdict),
            _ => Answered::Nobody,
        }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sets(&self) -> MutexGuard<'_, Sets> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn wait_for_due(&self) {
        loop {
            let due = self.due.notified();
            if self.ledger().has_due() {
                return;
            }
            due.await;
        }
    }
}

/// Tells the beats of an agent's tasks, each of which beats in every such interval, until it is dropped.
pub(super) async fn tell(agent: Arc<PlayedAgent>, every: Duration) {
    // The heartbeat timeout is twice as long.
    let gathered = (every / 5).clamp(GATHERED_MIN, GATHERED_MAX);
    let mut under_way = JoinSet::new();
    let mut next = Instant::now();
    loop {
        agent.beats().wait_for_due().await;
        sleep_until(next).await;
        next = Instant::now() + gathered;
        let due = agent.beats().ledger().take_due();
        let batch = Batch { agent: Arc::clone(&agent), due, every, word_limit: gathered };
        under_way.spawn(batch.tell());
        while under_way.try_join_next().is_some() {}
    }
}

/// Why a node gives no more verdicts.
#[derive(Debug)]
enum Trouble {
    Stopping,
    /// The call has ended so.
    Call(Status),
}

impl From<Status> for Trouble {
    fn from(status: Status) -> Self {
        Self::Call(status)
    }
}

/// Some beats on their way.
struct Batch {
    agent: Arc<PlayedAgent>,
    due: Vec<Beat>,
    every: Duration,
    /// How long the word on a set may take; then each beat is told.
    word_limit: Duration,
}

impl Batch {
    async fn tell(self) {
        let (life, channel) = self.agent.connection().await;
        let mut calls = AgentsClient::new(channel);
        let mut open: BTreeSet<usize> = (0..self.due.len()).collect();
        let asked = timeout(self.every, self.ask(&mut calls, &mut open)).await;
        if open.is_empty() {
            return self.offer(&mut calls).await;
        }
        if let Ok(Err(trouble)) = asked {
            let heard = match &trouble {
                Trouble::Stopping => GaveUp::Stopping,
                Trouble::Call(status) => GaveUp::Connection(status),
            };
            // If no node takes it, that is heard by whoever calls next.
            let _ = self.agent.reopen(life, heard).await;
        }
        let mut ledger = self.agent.beats().ledger();
        for place in open {
            ledger.not_judged(&self.due[place]);
        }
        drop(ledger);
        self.agent.beats().due.notify_one();
    }

    /// Tells the beats in a word, or each by itself if that does not do. `open` are those without a verdict.
    async fn ask(
        &self,
        calls: &mut AgentsClient<Channel>,
        open: &mut BTreeSet<usize>,
    ) -> Result<(), Trouble> {
        if !self.are_as_before(calls).await {
            return self.gather(calls, open).await;
        }
        let mut ledger = self.agent.beats().ledger();
        for place in std::mem::take(open) {
            let beat = &self.due[place];
            let Some(Taken { answer, .. }) = ledger.taken(beat) else { continue };
            ledger.judged(beat, &Ok(answer));
        }
        self.agent.tally().told_in_a_word(self.due.len());
        Ok(())
    }

    /// The beats of the batch, and how those stand that were taken before.
    fn due_and_taken(&self) -> Vec<(Beat, Option<Taken>)> {
        let ledger = self.agent.beats().ledger();
        self.due.iter().map(|beat| (beat.clone(), ledger.taken(beat))).collect()
    }

    /// Whether the cluster takes all of them as it did before, told as those of the set that it keeps.
    async fn are_as_before(&self, calls: &mut AgentsClient<Channel>) -> bool {
        let due = self.due_and_taken();
        let told = self.agent.beats().sets().told(&due);
        let Some((set, digest)) = told else { return false };
        match timeout(self.word_limit, self.word(calls, set)).await {
            Ok(Ok(SetWord::Same)) => true,
            Ok(Ok(SetWord::Differs) | Err(_)) | Err(_) => false,
            Ok(Ok(SetWord::None | SetWord::Unknown | SetWord::Kept)) => {
                self.agent.beats().sets().forget(digest);
                false
            }
        }
    }

    /// Has the leader keep a set in which the beats of the batch are, if they are in none.
    async fn offer(&self, calls: &mut AgentsClient<Channel>) {
        let due = self.due_and_taken();
        let offer = {
            let (beats, of_late) = (self.agent.beats(), self.every * 2);
            let (mut sets, ledger) = (beats.sets(), beats.ledger());
            sets.offer(&due, || ledger.taken_of_late(of_late))
        };
        let Some((set, kept)) = offer else { return };
        let word = timeout(self.every, self.word(calls, set)).await;
        let is_kept = matches!(word, Ok(Ok(SetWord::Kept)));
        self.agent.beats().sets().offered(is_kept.then_some(kept));
    }

    /// The word on a set.
    async fn word(&self, calls: &mut AgentsClient<Channel>, set: BeatSet) -> Result<SetWord, Status> {
        let request = BeatRequest { job: self.agent.job().to_owned(), beats: Vec::new(), set: Some(set) };
        let mut verdicts = calls.beat(request).await?.into_inner();
        Ok(verdicts.message().await?.map_or(SetWord::None, |verdict| verdict.set()))
    }

    /// Tells each by itself, and takes verdicts until all are there or the node gives no more.
    async fn gather(
        &self,
        calls: &mut AgentsClient<Channel>,
        open: &mut BTreeSet<usize>,
    ) -> Result<(), Trouble> {
        let beats = {
            let ledger = self.agent.beats().ledger();
            let told = |beat: &Beat| ClientBeat {
                path: beat.path.clone(),
                message: beat.message.clone(),
                deadline_ms: ledger.given(beat).map_or(0, millis),
                presence: None,
            };
            self.due.iter().map(told).collect()
        };
        let request = BeatRequest { job: self.agent.job().to_owned(), beats, set: None };
        let mut verdicts = calls.beat(request).await?.into_inner();
        while let Some(verdict) = verdicts.message().await? {
            self.judge(verdict, open)?;
        }
        Ok(())
    }

    /// Takes one verdict.
    ///
    /// # Errors
    /// The node is stopping.
    fn judge(&self, verdict: BeatVerdict, open: &mut BTreeSet<usize>) -> Result<(), Trouble> {
        match verdict.outage.as_str() {
            "" => {}
            OUTAGE_STOPPING => return Err(Trouble::Stopping),
            _ => return Ok(()),
        }
        let place = usize::try_from(verdict.beat).unwrap_or(usize::MAX);
        let (Some(beat), true) = (self.due.get(place), open.remove(&place)) else { return Ok(()) };
        let verdict: Verdict = match Code::from(verdict.code) {
            Code::Ok => Ok(verdict.message),
            code => Err(Status::with_details(code, verdict.text, verdict.details)),
        };
        self.agent.beats().ledger().judged(beat, &verdict);
        self.agent.tally().told_by_itself();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    fn beat() -> Beat {
        Beat { path: "/Heartbeat".into(), message: Bytes::from_static(b"task") }
    }

    fn judge(beats: &Beats, verdict: &Verdict) {
        assert_eq!(beats.ledger().take_due(), [beat()]);
        beats.ledger().judged(&beat(), verdict);
    }

    #[tokio::test(start_paused = true)]
    async fn a_beat_is_answered_by_the_cluster_and_else_as_it_was_before() {
        let (beats, one) = (Beats::default(), beat());
        let mut first = Box::pin(beats.made(&one, PATIENCE));
        assert!(first.as_mut().now_or_never().is_none());
        beats.wait_for_due().await;
        judge(&beats, &Ok(Bytes::from_static(b"yes")));
        assert!(matches!(first.await, Answered::Cluster(Ok(answer)) if answer == "yes"));
        let begun = Instant::now();
        assert!(matches!(beats.made(&one, PATIENCE).await, Answered::Lease(answer) if answer == "yes"));
        assert_eq!(begun.elapsed(), PATIENCE * PATIENCE_PERCENT / 100, "and not sooner");
        judge(&beats, &Err(Status::aborted("dead")));
        assert!(matches!(beats.made(&one, PATIENCE).await, Answered::Nobody), "it was refused");
    }
}
