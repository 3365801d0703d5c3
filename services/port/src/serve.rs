//! From what a front end brings, and a listener, to a serving port.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tonic::service::Routes;
use tonic::transport::Server;

use crate::bytes_held::CONNECTION_WINDOW_BYTES;
use crate::connection::{Arrivals, Listener, MendedIncoming, PortResources};
use crate::direct::Direct;
use crate::followed::Followed;
use crate::framed::{self, Framed};
use crate::manner::Manners;
use crate::stop::{Reason, Stop, Stopping};
use crate::transport::serve_connections;

/// Bytes that a peer may send on one call before we grant more: values of tens of megabytes come.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 4 << 20;
/// Calls of one connection at a time. A client that gives up waiting for a key leaves its call open, so there may be
/// many; as many bytes as they take are counted, and this many of them never fit.
pub(crate) const STREAMS_MAX: u32 = 1 << 18;
/// For this long calls that must not be executed twice may go on when a node stops: an election, on average.
const FINISH_TIME: Duration = Duration::from_secs(1);
/// The same when a node is cut off. It may only be an election that takes long, so it goes on holding them, as if
/// nothing had happened; only their connection waits with them, and what is new goes elsewhere.
const CUT_OFF_TIME: Duration = Duration::from_secs(10);

/// A server with the bounds that these clients need.
///
/// The cap on concurrent streams is one that nobody meets: once calls that were left open fill it, the heartbeats of their
/// client starve and its process ends. What bounds them is the bytes that they hold. There is no idle or age limit: a
/// poll or a get may be held for the life of a job.
///
/// h2 takes half of the connection's window for small DATA frames that were not read yet, and ends a connection that has
/// more: with a smaller window a client with thousands of calls is cut.
#[must_use]
pub fn server() -> Server {
    Server::builder()
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
}

/// What a port serves. Cheap to clone.
#[derive(Debug, Clone)]
pub enum Served {
    /// Services of gRPC.
    Grpc(Grpc),
    /// A protocol that frames its bytes itself.
    Framed(Framed),
}

/// Services of gRPC, and what front ends say of their calls.
#[derive(Debug, Clone)]
pub struct Grpc {
    /// All services.
    pub routes: Routes,
    /// Those of them that are called past the router.
    pub direct: Vec<Direct>,
    pub manners: Manners,
}

/// The serving of connections until their stop begins, and then until the last of them has ended.
type Serving = Pin<Box<dyn Future<Output = Result<(), tonic::transport::Error>> + Send>>;

impl Served {
    fn serve(&self, listener: &Arc<Listener>, resources: &PortResources, stopping: Stopping) -> Serving {
        let (listener, resources) = (Arc::clone(listener), resources.clone());
        match self.clone() {
            Self::Grpc(Grpc { routes, direct, manners }) => {
                let services = Followed::new(routes, direct, manners, &stopping)
                    .gathering(resources.gather.clone())
                    .tallying(resources.streams.clone())
                    .counting(resources.calls.clone());
                let incoming = MendedIncoming::through(listener, stopping.clone(), resources);
                Box::pin(async move {
                    serve_connections(incoming, services, stopping).await;
                    Ok(())
                })
            }
            Self::Framed(framed) => {
                let (memory, silent) = (resources.memory.clone(), resources.silent.clone());
                let arrivals = Arrivals::new(listener, framed::no_words, stopping.clone(), resources);
                Box::pin(async move {
                    framed.serve(arrivals, memory, silent, stopping).await;
                    Ok(())
                })
            }
        }
    }
}

/// Serves on a listener until `shutdown` resolves, and then for some seconds at most. Services read
/// [`crate::Stopping`] from their requests, and have some tenths of a second to end what they hold. After that each
/// connection ends with a GOAWAY that covers no call, so that gRPC makes the calls that still wait once more,
/// elsewhere.
///
/// # Errors
/// The transport's, which end the serving of this listener.
pub async fn serve(
    listener: impl Into<Listener>,
    served: Served,
    shutdown: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error> {
    serve_through(listener, served, PortResources::open(), shutdown).await
}

/// [`serve`], and whenever contact is lost, connections end as if the port stopped, except that polls are given
/// back with the other calls that wait. The port stays open, but new connections wait a moment in that
/// time: clients who know other nodes go to those, and others come back. Connections are counted among those of the
/// process, and closed at once if there is no permit for them and none has said nothing yet, which would give way.
///
/// # Errors
/// The transport's, which end the serving of this listener.
pub async fn serve_through(
    listener: impl Into<Listener>,
    served: Served,
    resources: PortResources,
    shutdown: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error> {
    let listener = Arc::new(listener.into());
    let mut contact = resources.contact.clone();
    let mut left = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        let (stop, stopping) = Stop::new();
        let mut serving = served.serve(&listener, &resources, stopping);
        tokio::select! {
            biased;
            () = &mut shutdown => {
                tokio::select! {
                    served = serving => served?,
                    () = stop.run(FINISH_TIME) => {}
                }
                // What a loss of contact has left waits for contact, and not for this.
                left.shutdown().await;
                return Ok(());
            }
            () = contact.lost() => {
                let stopped = stop.run_for(Reason::CutOff, CUT_OFF_TIME);
                left.spawn(async move {
                    tokio::select! {
                        served = serving => drop(served),
                        () = stopped => {}
                    }
                });
            }
            served = &mut serving => return served,
        }
        while left.try_join_next().is_some() {}
    }
}
