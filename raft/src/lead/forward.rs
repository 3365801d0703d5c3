//! Proposals of a follower travel to the leader, one hop, in batches. The first goes at once; what is
//! queued while it is under way goes together in the next one, unless there is so much of it that a
//! message of its own is worth its cost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tonic::transport::Channel;
use tonic::{Code, Response, Status};
use tripod_proto::tripod::peer::v1::leader_client::LeaderClient;
use tripod_proto::tripod::peer::v1::{ProposeRequest, ProposeResponse};

use crate::base::codec;
use crate::base::error::{Applied, ProposeError};
use crate::lead::leader_link::{LeaderLink, Target};
use crate::lead::outcome::Outcome;

/// Commands that may wait on this node.
const WAITING_MAX: usize = 16_384;
/// Commands of one batch.
const BATCH_MAX: usize = 1024;
/// Bytes of one batch, unless a single command is larger.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// Batches under way at a time, so that a busy node need not wait for one commit to begin another.
const IN_FLIGHT_MAX: usize = 8;
/// Commands that make a batch worth sending although another is under way. Fewer wait for its answer:
/// tasks that arrive at a barrier one by one would otherwise cost all nodes a message and a flush each,
/// and the last of them would pass later.
const WORTH_A_BATCH: usize = 32;
/// How long a deposed leader may still answer for what it was sent.
const DEPOSED_GRACE: Duration = Duration::from_secs(1);

type Answer = Result<Applied, ProposeError>;

struct Job {
    payload: Bytes,
    done: oneshot::Sender<Answer>,
}

/// The queue of one node. Clones share it.
#[derive(Clone)]
pub(crate) struct Forwarder {
    queue: mpsc::Sender<Job>,
}

impl Forwarder {
    /// Starts the task. It ends with the last clone.
    pub(crate) fn start(link: LeaderLink) -> Self {
        let (queue, jobs) = mpsc::channel(WAITING_MAX);
        let task = Task {
            jobs,
            next: Vec::new(),
            link,
            connection: None,
            in_flight: Arc::new(Semaphore::new(IN_FLIGHT_MAX)),
            prompt: Arc::new(Semaphore::new(1)),
        };
        tokio::spawn(task.run());
        Self { queue }
    }

    /// How many commands have not been taken from the queue.
    pub(crate) fn waiting(&self) -> u64 {
        (self.queue.max_capacity() - self.queue.capacity()) as u64
    }

    /// Has the leader replicate an encoded envelope.
    pub(crate) async fn propose(&self, payload: Bytes) -> Answer {
        let (done, answer) = oneshot::channel();
        self.queue.try_send(Job { payload, done }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => {
                ProposeError::Overloaded(format!("{WAITING_MAX} commands wait for the leader on this node"))
            }
            mpsc::error::TrySendError::Closed(_) => ProposeError::Stopped("this node is stopping".into()),
        })?;
        // The task answers every job it took, so this is the end of the whole runtime.
        answer.await.unwrap_or_else(|_| Err(ProposeError::Unknown("this node stopped".into())))
    }
}

/// An open connection to one leader.
struct Connection {
    target: Target,
    client: LeaderClient<Channel>,
    /// Set by the first call that finds it so.
    broken: Arc<AtomicBool>,
}

struct Task {
    jobs: mpsc::Receiver<Job>,
    /// Taken from the queue, not sent yet.
    next: Vec<Job>,
    link: LeaderLink,
    connection: Option<Connection>,
    in_flight: Arc<Semaphore>,
    /// The place of the one batch under way that may be small.
    prompt: Arc<Semaphore>,
}

impl Task {
    async fn run(mut self) {
        loop {
            let slot = self.in_flight.clone().acquire_owned().await.expect("the semaphore is never closed");
            if self.next.is_empty() && self.jobs.recv_many(&mut self.next, BATCH_MAX).await == 0 {
                return;
            }
            let place = self.gather().await;
            let batch = self.take_batch();
            match self.connect().await {
                Ok(call) => {
                    tokio::spawn(async move {
                        call.send(batch, place).await;
                        drop(slot);
                    });
                }
                Err(error) => {
                    for job in batch {
                        // A caller that gave up needs no answer.
                        let _ = job.done.send(Err(error.clone()));
                    }
                }
            }
        }
    }

