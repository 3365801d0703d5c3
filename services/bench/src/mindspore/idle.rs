//! Thousands of connections that say nothing, as those of workers that have what they need: what they cost, and whether
//! others are served beside them.

use anyhow::Context as _;
use futures::StreamExt as _;
use futures::stream;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tripod_processes::cluster::Cluster;

use super::{AT_ONCE, Row, dynamic};

const MB: f64 = 1e6;

/// Opens them all to the first node of ours.
pub(super) async fn run(cluster: &Cluster, connections: u32) -> anyhow::Result<Vec<Row>> {
    let node = cluster.ids().next().context("no node")?;
    let job = super::job(cluster, "idle", 1, 0).await?;
    let address = job.addresses.first().context("no address")?.clone();
    let before = cluster.process(node)?.resident_bytes()?;
    let opening = stream::iter(0..connections).map(|_| TcpStream::connect(address.clone()));
    let opened: Vec<std::io::Result<TcpStream>> = opening.buffer_unordered(AT_ONCE).collect().await;
    let opened = opened.into_iter().collect::<std::io::Result<Vec<TcpStream>>>();
    let opened = opened.with_context(|| format!("not all of {connections} connections to {address}"))?;
    // Somebody who has something to say is served beside them.
    let began = Instant::now();
    let (workers, _) = dynamic::form(&job.addresses, 1).await.context("a worker beside idle connections")?;
    let served = began.elapsed();
    let after = cluster.process(node)?.resident_bytes()?;
    let open = opened.iter().filter(|stream| is_open(stream)).count();
    drop((workers, opened));
    job.delete().await?;
    let grown = (after as f64 - before as f64) / MB;
    Ok(vec![
        Row::new(format!("of {connections} idle connections to one node stay open"), open.to_string()),
        Row::new("its memory grows by".to_owned(), format!("{grown:.1} MB")),
        Row::new(
            "a worker connects and registers beside them".to_owned(),
            format!("{:.1} ms", served.as_secs_f64() * 1e3),
        ),
    ])
}

/// Whether the other side has not ended it.
fn is_open(stream: &TcpStream) -> bool {
    let ended = stream.try_read(&mut [0]);
    matches!(ended, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}
