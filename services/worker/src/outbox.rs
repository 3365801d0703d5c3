//! The calls of one process, in their order and many at a time: what gathers while a batch is under way is the next
//! one. So a process that has much to say says it in few commands, and one that has little waits for nobody.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout_at};
use tonic::Code;
use tripod_client::{Error, Scheduler, wire};
use tripod_proto::ray::{DecrementRefCountRequest, IncrementRefCountRequest, PutObjReply, SubmitTaskReply};
use wire::ray_call::Call;
use wire::{RayCall, RayResult};

use crate::error::{CallError, Lost};

/// Calls of one batch. A command of this many is a few tens of kilobytes.
const BATCH_CALLS_MAX: usize = 512;
/// After a batch of so many calls the next one waits for others: a process that has much to say is not in a hurry
/// for each, and every batch costs the cluster a command.
const MANY: usize = 32;
const GATHER: Duration = Duration::from_millis(2);
/// How long references that are given up wait for other calls.
const LAZY: Duration = Duration::from_millis(10);

/// Where calls are left. Cheap to clone; the calls end with the last clone.
#[derive(Debug, Clone)]
pub(crate) struct Outbox {
    sender: mpsc::UnboundedSender<Letter>,
}

/// Calls that come one after the other, and who wants to know what came of them.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) calls: Vec<RayCall>,
    answers: Option<Asker>,
    /// Nothing waits for it to happen: it goes with what comes next, or a little later.
    lazy: bool,
}

type Asker = oneshot::Sender<Result<Vec<RayResult>, Lost>>;

impl Outbox {
    /// Sends for the worker or driver of this id, until no clone is left and everything is sent.
    pub(crate) fn start(scheduler: Arc<Scheduler>, process: u64) -> Self {
        let (sender, letters) = mpsc::unbounded_channel();
        tokio::spawn(send(scheduler, process, letters));
        Self { sender }
    }

    /// One whose letters a test reads.
    #[cfg(test)]
    pub(crate) fn scripted() -> (Self, mpsc::UnboundedReceiver<Letter>) {
        let (sender, letters) = mpsc::unbounded_channel();
        (Self { sender }, letters)
    }

    /// Leaves calls and waits for their answers, which are as many.
    ///
    /// # Errors
    /// The process was given up, or could not reach the cluster: it must begin anew.
    pub(crate) async fn ask(&self, calls: Vec<RayCall>) -> Result<Vec<RayResult>, Lost> {
        let (answers, answered) = oneshot::channel();
        self.leave(Letter { calls, answers: Some(answers), lazy: false })?;
        answered.await.map_err(|_| Lost::ended())?
    }

    /// Leaves calls whose answers nobody waits for. Refusals are logged.
    pub(crate) fn tell(&self, calls: Vec<RayCall>) {
        // Without a process there is nobody whose references it would concern.
        let _ = self.leave(Letter { calls, answers: None, lazy: false });
    }

    /// Gives up references some time: no call that comes has to wait until that is known.
    pub(crate) fn give_up(&self, objects: Vec<u64>) {
        let _ = self.leave(Letter { calls: vec![decrement(objects)], answers: None, lazy: true });
    }

    fn leave(&self, letter: Letter) -> Result<(), Lost> {
        self.sender.send(letter).map_err(|_| Lost::ended())
    }
}

async fn send(scheduler: Arc<Scheduler>, process: u64, mut letters: mpsc::UnboundedReceiver<Letter>) {
    let mut gathered = Vec::new();
    let mut busy = false;
    while letters.recv_many(&mut gathered, BATCH_CALLS_MAX).await > 0 {
        if gathered.iter().all(|letter| letter.lazy) {
            company(&mut letters, &mut gathered).await;
        }
        if std::mem::take(&mut busy) && gathered.len() < BATCH_CALLS_MAX {
            sleep(GATHER).await;
            while gathered.len() < BATCH_CALLS_MAX
                && let Ok(more) = letters.try_recv()
            {
                gathered.push(more);
            }
        }
        let mut calls = Vec::new();
        let mut waiting = Vec::with_capacity(gathered.len());
        for letter in gathered.drain(..) {
            let Letter { calls: more, answers, .. } = letter;
            match answers {
                None if joined(&mut calls, &more) => {}
                answers => {
                    waiting.push((more.len(), answers));
                    calls.extend(more);
                }
            }
        }
        busy = calls.len() >= MANY;
        let ends = calls.iter().any(|call| matches!(call.call, Some(Call::Leave(_))));
        let batch = wire::RayBatchRequest { workerid: Some(process), calls };
        match scheduler.batch(batch).await {
            Ok(answer) => hand_out(answer.results, waiting),
            Err(error) if ends => tracing::debug!(%error, process, "it leaves, and that is not known"),
            Err(error) => {
                // Whoever waits is told why; those who come later, that it has ended.
                let lost = Lost::of(&error);
                tracing::warn!(%error, process, "the scheduler does not know this process any more");
                for (_, answers) in waiting {
                    let _ = answers.map(|answers| answers.send(Err(lost.clone())));
                }
                return;
            }
        }
        if ends {
            // All references of a process that has left are gone.
            return;
        }
    }
}

/// Waits a little for something that is not lazy.
async fn company(letters: &mut mpsc::UnboundedReceiver<Letter>, gathered: &mut Vec<Letter>) {
    let until = Instant::now() + LAZY;
    while gathered.len() < BATCH_CALLS_MAX
        && let Ok(Some(letter)) = timeout_at(until, letters.recv()).await
    {
        let lazy = letter.lazy;
        gathered.push(letter);
        if !lazy {
            return;
        }
    }
}

