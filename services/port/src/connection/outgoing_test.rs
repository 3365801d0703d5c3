use bytes::BufMut;
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::DuplexStream;

use super::*;
use crate::connection::frame::{END_HEADERS, GOAWAY};

/// Notes what each write was given; takes at most `takes` bytes at a time.
#[derive(Default)]
struct Socket {
    takes: usize,
    writes: Vec<Vec<u8>>,
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let count = bytes.len().min(self.takes);
        if count == 0 {
            return Poll::Pending;
        }
        self.writes.push(bytes[..count].to_vec());
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// What is outgoing, the socket, and an answer that may be about to come.
struct Way {
    calls: ConnectionCalls,
    outgoing: Outgoing,
    socket: Socket,
}

impl Way {
    fn new() -> Self {
        let calls = ConnectionCalls::default();
        let socket = Socket { takes: usize::MAX, writes: Vec::new() };
        Self { outgoing: Outgoing::new(calls.clone()), calls, socket }
    }

    /// What h2 does: writes, then flushes.
    async fn write(&mut self, bytes: &[u8]) {
        assert_eq!(self.outgoing.take(bytes), bytes.len());
        assert!(self.give().await.is_ready());
    }

    async fn give(&mut self) -> Poll<()> {
        let Self { outgoing, socket, .. } = self;
        std::future::poll_fn(|context| Poll::Ready(outgoing.poll_give(socket, context)))
            .await
            .map(|given| given.expect("a socket"))
    }

