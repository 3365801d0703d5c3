//! One batch under way to the leader: in one message what that takes together, and the rest one by one.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::join_all;
use tokio::sync::OwnedSemaphorePermit;
use tonic::transport::Channel;
use tonic::{Code, Response, Status};
use tripod_proto::tripod::peer::v1::leader_client::LeaderClient;
use tripod_proto::tripod::peer::v1::{Blob, ProposeRequest, ProposeResponse};
use tripod_state::ids::NodeId;
use tripod_state::level;

use super::{Answer, DEPOSED_GRACE, Job};
use crate::base::codec;
use crate::base::error::{ProposeError, leader_too_old};
use crate::lead::batch_numbers::{BatchNumber, BatchNumbers};
use crate::lead::leader_link::{LeaderLink, Target};
use crate::lead::outcome::Outcome;

/// One batch under way.
pub(super) struct Call {
    pub(super) link: LeaderLink,
    pub(super) target: Target,
    pub(super) client: LeaderClient<Channel>,
    pub(super) broken: Arc<AtomicBool>,
    pub(super) takes_newer: Arc<AtomicBool>,
    pub(super) numbers: BatchNumbers,
}

/// What a call sends.
pub(super) struct Load {
    call: Call,
    /// In one message.
    together: Vec<Job>,
    /// That of the message, if there is one.
    number: Option<BatchNumber>,
    alone: Vec<Job>,
}

impl Call {
    /// A batch as the leader takes it.
    pub(super) fn load(self, batch: Vec<Job>) -> Load {
        let (together, alone) = match self.takes_newer.load(Ordering::Relaxed) {
            true => (batch, Vec::new()),
            false => batch.into_iter().partition(Job::is_of_first_level),
        };
        // What is not sent has no number, since the leader would wait for it.
        let number = (!together.is_empty()).then(|| self.numbers.draw());
        Load { call: self, together, number, alone }
    }

    /// Gives `place` back once there is an answer, or another leader, whose batches need not wait. An answer
    /// counts from when it is sorted: the next batch must know by then whether the connection is broken.
    async fn send_batch(
        &self,
        batch: Vec<Job>,
        number: Option<BatchNumber>,
        mut place: Option<OwnedSemaphorePermit>,
    ) {
        let Some(needs) = batch.iter().map(|job| job.needs).max() else { return };
        let commands = batch.iter().map(|job| job.payload.clone()).collect();
        let needs_max = (needs > level::FIRST).then_some(needs.0);
        let (batch_number, oldest) = number.as_ref().map_or((0, 0), |batch| (batch.number, batch.oldest));
        let request = ProposeRequest { commands, needs_max, batch_number, oldest };
        let request = self.link.caller(self.target.leader).request(request);
        let mut client = self.client.clone();
        let link = self.link.clone();
        let target = self.target.clone();
        let given_up = async {
            link.replaced(&target).await;
            drop(place.take());
            tokio::time::sleep(DEPOSED_GRACE).await;
        };
        let answer = tokio::select! {
            biased;
            answer = client.propose(request) => answer,
            () = given_up => Err(Status::aborted("it lost the leadership and did not answer")),
        };
        let count = batch.len();
        let answers = self.sort(answer, count);
        self.note_contact(&answers);
        drop((number, place));
        for (job, answer) in batch.into_iter().zip(answers) {
            // A caller that gave up needs no answer.
            let _ = job.done.send(answer);
        }
    }

    /// Sends a command that needs more than the first level to a leader that may not take it in a batch.
    async fn send_alone(&self, Job { payload, needs, done }: Job) {
        let request = self.link.caller(self.target.leader).request(Blob { data: payload });
        let mut client = self.client.clone();
        let answer = tokio::select! {
            biased;
            answer = client.propose_newer(request) => answer,
            () = self.link.replaced(&self.target) => Err(Status::aborted("it lost the leadership")),
        };
        let answer = match answer {
            Ok(response) => {
                self.takes_newer.store(response.get_ref().takes_newer, Ordering::Relaxed);
                self.read(&response.get_ref().data)
            }
            Err(status) if status.code() == Code::Unimplemented => {
                Err(leader_too_old(NodeId(self.target.leader), needs))
            }
            Err(status) => Err(self.failed(&status)),
        };
        self.note_contact(std::slice::from_ref(&answer));
        // A caller that gave up needs no answer.
        let _ = done.send(answer);
    }

    /// What was applied had a quorum.
    fn note_contact(&self, answers: &[Answer]) {
        if answers.iter().any(Result::is_ok) {
            self.link.note_contact();
        }
    }

    /// One answer for every command of the batch.
    fn sort(&self, answer: Result<Response<ProposeResponse>, Status>, count: usize) -> Vec<Answer> {
        match answer {
            Ok(response) => {
                let ProposeResponse { replies, takes_newer } = response.get_ref();
                self.takes_newer.store(*takes_newer, Ordering::Relaxed);
                let mut answers: Vec<Answer> = replies.iter().map(|reply| self.read(reply)).collect();
                answers.resize_with(count, || Err(ProposeError::Unknown(format!("{self} gave no answer"))));
                answers
            }
            Err(status) => vec![Err(self.failed(&status)); count],
        }
    }

    fn read(&self, reply: &[u8]) -> Answer {
        let outcome = codec::decode::<Outcome>(reply);
        outcome.map_or_else(|error| Err(ProposeError::Unknown(format!("{self}: {error}"))), Into::into)
    }

    fn failed(&self, status: &Status) -> ProposeError {
        let text = format!("{self}: {}", status.message());
        // The leader, and its guard, use this code only before anything is appended.
        if status.code() == Code::FailedPrecondition {
            return ProposeError::NoLeader(text);
        }
        self.broken.store(true, Ordering::Relaxed);
        ProposeError::Unknown(text)
    }
}

impl Load {
    /// Sends together what the leader takes together.
    pub(super) async fn send(self, place: Option<OwnedSemaphorePermit>) {
        let Self { call, together, number, alone } = self;
        let alone = join_all(alone.into_iter().map(|job| call.send_alone(job)));
        tokio::join!(call.send_batch(together, number, place), alone);
    }
}

/// Whom it goes to.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} at {}", self.target.leader, self.target.address)
    }
}
