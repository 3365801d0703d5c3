//! Proposals of a follower travel to the leader, one hop, in batches. The first goes at once; what is
//! queued while it is under way goes together in the next one, unless there is so much of it, in number or in bytes, that
//! a message of its own is worth its cost. Batches under way may overtake each other, so each says which one of its connection
//! it is, and the leader appends them in that order: commands enter the log in the order in which they were proposed here,
//! as long as the same node leads.
//!
//! A batch says which feature level its commands need at most. A leader that does not read that is sent what needs more
//! than the first level as builds of before do, one by one and in no order; each of its answers tells whether it is one, and
//! until the first has come, what needs more waits for it.

mod call;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tonic::transport::Channel;
use tripod_proto::tripod::peer::v1::leader_client::LeaderClient;
use tripod_state::ids::FeatureLevel;
use tripod_state::level;

use crate::base::error::{Applied, ProposeError};
use crate::lead::batch_numbers::BatchNumbers;
use crate::lead::leader_link::{LeaderLink, Target};

use call::Call;

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
/// Bytes of commands that make one worth sending, however few they are: a message costs little beside them, and all nodes
/// would wait for their work until the batch before is applied.
const WORTH_A_BATCH_BYTES: usize = 512 << 10;
/// How long a deposed leader may still answer for what it was sent.
const DEPOSED_GRACE: Duration = Duration::from_secs(1);

type Answer = Result<Applied, ProposeError>;

struct Job {
    payload: Bytes,
    needs: FeatureLevel,
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

