//! A wire between two nodes that can lose what comes back.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tripod_raft::Options;

use super::{Cluster, free_port};

/// What the wire does with connections to its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Whole,
    /// Requests arrive, answers do not.
    LosesAnswers,
    /// Open connections end, and nobody listens.
    Cut,
}

/// Stands in front of one node's peer port. Its tasks end with it.
pub(crate) struct Proxy {
    wire: watch::Sender<Wire>,
    /// Whether the port is open.
    listening: watch::Receiver<bool>,
}

impl Proxy {
    /// A cluster of `count` nodes that reach each other through proxies, which are in the order of their ids.
    pub(crate) async fn before_all(count: u64) -> (Cluster, Vec<Self>) {
        // The members keep their addresses, which become those of the proxies.
        let real: Vec<String> = (0..count).map(|_| format!("127.0.0.1:{}", free_port())).collect();
        let cluster = Cluster::start_with(count, |options: &mut Options| {
            let slot = usize::try_from(options.node.0 - 1).unwrap();
            options.peer_listen.clone_from(&real[slot]);
        })
        .await;
        let mut proxies = Vec::new();
        for (member, target) in cluster.options[0].initial.iter().zip(real) {
            proxies.push(Self::start(member.peer.clone(), target).await);
        }
        (cluster, proxies)
    }

    /// Passes connections on `listen` to `target`.
    pub(crate) async fn start(listen: String, target: String) -> Self {
        let (wire, orders) = watch::channel(Wire::Whole);
        let (listens, listening) = watch::channel(false);
        tokio::spawn(serve(listen, target.into(), orders, listens));
        let proxy = Self { wire, listening };
        proxy.set(Wire::Whole).await;
        proxy
    }

    /// Changes the wire. Once this returns, new connections find it as it is now.
    pub(crate) async fn set(&self, wire: Wire) {
        self.wire.send_replace(wire);
        let mut listening = self.listening.clone();
        let wanted = wire != Wire::Cut;
        listening.wait_for(|listening| *listening == wanted).await.unwrap();
    }
}

async fn serve(
    listen: String,
    target: Arc<str>,
    mut wire: watch::Receiver<Wire>,
    listens: watch::Sender<bool>,
) {
    while wire.wait_for(|wire| *wire != Wire::Cut).await.is_ok() {
        let listener = TcpListener::bind(&listen).await.unwrap();
        listens.send_replace(true);
        let mut cut = wire.clone();
        tokio::select! {
            () = accept(&listener, &target, &wire) => {}
            _ = cut.wait_for(|wire| *wire == Wire::Cut) => {}
        }
        drop(listener);
        listens.send_replace(false);
    }
}

async fn accept(listener: &TcpListener, target: &str, wire: &watch::Receiver<Wire>) {
    loop {
        let Ok((near, _)) = listener.accept().await else { continue };
        let Ok(far) = TcpStream::connect(target).await else { continue };
        let (near_read, near_write) = near.into_split();
        let (far_read, far_write) = far.into_split();
        tokio::spawn(pass(near_read, far_write, wire.clone(), |_| true));
        tokio::spawn(pass(far_read, near_write, wire.clone(), |wire| wire != Wire::LosesAnswers));
    }
}

/// Copies until either end closes or the wire is cut.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    wire: watch::Receiver<Wire>,
    keeps: impl Fn(Wire) -> bool,
) {
    let mut bytes = vec![0; 64 << 10];
    let mut cut = wire.clone();
    loop {
        let read = tokio::select! {
            read = from.read(&mut bytes) => read,
            _ = cut.wait_for(|wire| *wire == Wire::Cut) => return,
        };
        let Ok(count @ 1..) = read else { return };
        let keep = keeps(*wire.borrow());
        if keep && to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
