//! What scripted workers and stores have in common: they note every call and answer as they are told.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tonic::Status;
use tonic::service::Routes;
use tonic::transport::Server;
use tripod_lines::Lines;

type Script<C> = Box<dyn FnMut(&C) -> Result<(), Status> + Send>;

/// The calls of one peer, in the order in which they came.
pub(crate) struct Calls<C> {
    seen: Arc<Mutex<VecDeque<C>>>,
    script: Arc<Mutex<Script<C>>>,
    asked: Arc<AtomicBool>,
}

impl<C> Clone for Calls<C> {
    fn clone(&self) -> Self {
        Self {
            seen: Arc::clone(&self.seen),
            script: Arc::clone(&self.script),
            asked: Arc::clone(&self.asked),
        }
    }
}

impl<C: Debug> Calls<C> {
    /// Every call is answered well.
    pub(crate) fn new() -> Self {
        Self {
            seen: Arc::default(),
            script: Arc::new(Mutex::new(Box::new(|_| Ok(())))),
            asked: Arc::default(),
        }
    }

    /// Notes a call, and what it is to be answered.
    pub(crate) fn note(&self, call: C) -> Result<(), Status> {
        let answer = {
            let mut script = self.script.lock();
            // Whoever waits for this and gives another script comes after the answer.
            self.asked.store(true, Ordering::SeqCst);
            script(&call)
        };
        self.seen.lock().push_back(call);
        answer
    }

    /// Answers by this script from now on.
    pub(crate) fn answer(&self, script: impl FnMut(&C) -> Result<(), Status> + Send + 'static) {
        *self.script.lock() = Box::new(script);
    }

    /// Whether it was ever called, also if it did not live to note it.
    pub(crate) fn was_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// The next call, which may still have to come.
    pub(crate) async fn next(&self) -> C {
        tripod_wait::until("a call to a peer", || self.seen.lock().pop_front()).await
    }

    /// All calls that have come and were not taken yet.
    pub(crate) fn take(&self) -> Vec<C> {
        self.seen.lock().drain(..).collect()
    }
}

/// A served port. All its connections end with it, as those of a process do.
pub(crate) struct Port {
    address: String,
    lines: Lines,
    serving: AbortHandle,
}

impl Port {
    pub(crate) fn serve(lines: &Lines, address: &str, routes: Routes) -> Self {
        let serving = Server::builder().add_routes(routes).serve_with_incoming(lines.listen(address));
        let serving = tokio::spawn(serving).abort_handle();
        Self { address: address.to_owned(), lines: lines.clone(), serving }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.lines.close(&self.address);
        self.serving.abort();
    }
}
