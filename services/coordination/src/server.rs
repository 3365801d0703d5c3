//! From a gateway and a listener to a serving port.

use std::future::Future;
use std::time::Duration;

use tokio::sync::oneshot;
use tonic::codec::CompressionEncoding;
use tonic::service::Routes;
use tonic::transport::Server;
use tripod_gateway::Gateway;
use tripod_proto::tensorflow::coordination_service_server::CoordinationServiceServer as ServerT;
use tripod_proto::xla::coordination::coordination_service_server::CoordinationServiceServer as ServerN;

use crate::authority::{Listener, MendedIncoming};
use crate::deadline::Expiring;
use crate::dialect::Dialect;
use crate::front::{Front, JobBinding};
use crate::overlong::{MESSAGE_BYTES_MAX, Overlong};
use crate::{n, t};

/// Bytes that a peer may send on one call before we grant more: values of tens of megabytes come.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
/// Bytes that a peer may send on one connection before we grant more.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// How long held calls may go on after a stop was asked for.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

/// Both dialects for the job that `binding` names. The path tells them apart.
#[must_use]
pub fn routes(gateway: &Gateway, binding: &JobBinding) -> Routes {
    let front = |dialect| Front::new(gateway.clone(), binding.clone(), dialect);
    // Every call of newer clients says that it may be compressed; a service that does not accept
    // it answers UNIMPLEMENTED to all of them.
    let n = ServerN::new(n::Service::new(front(Dialect::N)))
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(usize::MAX);
    let t = ServerT::new(t::Service::new(front(Dialect::T)))
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(usize::MAX);
    Routes::new(Expiring::new(Overlong::new(n))).add_service(Expiring::new(Overlong::new(t)))
}

/// A server with the bounds that these clients need.
///
/// There is no cap on concurrent streams: a client that gives up waiting for a key leaves its call
/// open, and once such calls fill a cap its heartbeats starve and its process ends. There is no
/// idle or age limit either: a poll or a get may be held for the life of a job.
#[must_use]
pub fn server() -> Server {
    Server::builder()
        .max_concurrent_streams(u32::MAX)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
}

/// Serves `routes` on a listener until `shutdown` resolves, then lets calls under way end for a
/// moment. Calls that are held longer keep their connections until they end by themselves.
///
/// # Errors
/// The transport's, which end the serving of this listener.
pub async fn serve(
    listener: impl Into<Listener>,
    routes: Routes,
    shutdown: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error> {
    let (stop, stopped) = oneshot::channel::<()>();
    let incoming = MendedIncoming::new(listener.into());
    let serving = server().add_routes(routes).serve_with_incoming_shutdown(incoming, async {
        // A dropped sender means that the caller went away, which is a stop too.
        let _ = stopped.await;
    });
    let drained = async {
        shutdown.await;
        // The receiver is gone only when serving has ended, and then there is nothing to stop.
        let _ = stop.send(());
        tokio::time::sleep(DRAIN_LIMIT).await;
    };
    tokio::select! {
        served = serving => served,
        () = drained => Ok(()),
    }
}
