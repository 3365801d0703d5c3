//! Connections that say nothing, half of something, or read nothing of what they asked for.

use std::future::poll_fn;
use std::time::Duration;

use anyhow::Context as _;
use bytes::{BufMut as _, Bytes, BytesMut};
use futures::future::join_all;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{Request, Response};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tonic::Status;

use super::aim::Aim;
use super::tally::{Bounds, GIVEN_UP, OK, Tally, word};

/// What an HTTP/2 client says first.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// What it says first, its settings, and headers of a call without an end.
pub const OPEN_HEADERS: &[u8] =
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x02\x01\0\0\0\0\x01\x83\x86";
/// The beginning of a request as browsers make it, without an end.
pub const HALF_HEAD: &[u8] = b"GET /status HTTP/1.1\r\nhost: ";
/// Bytes that are written at a time.
const PIECE_BYTES: usize = 64 << 10;
/// How long a connection may take to be there.
const OPEN_LIMIT: Duration = Duration::from_secs(5);
/// A connection's own window, which HTTP/2 does not let anybody make smaller.
const CONNECTION_WINDOW_BYTES: u32 = 65_535;

/// A message that is announced, and of which only so many bytes come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Half {
    pub announced_bytes: u32,
    pub sent_bytes: usize,
}

/// Calls of which no answer is read.
#[derive(Debug, Clone, Copy)]
pub struct Unread<'a> {
    pub path: &'static str,
    /// The message, without gRPC's frame.
    pub message: &'a Bytes,
}

/// Opens connections that say so much and nothing else, and tells how many of them the node ended in time.
pub async fn silent(aim: &Aim, bounds: Bounds, said: &'static [u8]) -> Tally {
    let deadline = Instant::now() + bounds.time;
    let lines = (0..bounds.count).map(async |turn| {
        let Ok(Ok(mut line)) = timeout(OPEN_LIMIT, aim.connect(turn)).await else { return "no connection" };
        if line.write_all(said).await.is_err() {
            return "ended";
        }
        let mut heard = Vec::new();
        match timeout_at(deadline, line.read_to_end(&mut heard)).await {
            // A reset is an end, too.
            Ok(_) => "ended",
            Err(_) => "held",
        }
    });
    let mut tally = Tally::default();
    join_all(lines).await.into_iter().for_each(|ended| tally.add(ended));
    tally
}

/// Sends the beginnings of so many messages over so many connections, and holds them until the time is over.
pub async fn half_messages(aim: &Aim, bounds: Bounds, connections: usize, half: Half) -> Tally {
    let deadline = Instant::now() + bounds.time;
    let lines = Line::several(aim, connections, Window::Usual).await;
    let messages = (0..bounds.count).map(async |number| {
        let Some(Ok(line)) = lines.get(number % connections.max(1)) else {
            return "no connection".to_owned();
        };
        let sent = timeout_at(deadline, line.begin(half)).await;
        let (answer, _body) = match sent {
            Err(_) => return GIVEN_UP.to_owned(),
            Ok(Err(why)) => return why,
            Ok(Ok(begun)) => begun,
        };
        match timeout_at(deadline, answer).await {
            Err(_) => "held".to_owned(),
            Ok(answer) => first_word(&answer),
        }
    });
    let mut tally = Tally::default();
    join_all(messages).await.into_iter().for_each(|ended| tally.add(ended));
    tally
}

/// Makes so many calls over so many connections, reads nothing but the beginnings of their answers, and holds them until the
/// time is over.
pub async fn unread(aim: &Aim, bounds: Bounds, connections: usize, calls: Unread<'_>) -> Tally {
    let deadline = Instant::now() + bounds.time;
    let lines = Line::several(aim, connections, Window::None).await;
    let mut tally = Tally::default();
    let mut asked = Vec::with_capacity(bounds.count);
    for number in 0..bounds.count {
        let Some(Ok(line)) = lines.get(number % connections.max(1)) else {
            tally.add("no connection");
            continue;
        };
        match timeout_at(deadline, line.ask(calls)).await {
            Err(_) => break,
            Ok(Err(why)) => tally.add(why),
            Ok(Ok(answer)) => asked.push(answer),
        }
    }
    // Together, so that those that were asked last have their turn, and kept, or the calls would be cancelled.
    let mut kept = Vec::new();
    for answer in asked {
        match timeout_at(deadline, answer).await {
            Err(_) => tally.add("unanswered"),
            Ok(answer) => {
                tally.add(first_word(&answer));
                kept.extend(answer);
            }
        }
    }
    tokio::time::sleep_until(deadline).await;
    tally
}

