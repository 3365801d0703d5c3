//! A node that can be killed: all that it runs is in a runtime of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::service::Routes;
use tonic::transport::Server;
use tripod_gateway::{Gateway, JobBinding, MemoryBackend, Options};
use tripod_ray::{Patience, Scheduler};

use super::DEADLINE;
use super::begin::{announce, port};

/// Ends with everything in it when it is dropped: calls get no answer, and connections break.
pub(super) struct Process {
    runtime: Option<Runtime>,
}

impl Process {
    pub(super) fn new() -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        Self { runtime: Some(runtime) }
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it lives")
    }

    /// A state in memory, which leads.
    pub(super) fn gateway(&self) -> (Gateway, Arc<MemoryBackend>) {
        let _inside = self.runtime().enter();
        Gateway::in_memory_with(Options::default())
    }

    /// A front end and an engine; where they listen.
    pub(super) async fn serve(&self, gateway: &Gateway, host: Ipv4Addr, patience: Patience) -> SocketAddr {
        let listening = self.runtime().spawn(TcpListener::bind((host, port())));
        let listener = listening.await.expect("it ran").expect("a loopback address");
        let address = listener.local_addr().expect("a bound port");
        announce(gateway, address).await;
        let _inside = self.runtime().enter();
        let scheduler = Scheduler::with_patience(gateway, patience);
        let routes = scheduler.add_to(Routes::default(), &JobBinding::Named("default".to_owned()));
        self.runtime().spawn(async move {
            let incoming = TcpListenerStream::new(listener);
            Server::builder().add_routes(routes).serve_with_incoming(incoming).await.expect("serving");
        });
        self.runtime().spawn(scheduler.run());
        address
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A runtime must not wait for another one's end on its own thread.
            let ending = std::thread::spawn(move || runtime.shutdown_timeout(DEADLINE));
            drop(ending.join());
        }
    }
}
