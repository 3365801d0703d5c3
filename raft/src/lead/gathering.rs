//! Proposals that begin together are appended together.
//!
//! Whoever polls many calls in a row, such as the ops of one frame, does so within [`gathered`]. What this thread proposes
//! until the scope ends reaches the engine in one message, in its order: a message for each costs the engine more than
//! what it does for the entry. Scopes reach the engine in the order in which they end. The first proposal of a scope goes
//! its own way, as it would outside, if nothing waits that was gathered before: one alone must not wait for a task. If there
//! are several, as far as is known, it goes with the others: alone it would be appended, flushed and sent to followers before
//! them, and all of them would wait for that.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::submit::Proposer;
use crate::base::error::{Applied, ProposeError};

/// Proposals of one message. Those beyond go in the next one, so that no append becomes too long.
const MESSAGE_PROPOSALS_MAX: usize = 256;
/// Messages that may wait until the engine takes them.
const MESSAGES_MAX: usize = 1024;

type Outcome = Result<Applied, ProposeError>;

thread_local! {
    /// Of the scope in which this thread is, if it is in one.
    static SCOPE: RefCell<Option<Scope>> = const { RefCell::new(None) };
}

/// What has begun in a scope.
struct Scope {
    /// Whether the next proposal goes with others: one has been made, or there are several.
    goes_together: bool,
    gathered: Option<(Gatherer, Message)>,
}

/// Proposals that go together.
#[derive(Default)]
struct Message {
    payloads: Vec<Bytes>,
    answers: Vec<oneshot::Sender<Outcome>>,
}

/// Where messages of one node go. Clones are the same.
#[derive(Clone)]
pub(super) struct Gatherer {
    messages: mpsc::Sender<Message>,
    /// Messages that the engine has not taken.
    waiting: Arc<AtomicUsize>,
}

/// Runs `begin`. What it proposes is appended together, in its order. Within a scope of this thread that is the outer one's.
/// `proposals`: how many there are at least, as far as is known.
pub fn gathered(proposals: usize, begin: &mut dyn FnMut()) {
    let is_outer = SCOPE.with_borrow_mut(|scope| {
        let is_outer = scope.is_none();
        scope.get_or_insert_with(|| Scope { goes_together: proposals > 1, gathered: None });
        is_outer
    });
    let _end = is_outer.then_some(ScopeEnd);
    begin();
}

/// Ends the scope of this thread, also if what runs in it panics.
struct ScopeEnd;

impl Drop for ScopeEnd {
    fn drop(&mut self) {
        let scope = SCOPE.with_borrow_mut(Option::take);
        if let Some((gatherer, message)) = scope.and_then(|scope| scope.gathered) {
            gatherer.send(message);
        }
    }
}

impl Message {
    async fn propose(self, proposer: Proposer, handed: oneshot::Sender<()>) {
        let Self { payloads, answers } = self;
        let mut answers = answers.into_iter();
        // A caller that gave up needs no answer.
        let answer = |outcome| drop(answers.next().map(|answer| answer.send(outcome)));
        proposer.propose_each(payloads, || _ = handed.send(()), answer).await;
    }
}

impl Gatherer {
    /// Starts the task that hands messages to this engine. It ends with the last clone.
    pub(super) fn start(proposer: Proposer) -> Self {
        let (messages, mut taken) = mpsc::channel::<Message>(MESSAGES_MAX);
        let waiting = Arc::new(AtomicUsize::new(0));
        let gatherer = Self { messages, waiting: Arc::clone(&waiting) };
        tokio::spawn(async move {
            while let Some(message) = taken.recv().await {
                let (handed, mut is_handed) = oneshot::channel();
                let mut proposing = Box::pin(message.propose(proposer.clone(), handed));
                let is_open = tokio::select! {
                    biased;
                    () = &mut proposing => false,
                    _ = &mut is_handed => true,
                };
                waiting.fetch_sub(1, Ordering::Release);
                if is_open {
                    tokio::spawn(proposing);
                }
            }
        });
        gatherer
    }

    /// Takes a proposal, if this thread is in a scope in which it need not go its own way, and gives what its outcome comes
    /// by.
    pub(super) fn take(&self, payload: &Bytes) -> Option<oneshot::Receiver<Outcome>> {
        SCOPE.with_borrow_mut(|scope| {
            let scope = scope.as_mut()?;
            let goes_together = std::mem::replace(&mut scope.goes_together, true);
            if !goes_together && self.waiting.load(Ordering::Acquire) == 0 {
                return None;
            }
            let (gatherer, message) =
                scope.gathered.get_or_insert_with(|| (self.clone(), Message::default()));
            if !Arc::ptr_eq(&gatherer.waiting, &self.waiting) {
                // Of another node of this process, in a scope of its own all the same.
                return None;
            }
            let (answer, outcome) = oneshot::channel();
            message.payloads.push(payload.clone());
            message.answers.push(answer);
            if message.payloads.len() == MESSAGE_PROPOSALS_MAX {
                self.send(std::mem::take(message));
            }
            Some(outcome)
        })
    }

    fn send(&self, message: Message) {
        if message.payloads.is_empty() {
            return;
        }
        self.waiting.fetch_add(1, Ordering::Release);
        let Err(refused) = self.messages.try_send(message) else { return };
        self.waiting.fetch_sub(1, Ordering::Release);
        let (message, error) = match refused {
            mpsc::error::TrySendError::Full(message) => {
                let why = format!("{MESSAGES_MAX} messages of commands wait for this node's engine");
                (message, ProposeError::Overloaded(why))
            }
            mpsc::error::TrySendError::Closed(message) => {
                (message, ProposeError::Stopped("this node is stopping".into()))
            }
        };
        for answer in message.answers {
            let _ = answer.send(Err(error.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of three proposals of a scope of which so much is known go together.
    fn together(proposals: usize) -> Vec<bool> {
        let (messages, _engine) = mpsc::channel(MESSAGES_MAX);
        let gatherer = Gatherer { messages, waiting: Arc::default() };
        let mut together = Vec::new();
        gathered(proposals, &mut || {
            together = (0..3).map(|_| gatherer.take(&Bytes::new()).is_some()).collect();
        });
        together
    }

    #[test]
    fn one_alone_goes_its_own_way_and_the_first_of_several_with_the_others() {
        assert_eq!(together(3), [true, true, true]);
        assert_eq!(together(1), [false, true, true]);
        assert_eq!(together(0), [false, true, true], "nobody knows how many there are");
    }
}
