//! A fake node: a server on a thread of its own, so that it can be frozen and killed as a process can.

use std::sync::Arc;
use std::sync::mpsc as blocking;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;

use super::cluster::Cluster;
use super::service::FakeService;

/// What becomes of heartbeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BeatConduct {
    Answer,
    /// They get no answer, and neither does anything else that needs a leader.
    Silence,
    /// They are answered, and what needs a leader after this time.
    Late(Duration),
    Refuse(&'static str),
    Outage(&'static str),
}

/// How a node behaves.
#[derive(Debug, Clone)]
pub(crate) struct Conduct {
    pub(crate) beats: BeatConduct,
    /// A command of this method is executed and not answered.
    pub(crate) swallow: Option<&'static str>,
    /// Every client's call is answered with this trouble of the node.
    pub(crate) outage: Option<&'static str>,
}

/// What the services of a node share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) node: usize,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) conduct: Arc<Mutex<Conduct>>,
    pub(crate) stopping: Arc<watch::Sender<bool>>,
}

/// A running node.
pub(crate) struct Node {
    pub(crate) address: String,
    shared: Shared,
    alive: Option<Alive>,
}

struct Alive {
    kill: oneshot::Sender<()>,
    freeze: mpsc::Sender<blocking::Receiver<()>>,
    thread: JoinHandle<()>,
}

impl Node {
    /// Starts node `node` on a free port.
    pub(crate) fn start(cluster: &Arc<Cluster>, node: usize) -> Self {
        let conduct = Conduct { beats: BeatConduct::Answer, swallow: None, outage: None };
        let shared = Shared {
            node,
            cluster: Arc::clone(cluster),
            conduct: Arc::new(Mutex::new(conduct)),
            stopping: Arc::new(watch::Sender::new(false)),
        };
        let mut node = Self { address: "127.0.0.1:0".into(), shared, alive: None };
        node.revive();
        node
    }

    /// Serves again at the same address.
    pub(crate) fn revive(&mut self) {
        let (kill, killed) = oneshot::channel::<()>();
        let (freeze, mut freezes) = mpsc::channel::<blocking::Receiver<()>>(1);
        let (bound, address) = blocking::channel();
        let (wanted, service) = (self.address.clone(), FakeService::new(self.shared.clone()));
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = TcpListener::bind(&wanted).await.expect("the port is free");
                bound.send(listener.local_addr().expect("bound").to_string()).expect("somebody waits");
                let serving = Server::builder()
                    .max_concurrent_streams(u32::MAX)
                    .serve_with_incoming(service, TcpListenerStream::new(listener));
                tokio::pin!(serving);
                tokio::pin!(killed);
                loop {
                    tokio::select! {
                        served = &mut serving => break served.expect("serving"),
                        _ = &mut killed => break,
                        // Blocks the only thread: nothing is read or answered, and nothing closed.
                        Some(thaw) = freezes.recv() => drop(thaw.recv()),
                    }
                }
            });
        });
        self.address = address.recv().expect("bound");
        self.alive = Some(Alive { kill, freeze, thread });
    }

    /// Ends the node: its connections break.
    pub(crate) fn kill(&mut self) {
        if let Some(Alive { kill, thread, freeze }) = self.alive.take() {
            drop((kill, freeze));
            thread.join().expect("a node does not panic");
        }
    }

    /// Stops the node from doing anything until what is returned is dropped.
    pub(crate) fn freeze(&self) -> blocking::Sender<()> {
        let (thaw, frozen) = blocking::channel();
        self.alive.as_ref().expect("alive").freeze.try_send(frozen).expect("not frozen yet");
        thaw
    }

    pub(crate) fn behave(&self, change: impl FnOnce(&mut Conduct)) {
        change(&mut self.shared.conduct.lock());
    }

    /// Says that it is about to stop.
    pub(crate) fn announce_stop(&self) {
        self.shared.stopping.send_replace(true);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The thread ends with what it waits for.
            self.alive = None;
        } else {
            self.kill();
        }
    }
}
