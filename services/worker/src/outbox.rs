//! The calls of one process, in their order and many at a time: what gathers while a batch is under way is the next
//! one. So a process that has much to say says it in few commands, and one that has little waits for nobody.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tonic::Code;
use tripod_client::{Error, Scheduler, wire};
use tripod_proto::ray::{DecrementRefCountRequest, PutObjReply, SubmitTaskReply};
use wire::ray_call::Call;
use wire::{RayCall, RayResult};

use crate::error::{CallError, Lost};

/// Calls of one batch. A command of this many is a few tens of kilobytes.
const BATCH_CALLS_MAX: usize = 512;

/// Where calls are left. Cheap to clone; the calls end with the last clone.
#[derive(Debug, Clone)]
pub(crate) struct Outbox {
    sender: mpsc::UnboundedSender<Letter>,
}

/// Calls that come one after the other, and who wants to know what came of them.
#[derive(Debug)]
struct Letter {
    calls: Vec<RayCall>,
    answers: Option<Asker>,
}

type Asker = oneshot::Sender<Result<Vec<RayResult>, Lost>>;

impl Outbox {
    /// Sends for the worker or driver of this id, until no clone is left and everything is sent.
    pub(crate) fn start(scheduler: Arc<Scheduler>, process: u64) -> Self {
        let (sender, letters) = mpsc::unbounded_channel();
        tokio::spawn(send(scheduler, process, letters));
        Self { sender }
    }

    /// Leaves calls and waits for their answers, which are as many.
    ///
    /// # Errors
    /// The process was given up, or could not reach the cluster: it must begin anew.
    pub(crate) async fn ask(&self, calls: Vec<RayCall>) -> Result<Vec<RayResult>, Lost> {
        let (answers, answered) = oneshot::channel();
        self.leave(Letter { calls, answers: Some(answers) })?;
        answered.await.map_err(|_| Lost::ended())?
    }

    /// Leaves calls whose answers nobody waits for. Refusals are logged.
    pub(crate) fn tell(&self, calls: Vec<RayCall>) {
        // Without a process there is nobody whose references it would concern.
        let _ = self.leave(Letter { calls, answers: None });
    }

    fn leave(&self, letter: Letter) -> Result<(), Lost> {
        self.sender.send(letter).map_err(|_| Lost::ended())
    }
}

async fn send(scheduler: Arc<Scheduler>, process: u64, mut letters: mpsc::UnboundedReceiver<Letter>) {
    let mut gathered = Vec::new();
    while letters.recv_many(&mut gathered, BATCH_CALLS_MAX).await > 0 {
        let mut calls = Vec::new();
        let mut waiting = Vec::with_capacity(gathered.len());
        for letter in gathered.drain(..) {
            let Letter { calls: more, answers } = letter;
            match answers {
                None if joined(&mut calls, &more) => {}
                answers => {
                    waiting.push((more.len(), answers));
                    calls.extend(more);
                }
            }
        }
        let batch = wire::RayBatchRequest { workerid: Some(process), calls };
        match scheduler.batch(batch).await {
            Ok(answer) => hand_out(answer.results, waiting),
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
        let other = call(Call::Put(tripod_proto::ray::PutObjRequest { workerid: 0 }));
        assert!(!joined(&mut calls, std::slice::from_ref(&other)));
        calls.push(other);
        assert!(!joined(&mut calls, &[decrement(vec![3])]), "what is between them keeps its place");
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
