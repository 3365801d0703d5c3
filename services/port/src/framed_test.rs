//! A protocol of a length and as many bytes, which are said back.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tripod_local::{ConnectionLimits, Connections};
use tripod_wait::until;

use super::*;
use crate::bytes_held::{Charge, MemoryLimits};
use crate::connection::{Listener, PortResources};
use crate::contact::{Contact, ContactSwitch};
use crate::serve::{Served, serve_through};

/// For longer than a stop takes.
const LONG: Duration = Duration::from_secs(60);

/// A served port.
struct Port {
    arriving: mpsc::Sender<io::Result<DuplexStream>>,
    connections: Connections,
    memory: Budget,
    contact: ContactSwitch,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Port {
    /// Echoes; what is longer than a byte only when `may` says so.
    fn start(limits: ConnectionLimits, may: &Arc<Notify>) -> Self {
        Self::start_within(Timeouts::default(), limits, may)
    }

    fn start_within(timeouts: Timeouts, limits: ConnectionLimits, may: &Arc<Notify>) -> Self {
        let (arriving, arrivals) = mpsc::channel(8);
        let (at_port, contact) = Contact::by_hand();
        let (connections, memory) = (Connections::new(limits), Budget::new(MemoryLimits::none()));
        let resources = PortResources::new(at_port, connections.clone()).charging(memory.clone());
        let may = Arc::clone(may);
        let framed = Framed::new(move |accepted, stopping| {
            let may = Arc::clone(&may);
            async move { drop(echo(accepted, &stopping, &may).await) }
        })
        .within(timeouts);
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(async move {
            let listener = Listener::within(ReceiverStream::new(arrivals));
            let shutdown = async { drop(stopped.await) };
            serve_through(listener, Served::Framed(framed), resources, shutdown).await.expect("serving");
        });
        Self { arriving, connections, memory, contact, stop, serving }
    }

    async fn connect(&self) -> DuplexStream {
        let (client, server) = tokio::io::duplex(1 << 10);
        self.arriving.send(Ok(server)).await.expect("it listens");
        client
    }
}

/// Says back what comes until the client ends, or the port stops between two messages.
async fn echo(accepted: Accepted, stopping: &Stopping, may: &Notify) -> io::Result<()> {
    let Accepted { stream, account, deadlines, .. } = accepted;
    let mut stream = BufReader::new(stream);
    loop {
        let begun = tokio::select! {
            begun = deadlines.begun(&mut stream) => begun?,
            () = stopping.begun() => return Ok(()),
        };
        if !begun {
            return Ok(());
        }
        let (mut bytes, _held) = deadlines.whole(read(&mut stream, &account)).await?;
        if bytes.len() > 1 {
            tokio::select! {
                () = may.notified() => {}
                () = stopping.overdue() => bytes.fill(b'?'),
            }
        }
        stream.write_u8(u8::try_from(bytes.len()).expect("short")).await?;
        stream.write_all(&bytes).await?;
    }
}

/// One message, whose bytes are counted as soon as it says how many there are.
async fn read(stream: &mut BufReader<Bytestream>, account: &Account) -> io::Result<(Vec<u8>, Charge)> {
    let length = stream.read_u8().await?;
    let held = account.call(length.into()).expect("room");
    let mut bytes = vec![0; length.into()];
    stream.read_exact(&mut bytes).await?;
    Ok((bytes, held))
}

async fn say(client: &mut DuplexStream, bytes: &[u8]) {
    client.write_u8(u8::try_from(bytes.len()).expect("short")).await.expect("a connection");
    client.write_all(bytes).await.expect("a connection");
}

async fn hear(client: &mut DuplexStream) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; client.read_u8().await?.into()];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}

async fn is_closed(client: &mut DuplexStream) -> bool {
    matches!(timeout(LONG, client.read_u8()).await, Ok(Err(_)))
}

#[tokio::test(start_paused = true)]
async fn a_framed_protocol_has_places_a_time_to_begin_and_counted_bytes() {
    let may = Arc::default();
    let port = Port::start(ConnectionLimits { all: 2, at_one_address: 2 }, &may);
    let (mut first, mut second) = (port.connect().await, port.connect().await);
    for client in [&mut first, &mut second] {
        say(client, b"a").await;
        assert_eq!(hear(client).await.expect("an echo"), b"a");
    }
    assert!(is_closed(&mut port.connect().await).await, "there is no third permit");
    assert_eq!(port.connections.refused(), 1);
    drop(second);
    until("its permit comes back", || (port.connections.count() == 1).then_some(())).await;
    let (mut silent, began) = (port.connect().await, Instant::now());
    assert!(
        is_closed(&mut silent).await && began.elapsed() < Timeouts::default().begin * 2,
        "it began nothing"
    );
    assert_eq!(port.connections.count(), 1, "who has begun stays");
    say(&mut first, b"held").await;
    until("it is counted", || (port.memory.held() == 4).then_some(())).await;
    may.notify_one();
    assert_eq!(hear(&mut first).await.expect("an echo"), b"held");
    drop(first);
    until("its permit comes back", || (port.connections.count() == 0).then_some(())).await;
}

