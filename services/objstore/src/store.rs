//! The store as a whole: its servers, and one registration after another.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tonic::transport::Server;
use tripod_chunk_data::mutable::Engine;
use tripod_chunk_data::{ChunkData, MESSAGE_BYTES_MAX};
use tripod_dial::PortIncoming;
use tripod_proto::mars::v1::worker_server::WorkerServer;
use tripod_proto::ray::obj_store_server::ObjStoreServer;
use tripod_proto::tripod::v1::ray_peer_server::RayPeerServer;

use crate::callers::Callers;
use crate::chunk_data::Chunks;
use crate::config::Config;
use crate::delivery::{Deliveries, Rules};
use crate::error::Error;
use crate::ids::StoreId;
use crate::incarnation::Incarnation;
use crate::local::Listener;
use crate::peers::{self, Peers};
use crate::relay::{Followers, OrdersServer};
use crate::scheduler::{self, End, Endpoints, Session};
use crate::service::Service;
use crate::shelf::{Limits, Report, Shelf};
use crate::spill::Directory;
use crate::value::Gauge;

/// Requests of other stores and of the scheduler on one connection at a time.
const STREAMS_MAX: u32 = 1024;

/// A running store. It ends when this is dropped, or by [`Store::stop`].
#[derive(Debug)]
pub struct Store {
    listening: SocketAddr,
    address: Arc<str>,
    socket: PathBuf,
    registered: watch::Receiver<Option<StoreId>>,
    stop: Option<oneshot::Sender<()>>,
    ended: JoinHandle<Result<(), Error>>,
}

/// Runs a store until `shutdown` is done, or the store ends by itself.
///
/// # Errors
/// [`Error`].
pub async fn run(config: Config, shutdown: impl Future<Output = ()> + Send) -> Result<(), Error> {
    Store::start(config).await?.run_until(shutdown).await
}

impl Store {
    /// Listens, and begins to register. Returns before a node has answered.
    ///
    /// # Errors
    /// [`Error`] of settings, addresses and directories.
    pub async fn start(config: Config) -> Result<Self, Error> {
        config.check()?;
        let endpoints = Arc::new(Endpoints::new(&config)?);
        let local = Listener::bind(&config.socket_directory)?;
        let directory = config.spill_directory.as_deref();
        let directory = directory.map(|path| Directory::open(path, config.spill_bytes_max)).transpose()?;
        let engine = match &config.mutable_directory {
            Some(path) => Some(open_engine(path.clone(), config.mutable_bytes_max).await?),
            None => None,
        };
        let socket = local.path().to_owned();
        let failed = |cause| Error::Listen { address: config.listen.to_string(), cause };
        let tcp = tripod_dial::listen_as_store(config.listen).await.map_err(failed)?;
        let listening = tcp.local_addr().map_err(failed)?;
        let address: Arc<str> = config.advertise.clone().unwrap_or_else(|| listening.to_string()).into();
        let (registered, told) = watch::channel(None);
        let (stop, stopped) = oneshot::channel();
        let limits = Limits {
            capacity_bytes: config.capacity_bytes,
            inline_bytes_max: config.inline_bytes_max,
            anew: config.anew,
        };
        let rules =
            Rules { transfers_max: config.transfers_max, stall: config.stall, patience: config.patience };
        let running = Running {
            callers: Arc::new(Callers::new(config.order_allow.clone(), Arc::clone(&endpoints))),
            endpoints,
            address: Arc::clone(&address),
            limits,
            rules,
            directory: directory.map(Arc::new),
            engine,
            gauge: Arc::default(),
            peers: Arc::new(Peers::new(config.order_allow)),
            registered,
            current: watch::Sender::new(None),
        };
        let ended = tokio::spawn(running.run(tcp, local, socket.clone(), stopped));
        tracing::info!(%address, socket = %socket.display(), "the object store listens");
        Ok(Self { listening, address, socket, registered: told, stop: Some(stop), ended })
    }

    /// Where it listens.
    #[must_use]
    pub fn listening(&self) -> SocketAddr {
        self.listening
    }

    /// The `HOST:PORT` that others are told.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The socket for processes of this machine; see [`crate::local::Connection::open`].
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The present id; `None` while the store registers. It changes when the scheduler gives the store up.
    #[must_use]
    pub fn registered(&self) -> watch::Receiver<Option<StoreId>> {
        self.registered.clone()
    }

    /// Goes on until `shutdown` is done, or the store ends by itself.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn run_until(mut self, shutdown: impl Future<Output = ()> + Send) -> Result<(), Error> {
        tokio::select! {
            () = shutdown => self.stop().await,
            ended = &mut self.ended => ended.unwrap_or_else(|error| Err(self.server_ended(&error))),
        }
    }

    /// Ends the store. Its objects are gone.
    ///
    /// # Errors
    /// [`Error`] if it had ended by itself before.
    pub async fn stop(mut self) -> Result<(), Error> {
        if let Some(stop) = self.stop.take() {
            // It may have ended by itself.
            _ = stop.send(());
        }
        (&mut self.ended).await.unwrap_or_else(|error| Err(self.server_ended(&error)))
    }

    fn server_ended(&self, cause: &dyn std::fmt::Display) -> Error {
        Error::Server { address: self.address.to_string(), cause: cause.to_string() }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.ended.abort();
    }
}

