//! The [writer](super::writer) without a thread, for simulations: a task that does the same work, and then
//! waits for as long as the simulated disk takes.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::writer::{Job, Worker};
use crate::disk::journal::SimulatedDisk;

/// The queue's other end. Clones share the task.
#[derive(Clone)]
pub(crate) struct WriterTask {
    queue: mpsc::UnboundedSender<Job>,
    task: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl WriterTask {
    pub(super) fn start(worker: Worker, disk: SimulatedDisk) -> Self {
        let (queue, jobs) = mpsc::unbounded_channel();
        let task = tokio::spawn(run(worker, jobs, disk));
        Self { queue, task: Arc::new(Mutex::new(Some(task))) }
    }

    /// Queues a job; false if the task is gone.
    pub(super) fn send(&self, job: Job) -> bool {
        self.queue.send(job).is_ok()
    }

    /// Writes what is queued, makes it durable, and ends the task.
    pub(super) async fn stop(&self) {
        // A send that fails finds the task gone already.
        let _ = self.queue.send(Job::Stop);
        let task = self.task.lock().take();
        if let Some(task) = task
            && task.await.is_err()
        {
            tracing::error!("log writer panicked");
        }
    }
}

async fn run(mut worker: Worker, mut jobs: mpsc::UnboundedReceiver<Job>, disk: SimulatedDisk) {
    while worker.is_open() {
        let Some(first) = next(&mut worker, &mut jobs, &disk).await else { break };
        worker.gather(first, || jobs.try_recv().ok());
        if disk.is_forgetful() {
            worker.forget_votes();
        }
        worker.flushes().begin();
        let outcome = worker.commit_group();
        // Until then a crash may take any part of it, and the disk has not answered.
        disk.settle().await;
        worker.flushes().end();
        if outcome.is_ok() {
            worker.group().iter().for_each(|change| disk.note(change));
        }
        worker.answer(&outcome);
    }
    worker.flush_last();
    disk.settle().await;
    worker.close();
}

/// Waits for the next job, and lets the disk rest as long as there is none.
async fn next(
    worker: &mut Worker,
    jobs: &mut mpsc::UnboundedReceiver<Job>,
    disk: &SimulatedDisk,
) -> Option<Job> {
    loop {
        match jobs.try_recv() {
            Ok(job) => return Some(job),
            Err(mpsc::error::TryRecvError::Disconnected) => return None,
            Err(mpsc::error::TryRecvError::Empty) => {}
        }
        worker.flushes().begin();
        let again = worker.rest();
        disk.settle().await;
        worker.flushes().end();
        let Some(again) = again else { return jobs.recv().await };
        if let Ok(job) = tokio::time::timeout(again, jobs.recv()).await {
            return job;
        }
    }
}
