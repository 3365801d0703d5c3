//! The one conversation with the leader: the next batch leaves when the previous one is answered, so
//! that batches grow with the load and a beat never waits for a timer.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tripod_raft::ProposeError;

use super::wire::{decode_verdicts, encode_beats};
use super::{Asked, Verdict};
use crate::backend::Replica;

/// Beats that wait for their turn; beyond it, callers wait to enter.
pub(crate) const QUEUE_MAX: usize = 64 << 10;
/// Beats of one batch: the leader's state is locked against apply while they are looked up.
const BATCH_MAX: usize = 1024;
/// How long the leader may take. A beat that is asked twice does no harm.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Between two attempts while nobody answers.
const PAUSE: Duration = Duration::from_millis(50);

/// Runs until the queue is closed and empty.
pub(super) async fn run(backend: Arc<dyn Replica>, mut queue: mpsc::Receiver<Asked>) {
    let mut batch = Vec::new();
    loop {
        batch.retain(|asked: &Asked| !asked.verdict.is_closed());
        if batch.is_empty() && queue.recv_many(&mut batch, BATCH_MAX).await == 0 {
            return;
        }
        while batch.len() < BATCH_MAX {
            match queue.try_recv() {
                Ok(asked) => batch.push(asked),
                Err(_) => break,
            }
        }
        match ask(backend.as_ref(), &batch).await {
            Ok(verdicts) => {
                for (asked, verdict) in batch.drain(..).zip(verdicts) {
                    // An error only says that the caller has gone.
                    let _ = asked.verdict.send(verdict);
                }
            }
            Err(ProposeError::Stopped(_)) => return,
            Err(error) => {
                tracing::debug!(%error, beats = batch.len(), "heartbeats are held");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn ask(backend: &dyn Replica, batch: &[Asked]) -> Result<Vec<Verdict>, ProposeError> {
    let question = encode_beats(batch.iter().map(|asked| asked.beat));
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, backend.ask_leader(question))
        .await
        .map_err(|_| ProposeError::NoLeader("the leader does not answer".into()))??;
    decode_verdicts(answer, batch.len()).map_err(ProposeError::NoLeader)
}