/// What outlives a registration.
struct Running {
    callers: Arc<Callers>,
    endpoints: Arc<Endpoints>,
    address: Arc<str>,
    limits: Limits,
    rules: Rules,
    directory: Option<Arc<Directory>>,
    /// Mutable chunks, which outlive registrations: a store is known to their owners by its address.
    engine: Option<Arc<Engine>>,
    gauge: Arc<Gauge>,
    peers: Arc<Peers>,
    registered: watch::Sender<Option<StoreId>>,
    current: watch::Sender<Option<Arc<Incarnation>>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Connections may outlive the store by a while; they must not keep its objects.
        _ = self.current.send_replace(None);
        if let Some(directory) = &self.directory {
            directory.unlock();
        }
        if let Some(engine) = &self.engine {
            engine.close();
        }
    }
}

impl Running {
    async fn run(
        self,
        tcp: PortIncoming,
        local: Listener,
        socket: PathBuf,
        stopped: oneshot::Receiver<()>,
    ) -> Result<(), Error> {
        let service = Service::new(self.current.subscribe(), socket, Arc::clone(&self.callers));
        let orders = OrdersServer::new(self.current.subscribe(), Arc::clone(&self.callers));
        let chunks = Chunks::new(
            self.current.subscribe(),
            Arc::clone(&self.callers),
            Arc::clone(&self.endpoints),
            Arc::clone(&self.peers),
            Arc::clone(&self.address),
        );
        let chunks = ChunkData::new(Arc::new(chunks), self.engine.clone());
        let sweeper = chunks.sweeper();
        let address = Arc::clone(&self.address);
        let server = async {
            let served = serve(tcp, service, orders, chunks).await;
            let cause = served.err().map_or_else(|| "it stopped".to_owned(), |error| error.to_string());
            Err(Error::Server { address: address.to_string(), cause })
        };
        let processes = async {
            local.serve(self.current.subscribe(), Arc::clone(&self.address)).await;
            Ok(())
        };
        let swept = async {
            sweeper.run().await;
            Ok(())
        };
        tokio::select! {
            _ = stopped => Ok(()),
            ended = self.register_for_ever() => ended,
            ended = server => ended,
            ended = processes => ended,
            ended = swept => ended,
        }
    }

    async fn register_for_ever(&self) -> Result<(), Error> {
        loop {
            let mut session = Session::draw();
            let id = scheduler::register(&self.endpoints, &mut session, &self.address).await?;
            tracing::info!(store = %id, address = %self.address, "the object store is registered");
            let (incarnation, mut reports) = self.begin(id);
            _ = self.current.send_replace(Some(Arc::clone(&incarnation)));
            _ = self.registered.send_replace(Some(id));
            let end = tokio::select! {
                end = scheduler::beat(&self.endpoints, id, &incarnation.shelf) => end,
                end = scheduler::report(&self.endpoints, session, id, &incarnation.shelf, &mut reports) => end,
            };
            _ = self.registered.send_replace(None);
            _ = self.current.send_replace(None);
            incarnation.deliveries.cancel_all();
            if end == End::Die {
                return Err(Error::ToldToEnd);
            }
            tracing::warn!(store = %id, "the scheduler gave the store up; it drops its objects and registers anew");
        }
    }

    fn begin(&self, id: StoreId) -> (Arc<Incarnation>, mpsc::UnboundedReceiver<Report>) {
        let (sender, reports) = mpsc::unbounded_channel();
        let shelf = Shelf::new(self.limits, Arc::clone(&self.gauge), self.directory.clone(), sender);
        let here = format!("object store {id} at {}", self.address);
        let deliveries = Deliveries::new(Arc::clone(&shelf), Arc::clone(&self.peers), self.rules, here);
        let followers = Followers::default();
        (Arc::new(Incarnation { id, shelf, deliveries, followers }), reports)
    }
}

/// Reads all of a directory's mutable chunks, where nothing else waits.
async fn open_engine(path: PathBuf, bytes_max: u64) -> Result<Arc<Engine>, Error> {
    let opened = tokio::task::spawn_blocking(move || Engine::open(&path, bytes_max)).await;
    let opened =
        opened.map_err(|error| Error::Config(format!("mutable chunks could not be read: {error}")))?;
    Ok(Arc::new(opened?))
}

async fn serve(
    tcp: PortIncoming,
    service: Service,
    orders: OrdersServer,
    chunks: ChunkData,
) -> Result<(), tonic::transport::Error> {
    Server::builder()
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(peers::STREAM_WINDOW_BYTES)
        .initial_connection_window_size(peers::CONNECTION_WINDOW_BYTES)
        .max_frame_size(peers::FRAME_BYTES_MAX)
        .layer(tripod_dial::gate_of_store())
        .add_service(ObjStoreServer::new(service.clone()))
        .add_service(RayPeerServer::new(service))
        .add_service(orders)
        .add_service(WorkerServer::new(chunks).max_decoding_message_size(MESSAGE_BYTES_MAX))
        .serve_with_incoming(tcp)
        .await
}
