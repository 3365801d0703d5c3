//! Frames of the parameter server.
//!
//! | offset | bytes | little-endian |
//! |---|---|---|
//! | 0 | 4 | format: 0 raw, 1 protobuf, 2 flatbuffers; it says nothing that a reader needs |
//! | 4 | 4 | bytes of the meta |
//! | 8 | 8 | bytes of meta and payload |
//! | 16 | | meta, payload |

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use prost::Message as _;
use tripod_proto::mindspore::ps_core::MessageMeta;

use super::{Broken, Command, Mark, Word};

/// Bytes of the part that every frame has.
pub const HEADER_BYTES: usize = 16;
/// Bytes of a meta. Those of control messages have tens; the name of a weight may stand in one.
pub const META_BYTES_MAX: u32 = 64 << 10;
/// Bytes of a meta and its payload. A list of all nodes of a cluster of 8,192 has less than one MiB, and what is longer
/// goes between nodes.
pub const MESSAGE_BYTES_MAX: u64 = 16 << 20;

/// How a payload says that it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Raw = 0,
    Protobuf = 1,
    Flatbuffers = 2,
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    pub format: Format,
    pub meta: MessageMeta,
    pub payload: Bytes,
}

/// One message whose meta is left as it came, whatever a later release says in it: for whoever passes it on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    pub format: Format,
    pub meta: Bytes,
    pub payload: Bytes,
}

/// One message as a node takes it, and what an agent says with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Marked {
    pub frame: Frame,
    pub mark: Option<Mark>,
}

/// What agents and nodes say in a meta. No release has fields of such numbers, and everybody skips those that it does not know.
#[derive(Clone, PartialEq, prost::Message)]
struct Ours {
    #[prost(bytes = "vec", optional, tag = "1001")]
    mark: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "1002")]
    word: Option<Vec<u8>>,
}

/// What stands in front of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub format: Format,
    pub meta_bytes: usize,
    /// With the meta.
    pub message_bytes: usize,
}

impl Header {
    /// What stands in front of a frame, if all of it is there.
    ///
    /// # Errors
    /// No frame begins so.
    pub fn read(front: &[u8]) -> Result<Option<Self>, Broken> {
        let Some(mut header) = front.get(..HEADER_BYTES) else { return Ok(None) };
        let (format, meta, message) = (header.get_u32_le(), header.get_u32_le(), header.get_u64_le());
        let format = match format {
            0 => Format::Raw,
            1 => Format::Protobuf,
            2 => Format::Flatbuffers,
            other => return Err(Broken::Beginning { found: other.to_le_bytes() }),
        };
        within("meta", meta.into(), META_BYTES_MAX.into())?;
        within("message", message, MESSAGE_BYTES_MAX)?;
        if u64::from(meta) > message {
            return Err(Broken::MetaTooLong { meta, message });
        }
        let small = |bytes: u64| usize::try_from(bytes).expect("a bound of 16 MiB");
        Ok(Some(Self { format, meta_bytes: small(meta.into()), message_bytes: small(message) }))
    }
}

impl Frame {
    /// What it is about.
    #[must_use]
    pub fn command(&self) -> Command {
        self.meta.cmd.into()
    }

    /// Its bytes on the wire.
    ///
    /// # Panics
    /// It is larger than a header can say.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        encode(self.format, &self.meta.encode_to_vec(), &self.payload)
    }
}

impl super::Frame for Frame {
    fn bytes_of(front: &[u8]) -> Result<usize, Broken> {
        <Parts as super::Frame>::bytes_of(front)
    }

    fn take(buffer: &mut BytesMut) -> Result<Option<Self>, Broken> {
        <Parts as super::Frame>::take(buffer)?.map(Self::try_from).transpose()
    }
}

impl super::Frame for Marked {
    fn bytes_of(front: &[u8]) -> Result<usize, Broken> {
        <Parts as super::Frame>::bytes_of(front)
    }

    fn take(buffer: &mut BytesMut) -> Result<Option<Self>, Broken> {
        let Some(parts) = <Parts as super::Frame>::take(buffer)? else { return Ok(None) };
        let mark = parts.mark();
        Ok(Some(Self { frame: parts.try_into()?, mark }))
    }
}

/// Reads what the meta says.
impl TryFrom<Parts> for Frame {
    type Error = Broken;

