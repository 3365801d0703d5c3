//! Connections of the http port.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tripod_gateway::Gateway;
use tripod_local::{ConnectionLimits, Connections};
use tripod_tls::ServerTls;

use crate::metrics::NodeFigures;
use crate::router::router_with;

/// Connections at a time, of probes, collectors of metrics and people. They are of the files that a node keeps for itself,
/// so that it can be looked at while clients have taken all of theirs.
const LIMITS: ConnectionLimits = ConnectionLimits { all: 32, at_one_address: 16 };
/// A request's head has come by then. Between two requests of a connection as well.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long to wait after a failed accept: without open files to spare, the next one fails too.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Bytes that are taken of what its client has said.
const TURNED_AWAY_BYTES: usize = 4 << 10;
/// What a connection beyond the bound is told.
const TURNED_AWAY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// A connection, in plain text or by TLS.
trait Bytes: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Bytes for T {}

/// Serves the http port until `shutdown` resolves, and then until the answers that are under way have been given. A failed
/// accept concerns one connection, and ends nothing.
pub async fn serve(listener: TcpListener, gateway: Gateway, shutdown: impl Future<Output = ()> + Send) {
    serve_protected(listener, (NodeFigures::default(), None), gateway, shutdown).await;
}

/// [`serve`] of a node that also shows these figures, with its connections protected so, if they are.
pub async fn serve_protected(
    listener: TcpListener,
    (figures, tls): (NodeFigures, Option<ServerTls>),
    gateway: Gateway,
    shutdown: impl Future<Output = ()> + Send,
) {
    let router = router_with(gateway, figures);
    tripod_port::end_when_lost(&listener);
    let connections = Connections::new(LIMITS);
    let graceful = GracefulShutdown::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        match connections.admit(Some(peer.ip().to_canonical())) {
            Err(_) => turn_away(&stream),
            Ok(permit) => {
                let mut builder = http1::Builder::new();
                builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
                let service = TowerToHyperService::new(router.clone());
                let stream: Box<dyn Bytes> = match &tls {
                    Some(tls) => Box::new(tls.accept(stream, Some(peer.ip().to_canonical()))),
                    None => Box::new(stream),
                };
                let serving = graceful.watch(builder.serve_connection(TokioIo::new(stream), service));
                tokio::spawn(async move {
                    // Its client has gone, or said what is no request.
                    let _ = serving.await;
                    drop(permit);
                });
            }
        }
    }
    drop(listener);
    graceful.shutdown().await;
}

/// As far as it can be done without waiting.
fn turn_away(stream: &TcpStream) {
    // What has come is taken, or its being there would turn the end of the connection into a reset, which overtakes the
    // answer.
    let _ = stream.try_read(&mut [0; TURNED_AWAY_BYTES]);
    let _ = stream.try_write(TURNED_AWAY);
}
