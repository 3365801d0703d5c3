//! A client of HTTP/2 frames, for what no library sends: authorities that cannot be parsed, messages
//! that are cut off.

use std::io;

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// What a frame from the server means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The end of the call on a stream.
    Status {
        on: u32,
        code: String,
        text: String,
    },
    /// A PING that waits for its answer.
    Ping(Vec<u8>),
    GoAway {
        last_stream: u32,
        error: u32,
    },
    /// A part of an answer, or housekeeping.
    Part,
}

pub(crate) struct Frames<S> {
    socket: S,
    authority: &'static str,
    encoder: loona_hpack::Encoder<'static>,
    decoder: loona_hpack::Decoder<'static>,
    stream: u32,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Frames<S> {
    pub(crate) async fn open(mut socket: S, authority: &'static str) -> Self {
        socket.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.expect("a connection");
        let (encoder, decoder) = (loona_hpack::Encoder::new(), loona_hpack::Decoder::new());
        let mut frames = Self { socket, authority, encoder, decoder, stream: 1 };
        frames.send(SETTINGS, 0, 0, b"").await;
        frames
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut frame = BytesMut::new();
        frame.put_uint(payload.len() as u64, 3);
        frame.put_u8(kind);
        frame.put_u8(flags);
        frame.put_u32(stream);
        frame.put_slice(payload);
        self.socket.write_all(&frame).await.expect("a connection");
    }

    /// Sends a call with the given DATA and gives the stream that it has.
    pub(crate) async fn begin(&mut self, path: &str, data: &[u8]) -> u32 {
        let stream = self.stream;
        self.stream += 2;
        let fields = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", self.authority),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
        ];
        let block =
            self.encoder.encode(fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())));
        self.send(HEADERS, END_HEADERS, stream, &block).await;
        self.send(DATA, END_STREAM, stream, data).await;
        stream
    }

    /// Lets the server send so many bytes more on a stream, or with stream 0 on the connection.
    pub(crate) async fn grant(&mut self, stream: u32, bytes: u32) {
        self.send(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes()).await;
    }

    /// Sends a call with the given DATA and gives the status code and text that end it.
    pub(crate) async fn call(&mut self, path: &str, data: &[u8]) -> (String, String) {
        let stream = self.begin(path, data).await;
        loop {
            match self.next().await {
                Some(Seen::Status { on, code, text }) if on == stream => return (code, text),
                Some(Seen::Part) => {}
                other => panic!("{other:?} instead of an answer"),
            }
        }
    }

    /// What comes next, or `None` at the end of the connection.
    pub(crate) async fn next(&mut self) -> Option<Seen> {
        let mut head = [0; 9];
        match self.socket.read_exact(&mut head).await {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return None,
            Err(error) => panic!("no frame: {error}"),
        }
        let mut head = &head[..];
        let length = usize::try_from(head.get_uint(3)).expect("24 bits");
        let (kind, flags, on) = (head.get_u8(), head.get_u8(), head.get_u32());
        let mut payload = vec![0; length];
        self.socket.read_exact(&mut payload).await.expect("a whole frame");
        match kind {
            SETTINGS if flags & ACK == 0 => self.send(SETTINGS, ACK, 0, b"").await,
            PING if flags & ACK == 0 => return Some(Seen::Ping(payload)),
            GOAWAY => {
                let mut payload = &payload[..];
                return Some(Seen::GoAway { last_stream: payload.get_u32(), error: payload.get_u32() });
            }
            HEADERS => return Some(self.read_block(on, &payload)),
            DATA | SETTINGS | WINDOW_UPDATE => {}
            other => panic!("frame of kind {other} on stream {on}: {payload:?}"),
        }
        Some(Seen::Part)
    }

    /// Answers a PING.
    pub(crate) async fn pong(&mut self, payload: &[u8]) {
        self.send(PING, ACK, 0, payload).await;
    }

    fn read_block(&mut self, on: u32, block: &[u8]) -> Seen {
        let fields = self.decoder.decode(block).expect("a header block");
        let text = |name: &str| {
            let field = fields.iter().find(|(known, _)| known == name.as_bytes());
            field.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
        };
        match text("grpc-status") {
            Some(code) => Seen::Status { on, code, text: text("grpc-message").unwrap_or_default() },
            None => Seen::Part,
        }
    }
}

/// One message behind its gRPC head, which may lie about the length.
pub(crate) fn message(claimed_bytes: u32, body: &[u8]) -> Vec<u8> {
    let mut data = vec![0];
    data.extend_from_slice(&claimed_bytes.to_be_bytes());
    data.extend_from_slice(body);
    data
}
