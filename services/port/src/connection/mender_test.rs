use bytes::BufMut;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const LIST: &str = "10.0.0.1:7700,10.0.0.2:7700";

fn put_frame(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut BytesMut) {
    out.put_uint(payload.len() as u64, 3);
    out.put_u8(kind);
    out.put_u8(flags);
    out.put_u32(stream);
    out.extend_from_slice(payload);
}

/// How one block is cut into frames.
#[derive(Debug, Clone)]
struct Framing {
    /// Bytes of padding, if padded.
    padding: Option<u8>,
    priority: bool,
    /// Bytes of each fragment.
    piece: usize,
}

impl Framing {
    const PLAIN: Self = Self { padding: None, priority: false, piece: PAYLOAD_BYTES_MAX };

    fn put(&self, stream: u32, block: &[u8], out: &mut BytesMut) {
        let mut pieces = block.chunks(self.piece).peekable();
        let mut payload = Vec::new();
        let mut flags = END_STREAM;
        if let Some(padding) = self.padding {
            flags |= 0x8;
            payload.push(padding);
        }
        if self.priority {
            flags |= 0x20;
            payload.extend_from_slice(&[0, 0, 0, 0, 16]);
        }
        payload.extend_from_slice(pieces.next().unwrap_or_default());
        payload.extend(std::iter::repeat_n(0, usize::from(self.padding.unwrap_or(0))));
        let end = |more: bool| if more { 0 } else { END_HEADERS };
        put_frame(HEADERS, flags | end(pieces.peek().is_some()), stream, &payload, out);
        while let Some(piece) = pieces.next() {
            put_frame(CONTINUATION, end(pieces.peek().is_some()), stream, piece, out);
        }
    }
}

/// A piece of what a client sends after the preface.
#[derive(Debug, Clone)]
enum Sent {
    Other { kind: u8, flags: u8, payload: Vec<u8> },
    Call { path: String, framing: Framing },
}

/// A client's bytes: every call has the same authority, and the encoder uses its table.
fn client_bytes(authority: &str, sent: &[Sent]) -> BytesMut {
    let mut encoder = loona_hpack::Encoder::new();
    let mut bytes = BytesMut::from(PREFACE);
    for (place, piece) in sent.iter().enumerate() {
        let stream = 1 + 2 * place as u32;
        match piece {
            Sent::Other { kind, flags, payload } => put_frame(*kind, *flags, stream, payload, &mut bytes),
            Sent::Call { path, framing } => {
                let fields = [(":authority", authority), (":path", path.as_str())];
                let fields = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
                framing.put(stream, &encoder.encode(fields), &mut bytes);
            }
        }
    }
    bytes
}