    /// Takes more jobs from the queue until the prompt batch is answered, whose place the next one gets
    /// then, or until there are enough for a batch without that place.
    async fn gather(&mut self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = self.prompt.clone().try_acquire_owned() {
            return Some(place);
        }
        let mut prompt = std::pin::pin!(self.prompt.clone().acquire_owned());
        while self.next.len() < WORTH_A_BATCH {
            let room = BATCH_MAX - self.next.len();
            tokio::select! {
                biased;
                place = &mut prompt => return place.ok(),
                taken = self.jobs.recv_many(&mut self.next, room) => if taken == 0 { break },
            }
        }
        None
    }

    /// The longest allowed prefix of what is waiting, without those whose callers are gone.
    fn take_batch(&mut self) -> Vec<Job> {
        self.next.retain(|job| !job.done.is_closed());
        let mut bytes = 0;
        let fitting = self.next.iter().take_while(|job| {
            bytes += job.payload.len();
            bytes <= BATCH_BYTES_MAX
        });
        let count = fitting.count().max(1).min(self.next.len());
        let rest = self.next.split_off(count);
        std::mem::replace(&mut self.next, rest)
    }

    /// A call on the open connection to the present leader, made anew if need be.
    async fn connect(&mut self) -> Result<Call, ProposeError> {
        let target = self.link.target()?;
        let usable = |open: &Connection| open.target == target && !open.broken.load(Ordering::Relaxed);
        if self.connection.as_ref().is_none_or(|open| !usable(open)) {
            self.connection = None;
            let client = self.link.connect(&target).await?;
            self.connection = Some(Connection { target: target.clone(), client, broken: Arc::default() });
        }
        let open = self.connection.as_ref().expect("it was just made");
        Ok(Call { link: self.link.clone(), target, client: open.client.clone(), broken: open.broken.clone() })
    }
}

/// One batch under way.
struct Call {
    link: LeaderLink,
    target: Target,
    client: LeaderClient<Channel>,
    broken: Arc<AtomicBool>,
}

impl Call {
    /// Gives `place` back once there is an answer, or another leader, whose batches need not wait. An answer
    /// counts from when it is sorted: the next batch must know by then whether the connection is broken.
    async fn send(mut self, batch: Vec<Job>, mut place: Option<OwnedSemaphorePermit>) {
        if batch.is_empty() {
            return;
        }
        let commands = batch.iter().map(|job| job.payload.clone()).collect();
        let request = self.link.caller(self.target.leader).request(ProposeRequest { commands });
        let link = self.link.clone();
        let target = self.target.clone();
        let given_up = async {
            link.replaced(&target).await;
            drop(place.take());
            tokio::time::sleep(DEPOSED_GRACE).await;
        };
        let answer = tokio::select! {
            biased;
            answer = self.client.propose(request) => answer,
            () = given_up => Err(Status::aborted("it lost the leadership and did not answer")),
        };
        let count = batch.len();
        let answers = self.sort(answer, count);
        drop(place);
        for (job, answer) in batch.into_iter().zip(answers) {
            // A caller that gave up needs no answer.
            let _ = job.done.send(answer);
        }
    }

    /// One answer for every command of the batch.
    fn sort(&self, answer: Result<Response<ProposeResponse>, Status>, count: usize) -> Vec<Answer> {
        let node = format!("node {} at {}", self.target.leader, self.target.address);
        match answer {
            Ok(response) => {
                let mut answers: Vec<Answer> = response
                    .get_ref()
                    .replies
                    .iter()
                    .map(|reply| {
                        let outcome = codec::decode::<Outcome>(reply);
                        outcome.map_or_else(
                            |error| Err(ProposeError::Unknown(format!("{node}: {error}"))),
                            Into::into,
                        )
                    })
                    .collect();
                answers.resize_with(count, || Err(ProposeError::Unknown(format!("{node} gave no answer"))));
                answers
            }
            // The leader, and its guard, use this code only before anything is appended.
            Err(status) if status.code() == Code::FailedPrecondition => {
                vec![Err(ProposeError::NoLeader(format!("{node}: {}", status.message()))); count]
            }
            Err(status) => {
                self.broken.store(true, Ordering::Relaxed);
                vec![Err(ProposeError::Unknown(format!("{node}: {}", status.message()))); count]
            }
        }
    }
}
