//! Connections of the http port.

use std::future::Future;
use std::pin::pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::MissedTickBehavior;
use tripod_gateway::Gateway;
use tripod_local::{ConnectionLimits, Connections};
use tripod_tls::ServerTls;

use crate::bearer::Arrived;
use crate::metrics::{self, NodeFigures, SnapshotsSeen};
use crate::router::{Parts, router_with};
use crate::ui::{LOOK_EVERY, Page};

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

/// Viewers of the page of one node.
pub const VIEWERS_MAX: usize = 1_000;
/// With fewer open files than that, viewers have no connections of their own.
const FILES_FOR_VIEWERS: u64 = 4_096;
/// Of the files beyond, viewers may have one in so many.
const FILES_A_VIEWER: u64 = 16;

/// How a port serves.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    pub parts: Parts,
    /// Viewers of the page that have connections besides those of everybody else.
    pub viewers: usize,
}

/// How many viewers a process may have connections for that may have so many open files.
#[must_use]
pub fn viewers_of_files(files: u64) -> usize {
    let spare = files.saturating_sub(FILES_FOR_VIEWERS) / FILES_A_VIEWER;
    usize::try_from(spare).unwrap_or(usize::MAX).min(VIEWERS_MAX)
}

/// A connection, in plain text or by TLS.
trait Bytes: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Bytes for T {}

/// Serves the http port until `shutdown` resolves, and then until the answers that are under way have been given. A failed
/// accept concerns one connection, and ends nothing.
pub async fn serve(listener: TcpListener, gateway: Gateway, shutdown: impl Future<Output = ()> + Send) {
    let manner = Manner { parts: Parts::All, viewers: 0 };
    serve_protected(listener, (NodeFigures::default(), None), gateway, manner, shutdown).await;
}

/// [`serve`] of a node that also shows these figures, with its connections protected so if they are, and in this manner.
pub async fn serve_protected(
    listener: TcpListener,
    (figures, tls): (NodeFigures, Option<ServerTls>),
    gateway: Gateway,
    manner: Manner,
    shutdown: impl Future<Output = ()> + Send,
) {
    let is_announced = manner.parts != Parts::PageOnly;
    let page = Page::new(gateway.clone(), manner.viewers, figures.viewers.clone(), is_announced);
    let looks =
        (manner.parts != Parts::WithoutPage).then(|| tokio::spawn(look_on(page.clone(), figures.clone())));
    let router = router_with(gateway, figures, manner.parts, page.clone());
    let ended = async {
        shutdown.await;
        page.end();
    };
    accept_until(listener, tls, router, limits(manner), ended).await;
    if let Some(looks) = looks {
        looks.abort();
    }
}

/// The page's viewers come on top, and one address has three quarters of their connections.
fn limits(manner: Manner) -> ConnectionLimits {
    let viewers = if manner.parts == Parts::WithoutPage { 0 } else { manner.viewers };
    ConnectionLimits { all: LIMITS.all + viewers, at_one_address: LIMITS.at_one_address + viewers / 4 * 3 }
}

/// Keeps the figures of the last quarter of an hour.
async fn look_on(page: Page, node: NodeFigures) {
    let mut tick = tokio::time::interval(LOOK_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let seen = SnapshotsSeen::default();
    loop {
        tick.tick().await;
        let figures = metrics::page(page.gateway(), &seen, node.clone()).await;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        page.history().keep(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), &figures);
    }
}

async fn accept_until(
    listener: TcpListener,
    tls: Option<ServerTls>,
    router: Router,
    limits: ConnectionLimits,
    shutdown: impl Future<Output = ()> + Send,
) {
    tripod_port::end_when_lost(&listener);
    let connections = Connections::new(limits);
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
                let from = peer.ip().to_canonical();
                let (stream, presented): (Box<dyn Bytes>, _) = match &tls {
                    Some(tls) => {
                        let stream = tls.accept(stream, Some(from));
                        let presented = stream.presented();
                        (Box::new(stream), Some(presented))
                    }
                    None => (Box::new(stream), None),
                };
                let arrived = Extension(Arrived { from, presented });
                let service = TowerToHyperService::new(router.clone().layer(arrived));
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