    fn try_from(Parts { format, meta, payload }: Parts) -> Result<Self, Broken> {
        Ok(Self { format, meta: MessageMeta::decode(meta)?, payload })
    }
}

impl Parts {
    /// What it is about.
    ///
    /// # Errors
    /// The meta cannot be read.
    pub fn command(&self) -> Result<Command, Broken> {
        Ok(MessageMeta::decode(self.meta.clone())?.cmd.into())
    }

    /// Its bytes on the wire.
    ///
    /// # Panics
    /// It is larger than a header can say.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        encode(self.format, &self.meta, &self.payload)
    }

    /// The same frame, from an agent. What its client has written in that place does not count: of a field that is there
    /// twice the last one does.
    ///
    /// # Errors
    /// There is no room for it in the meta, or in the message.
    pub fn marked(&self, mark: Mark) -> Result<Self, Broken> {
        let ours = Ours { mark: Some(mark.to_string().into()), word: None };
        let meta = [&self.meta[..], &ours.encode_to_vec()].concat();
        within("meta", meta.len() as u64, META_BYTES_MAX.into())?;
        within("message", (meta.len() + self.payload.len()) as u64, MESSAGE_BYTES_MAX)?;
        Ok(Self { meta: meta.into(), ..self.clone() })
    }

    /// What an agent says with it.
    #[must_use]
    pub fn mark(&self) -> Option<Mark> {
        Mark::read(&Ours::decode(self.meta.clone()).ok()?.mark?)
    }

    /// A word to an agent.
    #[must_use]
    pub fn of_word(word: Word) -> Self {
        let ours = Ours { mark: None, word: Some(word.text().into()) };
        Self { format: Format::Raw, meta: ours.encode_to_vec().into(), payload: Bytes::new() }
    }

    /// The word that it is.
    #[must_use]
    pub fn word(&self) -> Option<Word> {
        Word::read(&Ours::decode(self.meta.clone()).ok()?.word?)
    }
}

impl super::Frame for Parts {
    fn bytes_of(front: &[u8]) -> Result<usize, Broken> {
        Ok(Header::read(front)?.map_or(HEADER_BYTES, |header| HEADER_BYTES + header.message_bytes))
    }

    fn take(buffer: &mut BytesMut) -> Result<Option<Self>, Broken> {
        let Some(header) = Header::read(buffer)? else { return Ok(None) };
        if buffer.len() < HEADER_BYTES + header.message_bytes {
            return Ok(None);
        }
        buffer.advance(HEADER_BYTES);
        let mut message = buffer.split_to(header.message_bytes).freeze();
        let meta = message.split_to(header.meta_bytes);
        Ok(Some(Self { format: header.format, meta, payload: message }))
    }
}

/// What stands before a payload of so many bytes: for payloads that are never in one piece.
///
/// # Panics
/// The meta is larger than a header can say.
#[must_use]
pub fn front(format: Format, meta: &MessageMeta, payload_bytes: usize) -> BytesMut {
    front_of(format, &meta.encode_to_vec(), payload_bytes)
}

fn front_of(format: Format, meta: &[u8], payload_bytes: usize) -> BytesMut {
    let message = meta.len() + payload_bytes;
    let mut bytes = BytesMut::with_capacity(HEADER_BYTES + meta.len());
    bytes.put_u32_le(format as u32);
    bytes.put_u32_le(u32::try_from(meta.len()).expect("a meta is short"));
    bytes.put_u64_le(message as u64);
    bytes.extend_from_slice(meta);
    bytes
}

fn encode(format: Format, meta: &[u8], payload: &[u8]) -> Bytes {
    let mut bytes = front_of(format, meta, payload.len());
    bytes.extend_from_slice(payload);
    bytes.freeze()
}

