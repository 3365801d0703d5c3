//! A way to a node that can stop to pass anything on, without closing a connection: what a client sees of
//! a cable that was pulled.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tripod_tests::jobs::port_of;

/// Listens at the port of its node, on another address of this machine. Dropping it closes everything.
pub(in crate::cases) struct Path {
    address: String,
    swallows: watch::Sender<bool>,
    connections: Arc<AtomicUsize>,
    listener: JoinHandle<()>,
}

impl Path {
    /// The host at which all paths listen: the whole of 127.0.0.0/8 is this machine.
    pub(super) const HOST: &'static str = "127.0.0.2";

    /// Opens a way to `node`, a `HOST:PORT`.
    pub(super) async fn open(node: &str) -> Result<Self> {
        Self::open_at(Self::HOST, node).await
    }

    /// [`Self::open`], at another of this machine's addresses.
    pub(in crate::cases) async fn open_at(host: &str, node: &str) -> Result<Self> {
        let address = format!("{host}:{}", port_of(node)?);
        let listener = TcpListener::bind(&address).await.with_context(|| format!("cannot open {address}"))?;
        let swallows = watch::Sender::new(false);
        let connections = Arc::new(AtomicUsize::new(0));
        let serve = accept(listener, node.to_owned(), swallows.subscribe(), Arc::clone(&connections));
        Ok(Self { address, swallows, connections, listener: tokio::spawn(serve) })
    }

    /// Where it listens.
    pub(in crate::cases) fn address(&self) -> &str {
        &self.address
    }

    /// How many connections lead through it.
    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Stops to pass anything on, or goes on where it stopped.
    pub(in crate::cases) fn swallow(&self, swallow: bool) {
        self.swallows.send_replace(swallow);
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

/// Connections end when the sender of `swallows` is gone.
async fn accept(
    listener: TcpListener,
    node: String,
    swallows: watch::Receiver<bool>,
    connections: Arc<AtomicUsize>,
) {
    while let Ok((client, _)) = listener.accept().await {
        let (node, swallows, connections) = (node.clone(), swallows.clone(), Arc::clone(&connections));
        tokio::spawn(async move {
            connections.fetch_add(1, Ordering::Relaxed);
            // Whichever end closes or fails, the other one sees it by the drop of both.
            let _ = join(client, &node, swallows).await;
            connections.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

async fn join(client: TcpStream, node: &str, swallows: watch::Receiver<bool>) -> Result<()> {
    let mut opened = swallows.clone();
    opened.wait_for(|swallow| !swallow).await?;
    let server = TcpStream::connect(node).await?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        ended = pass(from_client, to_server, swallows.clone()) => ended,
        ended = pass(from_server, to_client, swallows) => ended,
    }
}

/// Passes bytes on in one direction until its end.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut swallows: watch::Receiver<bool>,
) -> Result<()> {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut bytes).await?;
        // Bytes and ends of connections alike wait here: neither passes a silent network.
        swallows.wait_for(|swallow| !swallow).await?;
        if count == 0 {
            return Ok(());
        }
        to.write_all(&bytes[..count]).await?;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;
    use tripod_processes::cluster::ReservedPorts;
    use tripod_wait::within;

    use super::*;

    /// Long enough for bytes on loopback that nobody holds.
    const PASSING: Duration = Duration::from_millis(300);

    #[tokio::test]
    async fn what_is_swallowed_comes_later_and_no_connection_ends() {
        let ports = ReservedPorts::reserve(1).unwrap();
        let node = format!("127.0.0.1:{}", ports.first());
        let listener = TcpListener::bind(&node).await.unwrap();
        let path = Path::open(&node).await.unwrap();
        let mut client = TcpStream::connect(path.address()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        assert_eq!(path.connections(), 1);

        client.write_all(b"a").await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'a');
        path.swallow(true);
        client.write_all(b"b").await.unwrap();
        assert!(timeout(PASSING, server.read_u8()).await.is_err(), "a byte or an end came through");
        let _late = TcpStream::connect(path.address()).await.unwrap();
        assert!(timeout(PASSING, listener.accept()).await.is_err(), "a connection came through");
        path.swallow(false);
        assert_eq!(within("what was held", server.read_u8()).await.unwrap(), b'b');
        within("who was held", listener.accept()).await.unwrap();
    }
}