#[tokio::test(start_paused = true)]
async fn who_has_said_nothing_for_longest_gives_way_to_who_comes_when_all_places_are_taken() {
    let may = Arc::default();
    let timeouts = Timeouts { begin: LONG * 10, ..Timeouts::default() };
    let port = Port::start_within(timeouts, ConnectionLimits { all: 3, at_one_address: 3 }, &may);
    let (mut speaks, mut longest) = (port.connect().await, port.connect().await);
    say(&mut speaks, b"a").await;
    assert_eq!(hear(&mut speaks).await.expect("an echo"), b"a");
    let mut silent = port.connect().await;
    let mut comes = port.connect().await;
    say(&mut comes, b"b").await;
    assert_eq!(hear(&mut comes).await.expect("an echo"), b"b");
    assert!(is_closed(&mut longest).await);
    assert_eq!((port.connections.count(), port.connections.refused()), (3, 1), "one was closed");
    for client in [&mut silent, &mut speaks] {
        say(client, b"c").await;
        assert_eq!(hear(client).await.expect("an echo"), b"c", "of the others none was");
    }
    assert!(is_closed(&mut port.connect().await).await, "nobody is silent any more");
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_connections_that_say_nothing_keep_nobody_out() {
    let may = Arc::default();
    let timeouts = Timeouts { begin: LONG * 10, ..Timeouts::default() };
    let port = Port::start_within(timeouts, ConnectionLimits { all: 1_000, at_one_address: 750 }, &may);
    let mut silent = Vec::new();
    for _ in 0..10_000 {
        silent.push(port.connect().await);
        assert!(port.connections.count() <= 750, "it has no more places than before");
    }
    let mut clients = Vec::new();
    for _ in 0..100 {
        let mut client = port.connect().await;
        say(&mut client, b"a").await;
        assert_eq!(timeout(LONG, hear(&mut client)).await.expect("soon").expect("an echo"), b"a");
        clients.push(client);
    }
    assert_eq!(port.connections.count(), 750);
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_a_framed_protocol_finish_and_closes_what_does_not() {
    let may = Arc::default();
    let port = Port::start(ConnectionLimits::none(), &may);
    let (mut idle, mut busy) = (port.connect().await, port.connect().await);
    say(&mut idle, b"a").await;
    assert_eq!(hear(&mut idle).await.expect("an echo"), b"a");
    say(&mut busy, b"busy").await;
    let mut stuck = port.connect().await;
    // A message that never comes whole.
    stuck.write_all(b"\x02x").await.expect("a connection");
    until("both messages are looked at", || (port.memory.held() == 6).then_some(())).await;
    port.stop.send(()).expect("serving");
    let began = Instant::now();
    assert!(is_closed(&mut idle).await, "it has nothing to finish");
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(hear(&mut busy).await.expect("a word"), b"????", "its outcome is unknown");
    assert!(is_closed(&mut busy).await && is_closed(&mut stuck).await);
    port.serving.await.expect("it ends");
    assert_eq!(port.connections.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_framed_port_that_lost_contact_sends_its_clients_away_and_stays_open() {
    let may = Arc::default();
    let port = Port::start(ConnectionLimits::none(), &may);
    let mut before = port.connect().await;
    say(&mut before, b"a").await;
    assert_eq!(hear(&mut before).await.expect("an echo"), b"a");
    port.contact.lose();
    assert!(is_closed(&mut before).await);
    let mut after = port.connect().await;
    say(&mut after, b"b").await;
    assert_eq!(timeout(LONG, hear(&mut after)).await.expect("after a moment").expect("an echo"), b"b");
}

#[tokio::test(start_paused = true)]
async fn a_framed_client_that_stops_within_a_message_is_left_and_a_slow_or_idle_one_is_not() {
    let may = Arc::default();
    let port = Port::start(ConnectionLimits::none(), &may);
    let limit = Timeouts::default().message;
    let (mut stuck, mut slow, mut idle) = (port.connect().await, port.connect().await, port.connect().await);
    say(&mut idle, b"a").await;
    assert_eq!(hear(&mut idle).await.expect("an echo"), b"a");
    let began = Instant::now();
    // A whole message, and the half of another with it.
    stuck.write_all(b"\x01a\x02x").await.expect("a connection");
    assert_eq!(hear(&mut stuck).await.expect("an echo"), b"a");
    may.notify_one();
    for byte in *b"\x03abc" {
        slow.write_u8(byte).await.expect("a connection");
        tokio::time::sleep(limit / 5).await;
    }
    assert_eq!(hear(&mut slow).await.expect("whole within the limit"), b"abc");
    assert!(is_closed(&mut stuck).await, "its message never came whole");
    assert!((limit..limit * 2).contains(&began.elapsed()), "{:?}", began.elapsed());
    tokio::time::sleep(limit * 20).await;
    for other in [&mut slow, &mut idle] {
        say(other, b"b").await;
        assert_eq!(hear(other).await.expect("it may rest between two messages"), b"b");
    }
}

#[tokio::test(start_paused = true)]
async fn a_framed_protocol_says_how_long_its_clients_may_be_silent() {
    let may = Arc::default();
    let (begin, idle) = (Duration::from_secs(1), Duration::from_secs(10));
    let timeouts = Timeouts { begin, idle: Some(idle), ..Timeouts::default() };
    let port = Port::start_within(timeouts, ConnectionLimits::none(), &may);
    let (mut silent, mut resting) = (port.connect().await, port.connect().await);
    say(&mut resting, b"a").await;
    assert_eq!(hear(&mut resting).await.expect("an echo"), b"a");
    let began = Instant::now();
    assert!(is_closed(&mut silent).await && (begin..begin * 2).contains(&began.elapsed()));
    assert!(is_closed(&mut resting).await && (idle..idle * 2).contains(&began.elapsed()));
}