    /// Tries again whenever the task is woken, until the socket was given something.
    async fn until_written(&mut self) {
        let Self { outgoing, socket, .. } = self;
        std::future::poll_fn(|context| {
            assert!(outgoing.poll_give(socket, context).is_ready());
            if socket.writes.is_empty() { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }

    fn writes(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.socket.writes)
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload_bytes: usize) -> Vec<u8> {
    let mut out = BytesMut::new();
    out.put_uint(payload_bytes as u64, 3);
    out.put_u8(kind);
    out.put_u8(flags);
    out.put_u32(stream);
    out.put_bytes(0x55, payload_bytes);
    out.to_vec()
}

fn begin(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, 20)
}

fn message(stream: u32) -> Vec<u8> {
    message_of(stream, 40)
}

/// A message whose head says that it has so many bytes, and of which 40 are there.
fn message_of(stream: u32, claimed_bytes: u32) -> Vec<u8> {
    let mut frame = frame(DATA, 0, stream, 5 + 40);
    frame[9] = 0;
    frame[10..14].copy_from_slice(&claimed_bytes.to_be_bytes());
    frame
}

fn trailers(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, 3)
}

#[tokio::test(start_paused = true)]
async fn an_answer_leaves_when_its_end_has_come() {
    let mut way = Way::new();
    let _handing = way.calls.hand();
    way.write(&begin(1)).await;
    way.write(&message(1)).await;
    assert_eq!(way.writes(), [] as [Vec<u8>; 0]);
    way.write(&trailers(1)).await;
    assert_eq!(way.writes(), [[begin(1), message(1), trailers(1)].concat()]);
    way.write(&trailers(3)).await;
    assert_eq!(way.writes(), [trailers(3)], "an error has no other frame");
}

#[tokio::test(start_paused = true)]
async fn what_was_written_before_does_not_wait_and_answers_that_are_ready_together_leave_together() {
    let mut way = Way::new();
    let _handing = way.calls.hand();
    let first = [trailers(1), begin(3)].concat();
    way.write(&first).await;
    assert_eq!(way.writes(), [trailers(1)]);
    let rest = [begin(5), message(5), trailers(5), frame(GOAWAY, 0, 0, 8), message(3)].concat();
    way.write(&rest).await;
    assert_eq!(way.writes(), [] as [Vec<u8>; 0], "frames are not put into another order");
    way.write(&trailers(3)).await;
    assert_eq!(way.writes(), [[begin(3), rest, trailers(3)].concat()]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_reset_is_not_waited_for() {
    let mut way = Way::new();
    let _handing = way.calls.hand();
    let end = frame(RESET, 0, 1, 4);
    way.write(&begin(1)).await;
    way.write(&end).await;
    assert_eq!(way.writes(), [[begin(1), end].concat()]);
}

#[tokio::test(start_paused = true)]
async fn the_rest_of_an_answer_is_not_waited_for_forever() {
    let mut way = Way::new();
    let _handing = way.calls.hand();
    way.write(&begin(1)).await;
    let started = Instant::now();
    way.until_written().await;
    let waited = started.elapsed();
    assert!(waited >= REST_TAKES && waited <= REST_TAKES * 2, "{waited:?}");
    assert_eq!(way.writes(), [begin(1)]);
    way.write(&message(1)).await;
    assert_eq!(way.writes(), [message(1)], "it was waited for once");
}

#[tokio::test(start_paused = true)]
async fn a_stream_does_not_wait() {
    let mut way = Way::new();
    way.write(&begin(1)).await;
    assert_eq!(way.writes(), [] as [Vec<u8>; 0], "what was handed to h2 before this may not be written yet");
    let started = Instant::now();
    way.until_written().await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(way.writes(), [begin(1)]);
    way.write(&message(1)).await;
    assert_eq!(way.writes(), [message(1)]);
}

#[tokio::test(start_paused = true)]
async fn what_was_handed_over_before_the_first_idle_flush_is_in_time() {
    let mut way = Way::new();
    let handing = way.calls.hand();
    way.write(&[begin(1), message(1)].concat()).await;
    drop(handing);
    assert!(way.give().await.is_ready());
    assert_eq!(way.writes(), [] as [Vec<u8>; 0]);
    way.write(&trailers(1)).await;
    assert_eq!(way.writes(), [[begin(1), message(1), trailers(1)].concat()]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_the_window_does_not_let_through_is_not_kept_back() {
    let mut way = Way::new();
    let _handing = way.calls.hand();
    let half = [begin(1), message_of(1, 41)].concat();
    way.write(&half).await;
    let started = Instant::now();
    way.until_written().await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(way.writes(), [half]);
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_leaves_without_its_end_and_a_socket_that_takes_nothing_holds_h2_up() {
    let mut way = Way::new();
    way.socket.takes = 0;
    let large = frame(DATA, 0, 1, BYTES_MAX);
    let taken = way.outgoing.take(&[begin(1), large].concat());
    assert_eq!(taken, BYTES_MAX);
    assert!(way.outgoing.is_full());
    way.outgoing.release();
    assert!(way.give().await.is_pending());
    way.socket.takes = usize::MAX;
    assert!(way.give().await.is_ready());
    assert_eq!(way.writes().concat().len(), BYTES_MAX);
    assert!(way.outgoing.bytes.capacity() <= KEPT_BYTES_MAX, "room for large answers is given back");
}

proptest! {
    // A failure prints its input; files of old failures would only be litter.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_or_moved_and_no_begun_answer_is_cut(
        frames in vec((0_u8..4, any::<bool>(), 0_u32..3, 0_usize..300), 0..20),
        pieces in vec(1_usize..60, 1..20),
        takes in 1_usize..500,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        let mut bytes = Vec::new();
        for (kind, ends, stream, payload_bytes) in frames {
            let flags = if ends { END_STREAM } else { 0 };
            bytes.extend(frame(kind, flags, stream, payload_bytes));
        }
        runtime.block_on(async {
            let mut way = Way::new();
            way.socket.takes = takes;
            let mut rest = &bytes[..];
            for piece in pieces.iter().cycle() {
                let (now, later) = rest.split_at(rest.len().min(*piece));
                assert_eq!(way.outgoing.take(now), now.len());
                // h2 flushes at the end of a frame only.
                if way.outgoing.is_between_frames() {
                    assert!(way.give().await.is_ready());
                }
                let given = usize::try_from(way.outgoing.given).unwrap();
                let kept_from = way.outgoing.begun.front().map_or(bytes.len(), |begun| begun.at as usize);
                assert!(given <= kept_from, "{given} bytes are given, {kept_from} should be");
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            way.outgoing.release();
            assert!(way.give().await.is_ready());
            assert_eq!(way.writes().concat(), bytes);
        });
    }
}

#[test]
fn a_connection_can_move_between_threads() {
    fn is_send<T: Send>() {}
    is_send::<super::super::adapter::Mended<DuplexStream>>();
}
