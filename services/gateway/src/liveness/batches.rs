//! The one conversation with the leader: the next batch leaves when the previous one is answered, so
//! that batches grow with the load and a sign of life never waits for a timer.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use crate::backend::Future;
use crate::outage::Outage;

/// Questions that wait for their turn; beyond it, callers wait to enter.
const QUEUE_MAX: usize = 64 << 10;
/// Questions of one batch: the leader's state is locked against apply while they are looked up.
const BATCH_MAX: usize = 1024;
/// How long the leader may take. What is asked twice does no harm.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Between two attempts while nobody answers.
const PAUSE: Duration = Duration::from_millis(50);

/// What nodes ask the leader of one kind of peers.
pub trait Conversation: Send + Sync + 'static {
    /// About one peer.
    type Question: Send + Sync + 'static;
    type Answer: Send + 'static;

    /// A batch as it travels.
    fn encode<'a>(&self, questions: impl Iterator<Item = &'a Self::Question>) -> Bytes;

    /// Asks whoever leads, once.
    fn ask(&self, batch: Bytes) -> Future<Result<Bytes, Outage>>;

    /// One answer for each of so many questions.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    fn decode(&self, answers: Bytes, expected: usize) -> Result<Vec<Self::Answer>, String>;
}

/// Asks the leader, many questions at a time. Clones share the conversation, which ends with the last one.
#[derive(Debug)]
pub struct Batches<C: Conversation> {
    queue: mpsc::Sender<Asked<C>>,
}

impl<C: Conversation> Clone for Batches<C> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone() }
    }
}

/// A question that waits for its answer.
struct Asked<C: Conversation> {
    question: C::Question,
    answer: oneshot::Sender<C::Answer>,
}

impl<C: Conversation> Batches<C> {
    /// Starts the task that asks. Must be called within a tokio runtime.
    #[must_use]
    pub fn start(conversation: C) -> Self {
        let (queue, asked) = mpsc::channel(QUEUE_MAX);
        tokio::spawn(run(conversation, asked));
        Self { queue }
    }

    /// The leader's answer, however long it takes: there may be none now. Who waits no longer drops the future.
    ///
    /// # Errors
    /// [`Outage::Stopping`] and no other.
    pub async fn ask(&self, question: C::Question) -> Result<C::Answer, Outage> {
        let (answer, told) = oneshot::channel();
        self.queue.send(Asked { question, answer }).await.map_err(|_| Outage::Stopping)?;
        told.await.map_err(|_| Outage::Stopping)
    }
}

/// Runs until the queue is closed and empty, or the node stops.
async fn run<C: Conversation>(conversation: C, mut queue: mpsc::Receiver<Asked<C>>) {
    let mut batch: Vec<Asked<C>> = Vec::new();
    loop {
        batch.retain(|asked| !asked.answer.is_closed());
        if batch.is_empty() && queue.recv_many(&mut batch, BATCH_MAX).await == 0 {
            return;
        }
        while batch.len() < BATCH_MAX {
            match queue.try_recv() {
                Ok(asked) => batch.push(asked),
                Err(_) => break,
            }
        }
        match ask(&conversation, &batch).await {
            Ok(answers) => {
                for (asked, answer) in batch.drain(..).zip(answers) {
                    // An error only says that the caller has gone.
                    let _ = asked.answer.send(answer);
                }
            }
            Err(Outage::Stopping) => return,
            Err(outage) => {
                tracing::debug!(%outage, signs = batch.len(), "signs of life are held");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn ask<C: Conversation>(conversation: &C, batch: &[Asked<C>]) -> Result<Vec<C::Answer>, Outage> {
    let question = conversation.encode(batch.iter().map(|asked| &asked.question));
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, conversation.ask(question))
        .await
        .map_err(|_| no_leader("the leader does not answer".to_owned()))??;
    conversation.decode(answer, batch.len()).map_err(no_leader)
}

fn no_leader(last: String) -> Outage {
    Outage::NoLeader { waited_ms: 0, last }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    /// Answers each question with its double, after what was ordered.
    struct Doubles {
        batches: Arc<Mutex<Vec<usize>>>,
        /// The first calls fail with these.
        outages: Mutex<Vec<Outage>>,
    }

    impl Conversation for Doubles {
        type Question = u8;
        type Answer = u8;

        fn encode<'a>(&self, questions: impl Iterator<Item = &'a u8>) -> Bytes {
            questions.map(|question| question * 2).collect()
        }

        fn ask(&self, batch: Bytes) -> Future<Result<Bytes, Outage>> {
            self.batches.lock().push(batch.len());
            let outage = self.outages.lock().pop();
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(10)).await;
                outage.map_or(Ok(batch), Err)
            })
        }

        fn decode(&self, answers: Bytes, expected: usize) -> Result<Vec<u8>, String> {
            (answers.len() == expected).then(|| answers.to_vec()).ok_or_else(|| "another number".to_owned())
        }
    }

    fn started(outages: Vec<Outage>) -> (Batches<Doubles>, Arc<Mutex<Vec<usize>>>) {
        let batches = Arc::<Mutex<Vec<usize>>>::default();
        let doubles = Doubles { batches: Arc::clone(&batches), outages: Mutex::new(outages) };
        (Batches::start(doubles), batches)
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_while_the_leader_answers_goes_together_with_the_next_question() {
        let (asking, batches) = started(Vec::new());
        let first = tokio::spawn({
            let asking = asking.clone();
            async move { asking.ask(1).await }
        });
        tokio::time::sleep(Duration::from_millis(5)).await;
        let (second, third) = tokio::join!(asking.ask(2), asking.ask(3));
        assert_eq!((first.await.unwrap(), second, third), (Ok(2), Ok(4), Ok(6)));
        assert_eq!(*batches.lock(), [1, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_asked_again_while_nobody_leads_and_not_when_the_node_stops() {
        let nobody = no_leader("nobody".to_owned());
        let (asking, batches) = started(vec![nobody.clone(), nobody]);
        assert_eq!(asking.ask(4).await, Ok(8));
        assert_eq!(batches.lock().len(), 3);
        let (asking, _) = started(vec![Outage::Stopping]);
        assert_eq!(asking.ask(4).await, Err(Outage::Stopping));
    }
}