/// References that are dropped one after the other are dropped in one call.
fn joined(calls: &mut [RayCall], more: &[RayCall]) -> bool {
    let [RayCall { call: Some(Call::Decrement(more)), .. }] = more else { return false };
    let Some(RayCall { call: Some(Call::Decrement(last)), .. }) = calls.last_mut() else { return false };
    last.objectid.extend(&more.objectid);
    true
}

fn hand_out(results: Vec<RayResult>, waiting: Vec<(usize, Option<Asker>)>) {
    let mut results = results.into_iter();
    for (count, answers) in waiting {
        let part: Vec<_> = results.by_ref().take(count).collect();
        match answers {
            Some(answers) => {
                // Whoever has gone away does not want to know.
                let _ = answers.send(Ok(part));
            }
            None => {
                for refused in part.iter().filter(|result| result.code != Code::Ok as i32) {
                    tracing::warn!(code = refused.code, text = refused.text, "the scheduler refused a call");
                }
            }
        }
    }
}

/// A call without options.
pub(crate) fn call(call: Call) -> RayCall {
    RayCall { call: Some(call), options: None, run: None, child: None }
}

/// Gives up references.
pub(crate) fn decrement(objects: Vec<u64>) -> RayCall {
    call(Call::Decrement(DecrementRefCountRequest { objectid: objects }))
}

/// The process ends.
pub(crate) fn leave(process: u64) -> RayCall {
    call(Call::Leave(wire::RayLeaveRequest { workerid: process }))
}

/// Takes references.
pub(crate) fn increment(objects: Vec<u64>) -> RayCall {
    call(Call::Increment(IncrementRefCountRequest { objectid: objects }))
}

/// What a refused call says.
fn accepted(result: RayResult) -> Result<Option<wire::ray_result::Reply>, CallError> {
    match result.code {
        0 => Ok(result.reply),
        code => Err(CallError::Refused { code: Code::from(code), text: result.text, reason: result.reason }),
    }
}

/// The answer to a call that answers nothing.
pub(crate) fn done(result: RayResult) -> Result<(), CallError> {
    accepted(result).map(|_| ())
}

/// The answer to a submitted task.
pub(crate) fn submitted(result: RayResult) -> Result<SubmitTaskReply, CallError> {
    match accepted(result)? {
        Some(wire::ray_result::Reply::Submit(reply)) => Ok(reply),
        _ => Err(CallError::Unexpected),
    }
}

/// The answer to a put.
pub(crate) fn put(result: RayResult) -> Result<PutObjReply, CallError> {
    match accepted(result)? {
        Some(wire::ray_result::Reply::Put(reply)) => Ok(reply),
        _ => Err(CallError::Unexpected),
    }
}

/// The answer to a cancel.
pub(crate) fn cancelled(result: RayResult) -> Result<wire::RayCancelReply, CallError> {
    match accepted(result)? {
        Some(wire::ray_result::Reply::Cancel(reply)) => Ok(reply),
        _ => Err(CallError::Unexpected),
    }
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused { code, reason, message, .. } => Self::Refused { code, text: message, reason },
            error => Self::Lost(Lost::of(&error)),
        }
    }
}

impl Lost {
    fn of(error: &Error) -> Self {
        Self { why: error.to_string().into() }
    }

    fn ended() -> Self {
        Self { why: "this process has left the scheduler, or was given up by it".into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_dropped_one_after_the_other_become_one_call() {
        let mut calls = vec![decrement(vec![1])];
        assert!(joined(&mut calls, &[decrement(vec![2, 1])]));
        assert_eq!(calls, [decrement(vec![1, 2, 1])]);
        let other = call(Call::Put(tripod_proto::ray::PutObjRequest { workerid: 0, hold: false }));
        assert!(!joined(&mut calls, std::slice::from_ref(&other)));
        calls.push(other);
        assert!(!joined(&mut calls, &[decrement(vec![3])]), "what is between them keeps its place");
    }

    #[tokio::test(start_paused = true)]
    async fn references_that_are_given_up_go_with_the_next_call() {
        let (outbox, mut letters) = Outbox::scripted();
        outbox.give_up(vec![1]);
        let mut gathered = vec![letters.recv().await.unwrap()];
        outbox.give_up(vec![2]);
        outbox.tell(Vec::new());
        outbox.give_up(vec![3]);
        company(&mut letters, &mut gathered).await;
        assert_eq!(gathered.len(), 3, "what is not lazy ends the wait");
        let begun = Instant::now();
        let mut gathered = vec![letters.recv().await.unwrap()];
        company(&mut letters, &mut gathered).await;
        assert_eq!((gathered.len(), begun.elapsed()), (1, LAZY));
    }

    #[tokio::test]
    async fn answers_go_to_those_who_asked() {
        let result = |text: &str| RayResult { text: text.into(), ..RayResult::default() };
        let (first, first_answer) = oneshot::channel();
        let (second, second_answer) = oneshot::channel();
        let waiting = vec![(2, Some(first)), (1, None), (1, Some(second))];
        hand_out(vec![result("a"), result("b"), result("c"), result("d")], waiting);
        assert_eq!(first_answer.await.unwrap().unwrap(), [result("a"), result("b")]);
        assert_eq!(second_answer.await.unwrap().unwrap(), [result("d")]);
    }
}