/// What the mender makes of `bytes` that come in pieces of the given lengths, repeated.
fn mend(bytes: &[u8], pieces: &[usize]) -> Result<(BytesMut, bool), Malformed> {
    let (mut mender, mut input, mut output) = (Mender::new(), BytesMut::new(), BytesMut::new());
    let mut rest = bytes;
    for piece in pieces.iter().cycle() {
        let (now, later) = rest.split_at((*piece).min(rest.len()));
        input.extend_from_slice(now);
        mender.feed(&mut input, &mut output)?;
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    mender.end(&mut input, &mut output);
    Ok((output, mender.is_passing()))
}

/// Authority and path of each call, and kind and payload of each other frame.
type ReadBack = (Vec<(String, String)>, Vec<(u8, Vec<u8>)>);

/// The calls and the other frames in what h2 would see, with an empty table as h2 has one.
fn read_back(mut bytes: &[u8]) -> ReadBack {
    let (mut calls, mut others, mut block) = (Vec::new(), Vec::new(), Vec::new());
    bytes = bytes.strip_prefix(PREFACE).expect("a preface");
    while let Some(head) = Head::peek(bytes) {
        let (frame, rest) = bytes.split_at(HEAD_BYTES + head.payload_bytes);
        bytes = rest;
        if head.kind != HEADERS && head.kind != CONTINUATION {
            others.push((head.kind, frame[HEAD_BYTES..].to_vec()));
            continue;
        }
        block.extend_from_slice(&frame[HEAD_BYTES..]);
        if head.has(END_HEADERS) {
            let fields = loona_hpack::Decoder::new().decode(&block).expect("literals");
            let text = |place: usize| String::from_utf8(fields[place].1.clone()).expect("text");
            calls.push((text(0), text(1)));
            block.clear();
        }
    }
    assert!(bytes.is_empty(), "a frame is cut off");
    (calls, others)
}

fn framing() -> impl Strategy<Value = Framing> {
    (any::<Option<u8>>(), any::<bool>(), 1_usize..200).prop_map(|(padding, priority, piece)| Framing {
        padding,
        priority,
        piece,
    })
}

fn sent() -> impl Strategy<Value = Vec<Sent>> {
    let other = (prop_oneof![Just(0_u8), 2_u8..5, 6_u8..9, 10_u8..], any::<u8>(), vec(any::<u8>(), 0..300))
        .prop_map(|(kind, flags, payload)| Sent::Other { kind, flags, payload });
    let call = ("/[a-z]{1,40}", framing()).prop_map(|(path, framing)| Sent::Call { path, framing });
    vec(prop_oneof![other, call], 0..12)
}

proptest! {
    // A failure prints its input; files of old failures would only be litter.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_ordinary_connection_is_not_changed(sent in sent(), pieces in vec(1_usize..400, 1..20)) {
        let bytes = client_bytes("node-1:7700", &sent);
        let (output, _) = mend(&bytes, &pieces).expect("well formed");
        prop_assert_eq!(output, bytes);
    }

    #[test]
    fn every_call_of_a_list_target_is_mended(sent in sent(), pieces in vec(1_usize..400, 1..20)) {
        let (output, passing) = mend(&client_bytes(LIST, &sent), &pieces).expect("well formed");
        let (calls, others) = read_back(&output);
        let expected_calls: Vec<_> = sent
            .iter()
            .filter_map(|piece| match piece {
                Sent::Call { path, .. } => Some(("10.0.0.1:7700".to_owned(), path.clone())),
                Sent::Other { .. } => None,
            })
            .collect();
        let expected_others: Vec<_> = sent
            .iter()
            .filter_map(|piece| match piece {
                Sent::Other { kind, payload, .. } => Some((*kind, payload.clone())),
                Sent::Call { .. } => None,
            })
            .collect();
        prop_assert_eq!(passing, calls.is_empty());
        prop_assert_eq!(calls, expected_calls);
        prop_assert_eq!(others, expected_others);
    }

    #[test]
    fn random_bytes_are_left_to_h2(noise in vec(any::<u8>(), 0..2000), pieces in vec(1_usize..100, 1..5)) {
        let mut bytes = BytesMut::from(PREFACE);
        bytes.extend_from_slice(&noise);
        if let Ok((output, true)) = mend(&bytes, &pieces) {
            prop_assert_eq!(output, bytes);
        }
    }

    #[test]
    fn random_frames_after_a_mended_call_never_panic(
        frames in vec((0_u8..11, any::<u8>(), 0_u32..4, vec(any::<u8>(), 0..100)), 0..20),
        pieces in vec(1_usize..100, 1..5),
    ) {
        let call = Sent::Call { path: "/x".to_owned(), framing: Framing::PLAIN };
        let mut bytes = client_bytes(LIST, &[call]);
        for (kind, flags, stream, payload) in &frames {
            put_frame(*kind, *flags, *stream, payload, &mut bytes);
        }
        if let Ok((output, passing)) = mend(&bytes, &pieces) {
            prop_assert!(!passing, "a rewritten connection cannot be passed through");
            prop_assert!(output.starts_with(PREFACE));
        }
    }
}

#[test]
fn another_protocol_passes() {
    let (output, passing) = mend(b"GET / HTTP/1.1\r\n\r\n", &[3]).expect("left to h2");
    assert_eq!(&output[..], b"GET / HTTP/1.1\r\n\r\n");
    assert!(passing);
}

#[test]
fn a_block_without_end_is_bounded() {
    let mut bytes = client_bytes("node:1", &[]);
    put_frame(HEADERS, 0, 1, b"", &mut bytes);
    for _ in 0..BLOCK_BYTES_MAX / HEAD_BYTES + 1 {
        put_frame(CONTINUATION, 0, 1, b"", &mut bytes);
    }
    let (output, passing) = mend(&bytes, &[usize::MAX]).expect("left to h2");
    assert!(passing);
    assert_eq!(output, bytes);
}

#[test]
fn a_rewritten_connection_that_goes_wrong_ends() {
    let call = || Sent::Call { path: "/x".to_owned(), framing: Framing::PLAIN };
    let after = |kind: u8, flags: u8, payload: &[u8]| {
        let mut bytes = client_bytes(LIST, &[call()]);
        put_frame(kind, flags, 3, payload, &mut bytes);
        mend(&bytes, &[usize::MAX]).expect_err("an error").to_string()
    };
    assert!(after(CONTINUATION, END_HEADERS, b"").contains("does not continue"));
    assert!(after(HEADERS, END_HEADERS | 0x8, b"\x09").contains("padding"));
    assert!(after(HEADERS, END_HEADERS, b"\xff\xff\xff\xff\xff\xff").contains("header block"));
    assert!(after(HEADERS, END_HEADERS, &vec![0; PAYLOAD_BYTES_MAX + 1]).contains("larger than agreed"));
}
