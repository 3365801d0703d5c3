//! The one thread that changes the stored log. It is a plain thread: a flush in a worker of the
//! async runtime would stop heartbeats, and elections would follow. In a simulation it is a
//! [task](super::writer_task).
//!
//! It takes everything that is queued, writes it as one batch, flushes once if an append or a vote
//! is in it, and then answers in order. So a vote is durable only together with all appends that
//! were queued before it, and a group of appends costs one flush without any timer.

use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use openraft::storage::IOFlushed;
use parking_lot::{Mutex, RwLock};
use tokio::sync::oneshot;
use tripod_state::planted::{Bug, is_planted};

use crate::base::failure::Failure;
use crate::base::stages::Stages;
use crate::base::types::{LogId, Types};
use crate::disk::{Change, Disk, DiskError, Work};
use crate::log::flushes::Flushes;
use crate::log::tail::Tail;
use crate::log::writer_task::WriterTask;

/// Most changes that are written as one batch.
const GROUP_MAX: usize = 4096;

/// A queue that is empty for this long is at rest. Whoever has just been answered mostly writes again at once, and
/// what the disk does at rest would only take the time of that.
const REST_AFTER: Duration = Duration::from_millis(5);

/// Who waits for a change.
pub(crate) enum Waiter {
    Nobody,
    Append(IOFlushed<Types>),
    Vote(oneshot::Sender<io::Result<()>>),
}

pub(super) enum Job {
    Change(Change, Waiter),
    Stop,
}

/// The queue's other end. Clones share the worker.
#[derive(Clone)]
pub(crate) struct Writer {
    queue: Queue,
    flushes: Flushes,
}

/// Who works on what is queued.
#[derive(Clone)]
enum Queue {
    Thread { queue: mpsc::Sender<Job>, thread: Arc<Mutex<Option<JoinHandle<()>>>> },
    Task(WriterTask),
}

impl Writer {
    /// Starts the thread, or the task.
    pub(crate) fn start(
        disk: Box<dyn Disk>,
        tail: Arc<RwLock<Tail>>,
        failure: Failure,
        work: &Work,
    ) -> io::Result<Self> {
        let flushes = Flushes::default();
        let worker = Worker {
            stages: disk.stages(),
            disk,
            tail,
            failure,
            flushes: flushes.clone(),
            cuts: 0,
            committed: None,
            changes: Vec::new(),
            waiters: Vec::new(),
            open: true,
        };
        let queue = match work {
            Work::Threads => {
                let (queue, jobs) = mpsc::channel();
                let thread = std::thread::Builder::new().name("raft-log".into());
                let thread = thread.spawn(move || worker.run(&jobs))?;
                Queue::Thread { queue, thread: Arc::new(Mutex::new(Some(thread))) }
            }
            Work::Inline(disk) => Queue::Task(WriterTask::start(worker, disk.clone())),
        };
        Ok(Self { queue, flushes })
    }

    /// What the writer is waiting for.
    pub(crate) fn flushes(&self) -> &Flushes {
        &self.flushes
    }

    /// Queues a change behind all earlier ones.
    pub(crate) fn send(&self, change: Change, waiter: Waiter) -> io::Result<()> {
        let job = Job::Change(change, waiter);
        let sent = match &self.queue {
            Queue::Thread { queue, .. } => queue.send(job).is_ok(),
            Queue::Task(task) => task.send(job),
        };
        if sent { Ok(()) } else { Err(DiskError::Closed.into()) }
    }

    /// Writes what is queued, makes it durable, and ends the thread, if it is one. Blocks.
    pub(crate) fn stop(&self) {
        let Queue::Thread { queue, thread } = &self.queue else { return };
        // A send that fails finds the thread gone already.
        let _ = queue.send(Job::Stop);
        if let Some(thread) = thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("log writer panicked");
        }
    }

    /// [`Self::stop`] for a task.
    pub(crate) async fn stop_task(&self) {
        if let Queue::Task(task) = &self.queue {
            task.stop().await;
        }
    }
}

/// Writes groups of changes.
pub(super) struct Worker {
    disk: Box<dyn Disk>,
    tail: Arc<RwLock<Tail>>,
    failure: Failure,
    flushes: Flushes,
    stages: Stages,
    /// How many truncations are written.
    cuts: u64,
    /// The committed index as it was written last.
    committed: Option<LogId>,
    /// The group at hand, and who waits for it.
    changes: Vec<Change>,
    waiters: Vec<Waiter>,
    /// Nobody has asked for the end yet.
    open: bool,
}

/// Says that the node failed if the thread ends by a panic: its callers would wait for ever.
struct PanicGuard(Failure);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.set("the log writer panicked");
        }
    }
}

impl Worker {
    fn run(mut self, jobs: &mpsc::Receiver<Job>) {
        let _guard = PanicGuard(self.failure.clone());
        while self.open {
            let Some(first) = self.next(jobs) else { break };
            self.gather(first, || jobs.try_recv().ok());
            self.flushes.begin();
            let outcome = self.commit_group();
            self.flushes.end();
            self.answer(&outcome);
        }
        self.flush_last();
        self.close();
    }

    /// Counts what the disk is asked.
    pub(super) fn flushes(&self) -> &Flushes {
        &self.flushes
    }