/// Begins calls over so many connections, and takes each back at once. A connection that the node ends is made anew.
pub async fn resets(aim: &Aim, bounds: Bounds, connections: usize) -> Tally {
    let deadline = Instant::now() + bounds.time;
    let callers = (0..connections).map(async |turn| {
        let (mut tally, mut kept) = (Tally::default(), None);
        for _ in 0..bounds.count / connections.max(1) {
            if Instant::now() >= deadline {
                break;
            }
            let line = match kept.take() {
                Some(line) => line,
                None => match timeout(OPEN_LIMIT, Line::open(aim, turn, Window::Usual)).await {
                    Ok(Ok(line)) => line,
                    _ => {
                        tally.add("no connection");
                        break;
                    }
                },
            };
            match timeout_at(deadline, line.call("/tripod.v1.Kv/Put")).await {
                Err(_) => break,
                Ok(Err(why)) => tally.add(why),
                Ok(Ok(begun)) => {
                    drop(begun);
                    tally.add("taken back");
                    kept = Some(line);
                }
            }
            // Nothing above has to wait for anybody.
            tokio::task::yield_now().await;
        }
        tally
    });
    let mut tally = Tally::default();
    join_all(callers).await.iter().for_each(|one| tally.merge(one));
    tally
}

/// How much a node may send before somebody reads.
#[derive(Clone, Copy)]
enum Window {
    Usual,
    None,
}

/// A connection of HTTP/2 on which an attacker says and reads what it likes.
struct Line {
    send: SendRequest<Bytes>,
    host: String,
    driver: JoinHandle<()>,
}

impl Line {
    async fn several(aim: &Aim, connections: usize, window: Window) -> Vec<anyhow::Result<Self>> {
        let lines = (0..connections).map(async |turn| {
            timeout(OPEN_LIMIT, Self::open(aim, turn, window)).await.context("a connection")?
        });
        join_all(lines).await
    }

    async fn open(aim: &Aim, turn: usize, window: Window) -> anyhow::Result<Self> {
        let stream = aim.connect(turn).await?;
        let mut builder = h2::client::Builder::new();
        builder.initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        if let Window::None = window {
            builder.initial_window_size(0);
        }
        let (send, connection) = builder.handshake(stream).await?;
        let driver = tokio::spawn(async move {
            // Its end shows in the calls.
            let _ = connection.await;
        });
        Ok(Self { send, host: aim.client(turn).to_string(), driver })
    }

    /// Begins a call.
    async fn call(&self, path: &str) -> Result<(ResponseFuture, SendStream<Bytes>), String> {
        let mut send = self.send.clone().ready().await.map_err(|error| broken(&error))?;
        let request = Request::post(format!("http://{}{path}", self.host))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .expect("a request of ours is one");
        send.send_request(request, false).map_err(|error| broken(&error))
    }

    /// Makes a whole call.
    async fn ask(&self, calls: Unread<'_>) -> Result<ResponseFuture, String> {
        let (answer, mut body) = self.call(calls.path).await?;
        let mut frame = head(u32::try_from(calls.message.len()).unwrap_or(u32::MAX));
        frame.extend_from_slice(calls.message);
        body.send_data(frame.freeze(), true).map_err(|error| broken(&error))?;
        Ok(answer)
    }

    /// Begins a put, and sends so much of it; the call is open as long as its two ends are kept.
    async fn begin(&self, half: Half) -> Result<(ResponseFuture, SendStream<Bytes>), String> {
        let (answer, mut body) = self.call("/tripod.v1.Kv/Put").await?;
        body.send_data(head(half.announced_bytes).freeze(), false).map_err(|error| broken(&error))?;
        let piece = Bytes::from(vec![0; PIECE_BYTES]);
        let mut left = half.sent_bytes;
        while left > 0 {
            body.reserve_capacity(left.min(PIECE_BYTES));
            match poll_fn(|context| body.poll_capacity(context)).await {
                Some(Ok(room)) => {
                    let piece = piece.slice(..room.min(left).min(PIECE_BYTES));
                    left -= piece.len();
                    body.send_data(piece, false).map_err(|error| broken(&error))?;
                }
                // The node does not want the rest; its answer says why.
                Some(Err(_)) | None => break,
            }
        }
        Ok((answer, body))
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// gRPC's frame around a message of that many bytes.
fn head(bytes: u32) -> BytesMut {
    let mut head = BytesMut::with_capacity(5);
    head.put_u8(0);
    head.put_u32(bytes);
    head
}

fn broken(error: &h2::Error) -> String {
    match error.reason() {
        Some(reason) => format!("ended by {reason:?}"),
        None => "ended".to_owned(),
    }
}

/// What the beginning of an answer says: why there is none, or that there is one.
fn first_word(answer: &Result<Response<RecvStream>, h2::Error>) -> String {
    match answer {
        Err(error) => broken(error),
        Ok(answer) => match Status::from_header_map(answer.headers()) {
            Some(status) if status.code() != tonic::Code::Ok => word(&status),
            _ => OK.to_owned(),
        },
    }
}