fn within(what: &'static str, bytes: u64, limit: u64) -> Result<(), Broken> {
    if bytes > limit { Err(Broken::TooLong { what, bytes, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::super::{Frame as _, Stamp};
    use super::*;

    fn header(format: u32, meta: u32, message: u64) -> Vec<u8> {
        [&format.to_le_bytes()[..], &meta.to_le_bytes(), &message.to_le_bytes()].concat()
    }

    #[test]
    fn a_header_that_claims_too_much_is_refused_before_anything_of_it_is_waited_for() {
        let four_gib = u64::from(u32::MAX) + 1;
        for message in [MESSAGE_BYTES_MAX + 1, four_gib, u64::MAX] {
            let refused = Frame::bytes_of(&header(1, 4, message));
            let limit = MESSAGE_BYTES_MAX;
            assert_eq!(refused, Err(Broken::TooLong { what: "message", bytes: message, limit }));
        }
        let largest = Frame::bytes_of(&header(1, 4, MESSAGE_BYTES_MAX)).unwrap() as u64;
        assert_eq!(largest, HEADER_BYTES as u64 + MESSAGE_BYTES_MAX);
        let (bytes, limit) = (u64::from(META_BYTES_MAX) + 1, META_BYTES_MAX.into());
        let refused = Frame::bytes_of(&header(1, META_BYTES_MAX + 1, 1 << 20));
        assert_eq!(refused, Err(Broken::TooLong { what: "meta", bytes, limit }));
    }

    #[test]
    fn a_header_of_no_known_format_or_whose_meta_is_longer_than_all_is_refused() {
        assert_eq!(Frame::bytes_of(&header(3, 2, 2)), Err(Broken::Beginning { found: [3, 0, 0, 0] }));
        assert_eq!(Frame::bytes_of(&header(1, 3, 2)), Err(Broken::MetaTooLong { meta: 3, message: 2 }));
        assert_eq!(Frame::bytes_of(&header(1, 3, 2)[..15]), Ok(HEADER_BYTES), "it may still be one");
    }

    #[test]
    fn a_meta_that_cannot_be_read_breaks_the_connection_and_an_empty_frame_does_not() {
        let broken = [header(0, 1, 1), vec![0x80]].concat();
        let taken = Frame::take(&mut BytesMut::from(&broken[..]));
        assert!(matches!(taken, Err(Broken::Meta(_))), "{taken:?}");
        let empty = Frame::take(&mut BytesMut::from(&header(0, 0, 0)[..])).unwrap().unwrap();
        assert_eq!((empty.meta, empty.payload), (MessageMeta::default(), Bytes::new()));
    }

    #[test]
    fn a_mark_is_the_agents_and_the_rest_of_a_meta_stays_as_it_came() {
        let meta = MessageMeta { cmd: 1, request_id: 9, rank_id: u32::MAX, ..MessageMeta::default() };
        let frame = Frame { format: Format::Protobuf, meta, payload: Bytes::from_static(b"x") };
        let parts = Parts::take(&mut BytesMut::from(&frame.encode()[..])).unwrap().unwrap();
        assert_eq!((parts.mark(), parts.word()), (None, None));
        let forged = Mark { stamp: Some(Stamp { session: 7, sequence: 1, acknowledged_below: 1 }) };
        let marked = parts.marked(forged).unwrap().marked(Mark { stamp: None }).unwrap();
        assert_eq!(marked.mark(), Some(Mark { stamp: None }), "the last one counts");
        assert_eq!(marked.command(), Ok(Command::from(1)));
        assert!(marked.meta.starts_with(&parts.meta));
        assert_eq!(Frame::try_from(marked).unwrap(), frame, "who knows no mark reads the same");
        let word = Parts::take(&mut BytesMut::from(&Parts::of_word(Word::Refused).encode()[..]));
        assert_eq!(word.unwrap().unwrap().word(), Some(Word::Refused));
    }

    #[test]
    fn a_mark_for_which_a_meta_has_no_room_is_refused_as_such_a_meta_is() {
        let meta = Bytes::from(vec![0; META_BYTES_MAX as usize]);
        let full = Parts { format: Format::Raw, meta, payload: Bytes::new() };
        let refused = full.marked(Mark { stamp: None });
        assert!(matches!(refused, Err(Broken::TooLong { what: "meta", .. })), "{refused:?}");
    }

    #[test]
    fn what_a_meta_does_not_say_is_server_0_and_an_unknown_command_stays() {
        let meta = MessageMeta { cmd: 77, request_id: 9, ..MessageMeta::default() };
        let frame = Frame { format: Format::Raw, meta, payload: Bytes::from_static(b"x") };
        let read = Frame::take(&mut BytesMut::from(&frame.encode()[..])).unwrap().unwrap();
        assert_eq!((&read, read.command()), (&frame, Command::Unknown(77)));
        assert_eq!((read.meta.role, read.meta.rank_id), (0, 0));
    }
}
