//! What scripted workers and stores have in common: they note every call and answer as they are told.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Status;
use tonic::service::Routes;
use tonic::transport::Server;

use super::{DEADLINE, until};

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
        until(&format!("a call to a peer; it has had none within {DEADLINE:?}"), || {
            !self.seen.lock().is_empty()
        })
        .await;
        self.seen.lock().pop_front().expect("it is there")
    }

    /// All calls that have come and were not taken yet.
    pub(crate) fn take(&self) -> Vec<C> {
        self.seen.lock().drain(..).collect()
    }
}

/// A served port, with a runtime of its own, so that all its connections end with it as those of a process do.
pub(crate) struct Port {
    pub(crate) address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Port {
    pub(crate) async fn serve(address: SocketAddr, routes: Routes) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let listening = runtime.spawn(TcpListener::bind(address));
        let listener = listening.await.expect("it ran").expect("a loopback address");
        let address = listener.local_addr().expect("a bound port");
        runtime.spawn(async move {
            let incoming = TcpListenerStream::new(listener);
            Server::builder().add_routes(routes).serve_with_incoming(incoming).await.expect("serving");
        });
        Self { address, runtime: Some(runtime) }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The port is free when this returns. A runtime must not wait for another one's end on its own thread.
            let ending = std::thread::spawn(move || runtime.shutdown_timeout(DEADLINE));
            drop(ending.join());
        }
    }
}