    /// Whether another group may come.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Puts a group together from the first job and what is queued behind it.
    pub(super) fn gather(&mut self, first: Job, mut queued: impl FnMut() -> Option<Job>) {
        let mut next = Some(first);
        while let Some(job) = next {
            match job {
                Job::Change(change, waiter) => {
                    self.changes.push(change);
                    self.waiters.push(waiter);
                }
                Job::Stop => self.open = false,
            }
            next = if self.open && self.changes.len() < GROUP_MAX { queued() } else { None };
        }
    }

    /// Writes the group at hand.
    pub(super) fn commit_group(&mut self) -> Result<(), String> {
        if is_planted(Bug::ForgottenVote) {
            self.forget_votes();
        }
        let mut changes = std::mem::take(&mut self.changes);
        self.add_committed(&mut changes);
        let outcome = self.commit(&changes);
        self.changes = changes;
        outcome
    }

    /// The group at hand.
    pub(super) fn group(&self) -> &[Change] {
        &self.changes
    }

    /// Takes the votes out of the group at hand. Whoever waits for one is told that it was written.
    pub(super) fn forget_votes(&mut self) {
        self.changes.retain(|change| !matches!(change, Change::Vote(_)));
    }

    /// Tells those who wait for the group at hand, which is done.
    pub(super) fn answer(&mut self, outcome: &Result<(), String>) {
        for waiter in self.waiters.drain(..) {
            answer(waiter, outcome.as_ref().map_err(|reason| io::Error::other(reason.clone())).copied());
        }
        // Memory is tidied when nobody waits for it any more.
        let mut changes = std::mem::take(&mut self.changes);
        if outcome.is_ok() {
            self.report(&changes);
        }
        changes.clear();
        self.changes = changes;
    }

    /// Makes durable what nobody waits for, when there will be no more.
    pub(super) fn flush_last(&mut self) {
        if self.failure.get().is_none()
            && let Err(error) = self.disk.sync().and_then(|()| self.disk.rest())
        {
            tracing::error!(%error, "last flush of the log failed");
        }
    }

    /// Lets go of the storage.
    pub(super) fn close(&self) {
        self.disk.reader().close();
    }

    /// Waits for the next job, and lets the disk rest as long as there is none. `None` when nobody can
    /// send one any more.
    fn next(&mut self, jobs: &mpsc::Receiver<Job>) -> Option<Job> {
        match jobs.recv_timeout(REST_AFTER) {
            Ok(job) => return Some(job),
            Err(mpsc::RecvTimeoutError::Disconnected) => return None,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
        loop {
            match jobs.try_recv() {
                Ok(job) => return Some(job),
                Err(mpsc::TryRecvError::Disconnected) => return None,
                Err(mpsc::TryRecvError::Empty) => {}
            }
            self.flushes.begin();
            let again = self.rest();
            self.flushes.end();
            let Some(again) = again else { return jobs.recv().ok() };
            match jobs.recv_timeout(again) {
                Ok(job) => return Some(job),
                Err(mpsc::RecvTimeoutError::Disconnected) => return None,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Nobody waits for what the disk does here, so a failure is told to the node only.
    pub(super) fn rest(&mut self) -> Option<Duration> {
        if self.failure.get().is_some() {
            return None;
        }
        self.disk.rest().unwrap_or_else(|error| {
            self.failure.set(&error.to_string());
            None
        })
    }

    /// The committed index is a hint for the next start: alone it is not worth a write. It goes with
    /// the next group, or with the end.
    fn add_committed(&mut self, changes: &mut Vec<Change>) {
        let committed = self.tail.read().storable_commit();
        if committed != self.committed {
            changes.extend(committed.map(Change::Committed));
            self.committed = committed;
        }
    }

    /// Writes one group. The first error is final: after a failed write or flush nobody knows what
    /// the device holds, and a second attempt may report a success that is none.
    fn commit(&mut self, changes: &[Change]) -> Result<(), String> {
        if let Some(reason) = self.failure.get() {
            return Err(reason);
        }
        let durable = changes.iter().any(Change::must_be_durable) && !is_planted(Bug::EarlyAcknowledgement);
        let group = self.stages.group();
        let written = self.disk.write(changes);
        let outcome = written.and_then(|()| if durable { self.disk.sync() } else { Ok(()) });
        if outcome.is_ok() {
            self.stages.durable(group);
        }
        outcome.map_err(|error| {
            let reason = error.to_string();
            self.failure.set(&reason);
            reason
        })
    }

    /// Lets the tail drop what is written now.
    fn report(&mut self, changes: &[Change]) {
        let mut written = None;
        for change in changes {
            match change {
                Change::Append(entries) => {
                    written = entries.last().map(|entry| entry.log_id.index + 1).or(written);
                }
                Change::TruncateAfter(_) => {
                    self.cuts += 1;
                    written = None;
                }
                Change::Vote(_) | Change::Committed(_) | Change::Purge(_) => {}
            }
        }
        if let Some(written) = written {
            self.tail.write().set_written(written, self.cuts);
        }
    }
}

fn answer(waiter: Waiter, outcome: io::Result<()>) {
    match waiter {
        Waiter::Nobody => {}
        Waiter::Append(callback) => callback.io_completed(outcome),
        // The receiver is gone when its node is being stopped.
        Waiter::Vote(done) => drop(done.send(outcome)),
    }
}