    /// Has the leader replicate an encoded envelope, whose command needs that feature level.
    pub(crate) async fn propose(&self, payload: Bytes, needs: FeatureLevel) -> Answer {
        let (done, answer) = oneshot::channel();
        self.queue.try_send(Job { payload, needs, done }).map_err(|error| match error {
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
    /// Whether the leader takes commands of every level in batches, as its last answer said.
    takes_newer: Arc<AtomicBool>,
    /// Whether it was sent something newer to find that out.
    has_asked: bool,
    numbers: BatchNumbers,
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
            let mut batch = self.take_batch();
            match self.connect().await {
                Ok(call) if self.must_ask(&batch) => {
                    self.put_back(&mut batch);
                    // Nothing else is under way, and nothing follows before there is an answer.
                    let all = IN_FLIGHT_MAX.saturating_sub(1).try_into().unwrap_or(u32::MAX);
                    let _others = self.in_flight.clone().acquire_many_owned(all).await;
                    call.load(batch).send(place).await;
                    drop(slot);
                }
                Ok(call) => {
                    // Numbered here, in the order of the batches, and not in their tasks.
                    let load = call.load(batch);
                    tokio::spawn(async move {
                        load.send(place).await;
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
        while !self.is_worth_a_batch() {
            let room = BATCH_MAX - self.next.len();
            tokio::select! {
                biased;
                place = &mut prompt => return place.ok(),
                taken = self.jobs.recv_many(&mut self.next, room) => if taken == 0 { break },
            }
        }
        None
    }

    /// Whether what is waiting is worth a message although another one is under way.
    fn is_worth_a_batch(&self) -> bool {
        let bytes = || self.next.iter().map(|job| job.payload.len()).sum::<usize>();
        self.next.len() >= WORTH_A_BATCH || bytes() >= WORTH_A_BATCH_BYTES
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

    /// Whether it is unknown if the leader takes all of these together. If it has been asked, and has not said that it does,
    /// it is of an earlier build.
    fn must_ask(&mut self, batch: &[Job]) -> bool {
        let Some(open) = &mut self.connection else { return false };
        let is_new = !open.has_asked && !open.takes_newer.load(Ordering::Relaxed);
        if !is_new || batch.iter().all(Job::is_of_first_level) {
            return false;
        }
        open.has_asked = true;
        true
    }

    /// Puts back what does not go with the first of the batch to a leader that may take nothing newer in batches.
    fn put_back(&mut self, batch: &mut Vec<Job>) {
        let together = batch.iter().take_while(|job| job.is_of_first_level()).count().max(1);
        let mut rest = batch.split_off(together.min(batch.len()));
        rest.append(&mut self.next);
        self.next = rest;
    }

    /// A call on the open connection to the present leader, made anew if need be.
    async fn connect(&mut self) -> Result<Call, ProposeError> {
        let target = self.link.target()?;
        let usable = |open: &Connection| open.target == target && !open.broken.load(Ordering::Relaxed);
        if self.connection.as_ref().is_none_or(|open| !usable(open)) {
            self.connection = None;
            let client = self.link.connect(&target).await?;
            self.connection = Some(Connection {
                target: target.clone(),
                client,
                broken: Arc::default(),
                takes_newer: Arc::default(),
                has_asked: false,
                numbers: BatchNumbers::default(),
            });
        }
        let open = self.connection.as_ref().expect("it was just made");
        Ok(Call {
            link: self.link.clone(),
            target,
            client: open.client.clone(),
            broken: open.broken.clone(),
            takes_newer: open.takes_newer.clone(),
            numbers: open.numbers.clone(),
        })
    }
}

impl Job {
    fn is_of_first_level(&self) -> bool {
        self.needs <= level::FIRST
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::{Command, Envelope, Scope, State, job};
    use tripod_wait::until;

    use super::*;
    use crate::base::codec;
    use crate::test_cluster::{Cluster, Ground, create_job, level_raised, once, put};

    /// A leader of this level takes nothing but commands of the first in a batch.
    const BEFORE: FeatureLevel = FeatureLevel(7);

    fn note() -> Command {
        Command::Job(job::Command::Note { name: "job".into(), note: "mine".into() })
    }

    /// What waits to be sent, as a follower that believes this of what it needs; and its answer.
    fn job(command: Command, needs: FeatureLevel) -> (Job, oneshot::Receiver<Answer>) {
        let payload = codec::encode(&Envelope { stamp: None, command }).into();
        let (done, answer) = oneshot::channel();
        (Job { payload, needs, done }, answer)
    }

    /// Sends what needs level 2, if `needs` says so, and what needs the first; on a connection of a follower on which
    /// the leader's last answer said whether it takes the one in a batch.
    async fn send(
        cluster: &Cluster,
        scope: Scope,
        needs: FeatureLevel,
        takes_newer: &Arc<AtomicBool>,
    ) -> [Answer; 2] {
        let link = cluster.node(cluster.follower().await).node().link.clone();
        let target = link.target().unwrap();
        let client = link.connect(&target).await.unwrap();
        let call = Call {
            link,
            target,
            client,
            broken: Arc::default(),
            takes_newer: takes_newer.clone(),
            numbers: BatchNumbers::default(),
        };
        let (newer, newer_answer) = job(note(), needs);
        let (first, first_answer) = job(put(scope, "key", b"value"), level::FIRST);
        call.load(vec![newer, first]).send(None).await;
        [newer_answer.await.unwrap(), first_answer.await.unwrap()]
    }

    fn done(answer: Answer) {
        answer.unwrap().reply.unwrap();
    }

    #[test]
    fn a_newer_command_goes_with_a_batch_as_soon_as_the_leader_has_said_that_it_takes_it() {
        once(async || {
            let cluster = Cluster::start(3).await;
            let leader = cluster.leader().await;
            let scope = create_job(cluster.node(leader)).await;
            level_raised(&cluster).await;
            let takes_newer = Arc::default();
            send(&cluster, scope, note().needs(), &takes_newer).await.into_iter().for_each(done);
            assert!(takes_newer.load(Ordering::Relaxed), "its answer says so");
            send(&cluster, scope, note().needs(), &takes_newer).await.into_iter().for_each(done);
            // Of another way than a batch nothing would be refused for what the batch says.
            let [newer, first] = send(&cluster, scope, level::FIRST, &takes_newer).await;
            let refused = newer.unwrap_err().to_string();
            assert!(refused.contains("needs feature level 2 and was not sent so"), "{refused}");
            done(first);
            cluster.stop().await;
        });
    }

    #[test]
    fn large_commands_do_not_wait_for_the_answer_to_the_batch_before() {
        once(async || {
            let cluster = Cluster::start(3).await;
            let link = cluster.node(cluster.follower().await).node().link.clone();
            let (_queue, jobs) = mpsc::channel(1);
            // The place of what is prompt is taken.
            let (in_flight, prompt) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(0)));
            let mut task = Task { jobs, next: Vec::new(), link, connection: None, in_flight, prompt };
            let sized = |bytes: usize| {
                let payload = vec![0; bytes].into();
                Job { payload, needs: level::FIRST, done: oneshot::channel().0 }
            };
            task.next.push(sized(WORTH_A_BATCH_BYTES - 1));
            let gathered = tokio::time::timeout(DEPOSED_GRACE, task.gather()).await;
            assert!(gathered.is_err(), "what is small waits");
            task.next.push(sized(1));
            assert!(task.gather().await.is_none(), "and goes without the place when there is enough of it");
            cluster.stop().await;
        });
    }

    #[test]
    fn a_leader_of_an_earlier_build_is_sent_newer_commands_one_by_one() {
        once(async || {
            let mut cluster = Cluster::prepared(Ground::simulated(), 3, |_| {});
            for node in 1..=3 {
                cluster.start_as(node, BEFORE).await.unwrap();
            }
            let leader = cluster.leader().await;
            let scope = create_job(cluster.node(leader)).await;
            until("the level of these builds", || {
                (cluster.node(leader).read(State::level) == BEFORE).then_some(())
            })
            .await;
            let takes_newer = Arc::default();
            send(&cluster, scope, note().needs(), &takes_newer).await.into_iter().for_each(done);
            assert!(!takes_newer.load(Ordering::Relaxed), "it does not say so");
            // A leader that is gone said so. This one refuses, nothing is in doubt, and the next attempt comes through.
            takes_newer.store(true, Ordering::Relaxed);
            let [newer, first] = send(&cluster, scope, note().needs(), &takes_newer).await;
            assert!(matches!(newer, Err(ProposeError::NoLeader(_))), "{newer:?}");
            done(first);
            send(&cluster, scope, note().needs(), &takes_newer).await.into_iter().for_each(done);
            cluster.stop().await;
        });
    }
}
