//! A driver: submits a batch of tasks, waits until all of them are done, and gives their results up.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tokio::sync::mpsc;
use tonic::Status;
use tripod_client::wire::RayLeaveRequest;
use tripod_client::wire::ray_call::Call;
use tripod_client::wire::ray_result::Reply;
use tripod_proto::ray::{DecrementRefCountRequest, SubmitTaskRequest, Task};

use super::FUNCTION;
use super::process::Process;
use super::worker::call;
use crate::closed_loop;

/// Where workers say which results are there; every driver listens to its own.
pub(super) struct Board {
    drivers: Vec<Finished>,
}

/// What one driver waits for, and its bell.
pub(super) struct Finished {
    waited: std::sync::Arc<Mutex<Waited>>,
    bell: mpsc::UnboundedSender<()>,
}

/// A worker may be done before the driver has the answer that names the result.
#[derive(Debug, Default)]
struct Waited {
    missing: BTreeSet<u64>,
    early: BTreeSet<u64>,
}

pub(super) struct Driver {
    process: Process,
    batch: usize,
    waited: std::sync::Arc<Mutex<Waited>>,
    bell: mpsc::UnboundedReceiver<()>,
    /// Results of the batch before, which are given up with the next one.
    results: Vec<u64>,
}

impl Board {
    pub(super) fn new(drivers: Vec<Finished>) -> Self {
        Self { drivers }
    }

    /// These results are there. Whoever waits for none of them forgets them with its next batch.
    pub(super) fn note(&self, results: &[u64]) {
        for driver in &self.drivers {
            let mut waited = driver.waited.lock().unwrap_or_else(PoisonError::into_inner);
            for result in results {
                if !waited.missing.remove(result) {
                    waited.early.insert(*result);
                }
            }
            if waited.missing.is_empty() {
                // At the end of the run nobody listens.
                let _ = driver.bell.send(());
            }
        }
    }
}

impl Driver {
    pub(super) fn new(process: Process, batch: usize) -> (Self, Finished) {
        let waited = std::sync::Arc::<Mutex<Waited>>::default();
        let (sender, bell) = mpsc::unbounded_channel();
        let finished = Finished { waited: waited.clone(), bell: sender };
        (Self { process, batch, waited, bell, results: Vec::new() }, finished)
    }

    /// Ends the driver and everything that it refers to.
    pub(super) async fn leave(self) -> anyhow::Result<()> {
        self.process.call(vec![call(Call::Leave(RayLeaveRequest { workerid: self.process.id }))]).await?;
        Ok(())
    }

    async fn submit(&mut self) -> Result<(), Status> {
        let mut calls = Vec::with_capacity(self.batch + 1);
        if !self.results.is_empty() {
            let objectid = std::mem::take(&mut self.results);
            calls.push(call(Call::Decrement(DecrementRefCountRequest { objectid })));
        }
        let task = Task { name: FUNCTION.as_bytes().into(), ..Task::default() };
        let submit = SubmitTaskRequest { workerid: self.process.id, task: Some(task) };
        calls.extend(std::iter::repeat_n(call(Call::Submit(submit)), self.batch));
        let answered = self.process.call(calls).await;
        for result in answered.map_err(|error| Status::unavailable(error.to_string()))? {
            match result.reply {
                Some(Reply::Submit(reply)) if reply.function_registered => self.results.extend(reply.result),
                None if result.code == 0 => {}
                _ => return Err(Status::failed_precondition(format!("not submitted: {}", result.text))),
            }
        }
        Ok(())
    }
}

impl closed_loop::Client for Driver {
    async fn step(&mut self) -> Result<(), Status> {
        self.submit().await?;
        {
            let mut waited = self.waited.lock().unwrap_or_else(PoisonError::into_inner);
            let early = std::mem::take(&mut waited.early);
            waited.missing = self.results.iter().copied().filter(|result| !early.contains(result)).collect();
        }
        while !self.waited.lock().unwrap_or_else(PoisonError::into_inner).missing.is_empty() {
            if self.bell.recv().await.is_none() {
                return Err(Status::aborted("the workers have ended"));
            }
        }
        Ok(())
    }
}
