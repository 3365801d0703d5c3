//! For `tripod-fuzz` alone: both sides of the protocol between a store and processes of its machine, with bytes that
//! nobody has checked.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tripod_dial::Allow;

use crate::delivery::{Deliveries, Rules};
use crate::ids::StoreId;
use crate::incarnation::Incarnation;
use crate::local::{read_to_the_end, serve};
use crate::peers::Peers;
use crate::relay::Followers;
use crate::shelf::{Limits, Shelf};

/// Memory of the store: small, so that it is full soon.
const CAPACITY_BYTES: u64 = 256 << 10;
/// How long a conversation goes on after its last byte.
const AFTER: Duration = Duration::from_secs(30);

/// A process says this to an empty store, and takes what it answers.
///
/// # Panics
/// There is no socket to be had.
pub async fn converse(bytes: &[u8]) {
    let (sender, _reports) = mpsc::unbounded_channel();
    let limits =
        Limits { capacity_bytes: CAPACITY_BYTES, inline_bytes_max: 4 << 10, anew: Duration::from_secs(1) };
    let rules = Rules { transfers_max: 1, stall: Duration::from_secs(1), patience: Duration::from_secs(1) };
    let shelf = Shelf::new(limits, Arc::default(), None, sender);
    let deliveries =
        Deliveries::new(Arc::clone(&shelf), Arc::new(Peers::new(Allow::default())), rules, "fuzz".to_owned());
    let followers = Followers::default();
    let incarnation = Arc::new(Incarnation { id: StoreId(1), shelf, deliveries, followers });
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let serving = tokio::spawn(serve(theirs, incarnation, "10.0.0.1:1".into(), Arc::default()));
    let (mut answers, mut asks) = ours.into_split();
    let reading = tokio::spawn(async move { tokio::io::copy(&mut answers, &mut tokio::io::sink()).await });
    let _: io::Result<()> = asks.write_all(bytes).await;
    let _: io::Result<()> = asks.shutdown().await;
    // It ends when it has answered everything that came.
    drop(tokio::time::timeout(AFTER, serving).await);
    reading.abort();
}

/// A store says this to a process.
///
/// # Panics
/// There is no socket to be had.
pub async fn read_replies(bytes: &[u8]) {
    let (mut ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let said = bytes.to_vec();
    let writing = tokio::spawn(async move { ours.write_all(&said).await });
    read_to_the_end(&theirs).await;
    writing.abort();
}
