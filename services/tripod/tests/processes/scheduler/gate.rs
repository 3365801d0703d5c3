//! A function that ends when the test says so, and not after a time.

use std::future::pending;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tokio::task::AbortHandle;
use tripod_worker::{Output, Task, Worker};

use super::site::Site;

const NAME: &str = "test.gated";

/// What lets tasks through.
type Bar = (Mutex<bool>, Condvar);

/// A worker of this process, whose tasks end as soon as the gate is open. It ends with this value.
pub(super) struct Gate {
    bar: Arc<Bar>,
    worker: AbortHandle,
}

impl Gate {
    /// Begins at a machine, closed.
    pub(super) fn at(site: &Site, machine: usize) -> Self {
        let bar = Arc::<Bar>::default();
        let passed = Arc::clone(&bar);
        let worker = Worker::new(site.config(machine)).full(NAME, 1, move |_, _| {
            wait(&passed);
            Ok(vec![Output::of(&())?])
        });
        let worker = tokio::spawn(async move {
            // It ends with the test.
            let _ = worker.run(pending()).await;
        });
        Self { bar, worker: worker.abort_handle() }
    }

    /// A task behind the gate, without a value worth reading.
    pub(super) fn task() -> Task {
        Task::of(NAME)
    }

    /// What such a task is called where tasks are told of.
    pub(super) fn name() -> &'static str {
        NAME
    }

    /// Lets everybody through from now on.
    pub(super) fn open(&self) {
        let (is_open, changed) = &*self.bar;
        *is_open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }
}

impl Drop for Gate {
    /// Threads of a test that failed must not wait either.
    fn drop(&mut self) {
        self.open();
        self.worker.abort();
    }
}

fn wait((is_open, changed): &Bar) {
    let closed = is_open.lock().unwrap_or_else(PoisonError::into_inner);
    let passed = changed.wait_while(closed, |is_open| !*is_open);
    drop(passed.unwrap_or_else(PoisonError::into_inner));
}
