use std::task::Waker;

use bytes::{BufMut, BytesMut};
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::DuplexStream;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::server::Connected;

use super::*;
use crate::caller_address::CallerAddress;
use crate::connection::adapter::Mended;
use crate::connection::frame::GOAWAY;
use crate::stop::Stop;

/// More than any test writes, so that no write has to wait.
const PIPE_BYTES: usize = 1 << 20;

/// A connection whose two ends are polled by hand.
struct Ends {
    stop: Stop,
    ours: Mended<DuplexStream>,
    client: DuplexStream,
    /// What a connection counts its time by.
    _runtime: Runtime,
}

impl Ends {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        let entered = runtime.enter();
        let (stop, stopping) = Stop::new();
        let (inner, client) = tokio::io::duplex(PIPE_BYTES);
        let ours = Mended::new(inner, CallerAddress::default(), stopping);
        drop(entered);
        Self { stop, ours, client, _runtime: runtime }
    }

    /// What h2 does when it has something to write, in this order.
    fn write(&mut self, bytes: &[u8]) {
        let mut context = Context::from_waker(Waker::noop());
        assert!(self.read_of_ours().is_pending());
        let written = Pin::new(&mut self.ours).poll_write(&mut context, bytes);
        assert!(matches!(written, Poll::Ready(Ok(count)) if count == bytes.len()), "{written:?}");
        assert!(Pin::new(&mut self.ours).poll_flush(&mut context).is_ready());
    }

    fn read_of_ours(&mut self) -> Poll<usize> {
        let mut bytes = [0; 64];
        let mut buffer = ReadBuf::new(&mut bytes);
        let read = Pin::new(&mut self.ours).poll_read(&mut Context::from_waker(Waker::noop()), &mut buffer);
        read.map(|read| {
            read.expect("a connection");
            buffer.filled().len()
        })
    }

    /// Everything that the client was sent.
    fn sent(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; PIPE_BYTES];
        let mut buffer = ReadBuf::new(&mut bytes);
        // Nothing to read is no frame at all.
        let _ = Pin::new(&mut self.client).poll_read(&mut Context::from_waker(Waker::noop()), &mut buffer);
        buffer.filled().to_vec()
    }

    /// Whether the client has read to our end.
    fn has_ended(&mut self) -> bool {
        let mut bytes = [0; 1];
        let mut buffer = ReadBuf::new(&mut bytes);
        let read = Pin::new(&mut self.client).poll_read(&mut Context::from_waker(Waker::noop()), &mut buffer);
        matches!(read, Poll::Ready(Ok(()))) && buffer.filled().is_empty()
    }

    fn client_writes(&mut self, bytes: &[u8]) {
        let written = Pin::new(&mut self.client).poll_write(&mut Context::from_waker(Waker::noop()), bytes);
        assert!(matches!(written, Poll::Ready(Ok(count)) if count == bytes.len()), "{written:?}");
    }
}

fn put(kind: u8, payload: &[u8], out: &mut BytesMut) {
    out.put_uint(payload.len() as u64, 3);
    out.put_u8(kind);
    out.put_u8(0);
    out.put_u32(1);
    out.extend_from_slice(payload);
}

proptest! {
    // A failure prints its input; files of old failures would only be litter.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_last_goaway_comes_at_the_end_of_a_frame_and_nothing_after_it(
        frames in vec((0_u8..7, vec(any::<u8>(), 0..200)), 0..12),
        pieces in vec(1_usize..300, 1..12),
        cut_at in 0_usize..20,
    ) {
        let mut bytes = BytesMut::new();
        let mut ends = vec![0];
        for (kind, payload) in &frames {
            put(*kind, payload, &mut bytes);
            ends.push(bytes.len());
        }
        // Begins of answers wait for their rest for some time.
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        let _within = runtime.enter();
        let mut connection = Ends::new();
        let mut written = 0;
        let mut said_at = None;
        for (place, piece) in pieces.iter().cycle().enumerate() {
            if place == cut_at {
                connection.stop.enter(Phase::Cutting);
            }
            let next = bytes.len().min(written + piece);
            connection.write(&bytes[written..next]);
            written = next;
            if said_at.is_none() && place >= cut_at && ends.contains(&written) {
                said_at = Some(written);
            }
            if written == bytes.len() && place >= cut_at {
                break;
            }
        }
        let mut expected = bytes[..said_at.expect("the last frame ends")].to_vec();
        expected.extend_from_slice(&LAST_GOAWAY);
        prop_assert_eq!(connection.sent(), expected);
    }
}

#[test]
fn a_connection_parts_when_it_is_quiet_and_h2_takes_no_more_calls() {
    let mut connection = Ends::new();
    let mut goaway = BytesMut::new();
    put(GOAWAY, &[0; 8], &mut goaway);
    let call = connection.ours.connect_info().enter();
    connection.stop.enter(Phase::Parting);
    connection.write(&goaway);
    connection.write(&goaway);
    assert!(!connection.sent().ends_with(&LAST_GOAWAY), "a call is under way");
    drop(call);
    connection.write(b"");
    assert_eq!(connection.sent(), LAST_GOAWAY);
}

#[test]
fn nothing_that_comes_too_late_reaches_h2_and_the_end_of_the_client_does() {
    let mut connection = Ends::new();
    connection.stop.enter(Phase::Overdue);
    connection.client_writes(b"a call");
    assert!(connection.read_of_ours().is_pending(), "it could be executed twice");
    connection.stop.enter(Phase::Cutting);
    connection.write(b"");
    assert_eq!(connection.sent(), LAST_GOAWAY);
    assert!(connection.read_of_ours().is_pending(), "discarded");
    drop(std::mem::replace(&mut connection.client, tokio::io::duplex(1).0));
    assert_eq!(connection.read_of_ours(), Poll::Ready(0));
}

#[test]
fn our_side_ends_when_the_client_has_given_its_calls_back() {
    let mut connection = Ends::new();
    connection.stop.enter(Phase::Cutting);
    connection.write(b"");
    assert_eq!(connection.sent(), LAST_GOAWAY);
    assert!(connection.read_of_ours().is_pending());
    assert!(!connection.has_ended(), "the client may not have heard yet");
    connection.client_writes(b"a reset");
    assert!(connection.read_of_ours().is_pending(), "the client's side goes on");
    assert!(connection.has_ended());
}
