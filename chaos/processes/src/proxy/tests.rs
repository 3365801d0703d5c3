//! The network, with echoing servers in this process as nodes. Node 1 is whoever this process is.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};
use tripod_wait::within;

use super::{Flow, LinkEnd, Network, Route};
use crate::cluster::ReservedPorts;

/// Long enough to see that something does not come.
const QUIET: Duration = Duration::from_millis(300);

const ONE: LinkEnd = LinkEnd::Node(1);
const TWO: LinkEnd = LinkEnd::Node(2);

struct Setting {
    network: Network,
    peer_of_two: u16,
    client_of_two: u16,
    _ports: ReservedPorts,
}

/// Node 2 echoes what it is sent, on one port for nodes and clients.
async fn setting() -> Setting {
    let ports = ReservedPorts::reserve(3).unwrap();
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = server.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = server.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    let first = ports.first();
    let route = |node, entry| Route { node, entry, target };
    let network = Network::start(&[route(1, first), route(2, first + 1)], &[route(2, first + 2)]).unwrap();
    network.node_started(1, std::process::id());
    Setting { network, peer_of_two: first + 1, client_of_two: first + 2, _ports: ports }
}

async fn connect(port: u16) -> TcpStream {
    TcpStream::connect(("127.0.0.1", port)).await.unwrap()
}

async fn echoed(stream: &mut TcpStream, text: &[u8]) -> std::io::Result<Duration> {
    let begun = Instant::now();
    stream.write_all(text).await?;
    let mut answer = vec![0; text.len()];
    within("an echo", stream.read_exact(&mut answer)).await?;
    assert_eq!(answer, text);
    Ok(begun.elapsed())
}

/// Sends, and sees that nothing comes back.
async fn unanswered(stream: &mut TcpStream, text: &[u8]) {
    stream.write_all(text).await.unwrap();
    let mut answer = [0];
    assert!(timeout(QUIET, stream.read(&mut answer)).await.is_err(), "something arrived");
}

async fn answers(stream: &mut TcpStream, text: &[u8]) {
    let mut answer = vec![0; text.len()];
    within("an echo", stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(answer, text);
}

#[tokio::test]
async fn what_one_direction_swallows_arrives_when_it_is_over() {
    let Setting { network, peer_of_two, .. } = setting().await;
    let mut stream = connect(peer_of_two).await;
    echoed(&mut stream, b"well").await.unwrap();
    for (from, to) in [(ONE, TWO), (TWO, ONE)] {
        network.set_flow(from, to, Flow::Swallow);
        unanswered(&mut stream, b"held").await;
        network.heal();
        answers(&mut stream, b"held").await;
    }
    // Of the clients' connections nothing was held back.
    network.set_flow_between(ONE, TWO, Flow::Swallow);
    let mut client = connect(network_client(&network, peer_of_two)).await;
    echoed(&mut client, b"client").await.unwrap();
}

/// The clients' port lies behind the peers' in [`setting`].
fn network_client(network: &Network, peer_of_two: u16) -> u16 {
    assert_eq!(network.nodes(), [1, 2]);
    peer_of_two + 1
}

#[tokio::test]
async fn only_the_direction_that_was_named_is_cut() {
    let Setting { network, peer_of_two, .. } = setting().await;
    let mut stream = connect(peer_of_two).await;
    echoed(&mut stream, b"well").await.unwrap();
    // What node 2 sends on connections of node 1 goes backward, and does not arrive.
    network.set_flow(TWO, ONE, Flow::Swallow);
    let condition = network.condition(ONE, TWO).unwrap();
    assert_eq!((condition.forward, condition.backward), (Flow::Pass, Flow::Swallow));
    let opposite = network.condition(TWO, ONE).unwrap();
    assert_eq!((opposite.forward, opposite.backward), (Flow::Swallow, Flow::Pass));
    unanswered(&mut stream, b"a").await;
}

#[tokio::test]
async fn a_delay_takes_its_time_and_keeps_the_order() {
    let Setting { network, client_of_two, .. } = setting().await;
    let mut stream = connect(client_of_two).await;
    network.set_flow(LinkEnd::Clients, TWO, Flow::Delay { least_ms: 150, jitter_ms: 50 });
    let took = echoed(&mut stream, b"later").await.unwrap();
    assert!(took >= Duration::from_millis(150), "{took:?}");
    let text: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    let (mut read, mut write) = stream.split();
    let mut answer = vec![0; text.len()];
    let (sent, got) = tokio::join!(write.write_all(&text), read.read_exact(&mut answer));
    assert!(sent.is_ok() && got.is_ok() && answer == text);
}

#[tokio::test]
async fn a_narrow_line_carries_no_more_than_it_can() {
    let Setting { network, client_of_two, .. } = setting().await;
    let mut stream = connect(client_of_two).await;
    network.set_flow(TWO, LinkEnd::Clients, Flow::Slow { bytes_per_second: 20_000 });
    let took = echoed(&mut stream, &[7; 10_000]).await.unwrap();
    assert!(took >= Duration::from_millis(400), "{took:?}");
}

#[tokio::test]
async fn a_reset_ends_open_connections_and_spares_new_ones() {
    let Setting { network, peer_of_two, .. } = setting().await;
    let mut stream = connect(peer_of_two).await;
    echoed(&mut stream, b"well").await.unwrap();
    network.reset(TWO, ONE);
    let ended = within("the connection's end", stream.read(&mut [0])).await;
    assert!(ended.is_err(), "an orderly end instead of a reset");
    echoed(&mut connect(peer_of_two).await, b"again").await.unwrap();
}

#[tokio::test]
async fn refused_connections_are_reset_and_open_ones_stay() {
    let Setting { network, peer_of_two, .. } = setting().await;
    let mut open = connect(peer_of_two).await;
    echoed(&mut open, b"well").await.unwrap();
    network.refuse_new(ONE, TWO, true);
    assert!(echoed(&mut connect(peer_of_two).await, b"refused").await.is_err());
    echoed(&mut open, b"stays").await.unwrap();
    network.heal();
    echoed(&mut connect(peer_of_two).await, b"again").await.unwrap();
}

#[tokio::test]
async fn connections_with_a_lifetime_end_within_it() {
    let Setting { network, client_of_two, .. } = setting().await;
    network.limit_lifetime(LinkEnd::Clients, TWO, Some(100));
    let mut stream = connect(client_of_two).await;
    let ended = within("the connection's end", stream.read(&mut [0])).await;
    assert!(ended.is_err(), "an orderly end instead of a reset");
}

#[tokio::test]
async fn an_orderly_end_passes_through() {
    let Setting { client_of_two, network, .. } = setting().await;
    let mut stream = connect(client_of_two).await;
    stream.write_all(b"last").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    within("an end", stream.read_to_end(&mut answer)).await.unwrap();
    assert_eq!(answer, b"last");
    drop(network);
}

#[tokio::test]
async fn processes_that_are_no_node_are_not_let_in() {
    let Setting { network, peer_of_two, .. } = setting().await;
    network.node_started(1, u32::MAX);
    let mut stream = connect(peer_of_two).await;
    let ended = within("a refusal", stream.read(&mut [0])).await;
    assert!(matches!(ended, Ok(0) | Err(_)));
}
