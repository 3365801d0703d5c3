//! Heartbeats on their way to the leader. Each node of MindSpore sends one in three seconds, and nobody waits for it: those
//! of a moment go together, so that what the leader pays for them is a call for each node of ours and moment, however many
//! they are.

use std::time::Duration;

use prost::Message as _;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tripod_gateway::{Channel, Gateway, Outage};

use super::wire::Report;
use super::{Beat, PATIENCE};

/// How long they are gathered. A node is silent after ten of its heartbeats, which this is a small part of.
const MOMENT: Duration = Duration::from_millis(100);
/// Heartbeats that wait; of more nobody is told. All nodes of a cluster send two of them before a leader is given up on.
const WAITING_MAX: usize = 64 << 10;
/// Heartbeats of one call, while which the leader's memory is locked one by one.
const BATCH_MAX: usize = 1024;
/// How long the leader may take for one call. What is told twice does no harm.
const ANSWER_TIME: Duration = Duration::from_secs(2);
/// Between two attempts while nobody answers.
const PAUSE: Duration = Duration::from_millis(50);

/// Clones share the task, which ends with the last one.
#[derive(Clone)]
pub(super) struct Gathered(mpsc::Sender<Beat>);

impl Gathered {
    /// Must be called within a tokio runtime.
    pub(super) fn start(gateway: Gateway) -> Self {
        let (beats, waiting) = mpsc::channel(WAITING_MAX);
        tokio::spawn(run(gateway, waiting));
        Self(beats)
    }

    pub(super) fn note(&self, beat: Beat) {
        if self.0.try_send(beat).is_err() {
            tracing::debug!("a heartbeat of a MindSpore node is not told: too many wait");
        }
    }
}

/// Runs until nobody notes anything any more, or the node stops.
async fn run(gateway: Gateway, mut waiting: mpsc::Receiver<Beat>) {
    let mut beats = Vec::new();
    while waiting.recv_many(&mut beats, BATCH_MAX).await > 0 {
        // What comes meanwhile waits, and goes with these.
        sleep(MOMENT).await;
        while let Ok(beat) = waiting.try_recv() {
            beats.push(beat);
        }
        for batch in beats.chunks(BATCH_MAX) {
            match timeout(PATIENCE, tell(&gateway, batch)).await {
                Ok(Ok(())) => {}
                Ok(Err(outage)) => {
                    tracing::debug!(%outage, "heartbeats of MindSpore nodes are told no more");
                    return;
                }
                Err(_) => tracing::debug!("heartbeats of MindSpore nodes are not told in time"),
            }
        }
        beats.clear();
    }
}

/// Tells the leader, however long that takes.
///
/// # Errors
/// [`Outage::Stopping`] and no other.
async fn tell(gateway: &Gateway, batch: &[Beat]) -> Result<(), Outage> {
    let report = Report::of(batch.iter().copied()).encode_to_vec().into();
    loop {
        match timeout(ANSWER_TIME, gateway.ask_leader(Channel::MINDSPORE, &report)).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(Outage::Stopping)) => return Err(Outage::Stopping),
            Ok(Err(outage)) => {
                tracing::debug!(%outage, beats = batch.len(), "heartbeats of MindSpore nodes are held");
                sleep(PAUSE).await;
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use parking_lot::Mutex;
    use tripod_state::ids::JobId;
    use tripod_state::mindspore::Member;

    use super::*;

    fn beat(member: u64) -> Beat {
        Beat::Topology { job: JobId(1), member: Member(member) }
    }

    /// How many heartbeats each call had.
    fn heard(gateway: &Gateway) -> Arc<Mutex<Vec<usize>>> {
        let calls = Arc::<Mutex<Vec<usize>>>::default();
        let heard = Arc::clone(&calls);
        gateway.answer_peers(
            Channel::MINDSPORE,
            Arc::new(move |report: Bytes| {
                let report = Report::decode(report).map_err(|error| error.to_string())?;
                heard.lock().push(report.beats.len());
                Ok(Bytes::new())
            }),
        );
        calls
    }

    #[tokio::test(start_paused = true)]
    async fn heartbeats_of_a_moment_are_told_by_one_call_and_many_by_several() {
        let (gateway, _backend) = Gateway::in_memory();
        let calls = heard(&gateway);
        let gathered = Gathered::start(gateway);
        for number in 0..3 {
            gathered.note(beat(number));
            sleep(MOMENT / 4).await;
        }
        sleep(MOMENT).await;
        assert_eq!(*calls.lock(), [3]);
        let more = BATCH_MAX + 1;
        for number in 0..more {
            gathered.note(beat(number as u64));
        }
        sleep(MOMENT * 2).await;
        assert_eq!(*calls.lock(), [3, BATCH_MAX, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn heartbeats_are_told_again_until_somebody_leads_and_forgotten_when_it_takes_too_long() {
        let (gateway, backend) = Gateway::in_memory();
        let calls = heard(&gateway);
        let gathered = Gathered::start(gateway);
        backend.depose();
        gathered.note(beat(1));
        sleep(PATIENCE / 2).await;
        backend.elect();
        sleep(PAUSE * 2).await;
        assert_eq!(*calls.lock(), [1]);
        backend.depose();
        gathered.note(beat(2));
        sleep(PATIENCE * 2).await;
        backend.elect();
        sleep(PATIENCE).await;
        assert_eq!(*calls.lock(), [1], "after an election everybody has time anew");
        gathered.note(beat(3));
        sleep(MOMENT * 2).await;
        assert_eq!(*calls.lock(), [1, 1]);
    }
}
