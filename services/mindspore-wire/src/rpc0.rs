//! Frames of dynamic clusters.
//!
//! | offset | bytes | big-endian |
//! |---|---|---|
//! | 0 | 4 | `RPC0` |
//! | 4 | 4 | bytes of the name |
//! | 8 | 4 | bytes of where it goes to |
//! | 12 | 4 | bytes of where it comes from |
//! | 16 | 4 | bytes of the body |
//! | 20 | | name, to, from, body |

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use super::{Broken, Mark, Word};

/// What every frame begins with.
pub const MAGIC: [u8; 4] = *b"RPC0";
/// Bytes of the part that every frame has.
pub const HEADER_BYTES: usize = 20;
/// Bytes of a name and of each address, as upstream bounds them.
pub const FIELD_BYTES_MAX: u32 = 1024;
/// Bytes of a body. Upstream takes a GiB; what workers tell each other by their scheduler are addresses and ids.
pub const BODY_BYTES_MAX: u32 = 16 << 20;

/// What every address begins with.
const ADDRESS: &str = "@";

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The number of a message as text, or what a user calls one.
    pub name: Bytes,
    /// `@` and an address. Nobody reads it.
    pub to: Bytes,
    /// `@`. Nobody reads it.
    pub from: Bytes,
    pub body: Bytes,
}

struct Header {
    name: usize,
    to: usize,
    from: usize,
    body: usize,
}

impl Header {
    /// What stands in front of a frame, if all of it is there. What is wrong with the first bytes is told without the rest.
    fn read(front: &[u8]) -> Result<Option<Self>, Broken> {
        if let Some(magic) = front.first_chunk()
            && *magic != MAGIC
        {
            return Err(Broken::Beginning { found: *magic });
        }
        let Some(mut header) = front.get(MAGIC.len()..HEADER_BYTES) else { return Ok(None) };
        let mut length = |what, limit| {
            let bytes = header.get_u32();
            if bytes > limit {
                return Err(Broken::TooLong { what, bytes: bytes.into(), limit: limit.into() });
            }
            Ok(bytes as usize)
        };
        Ok(Some(Self {
            name: length("name", FIELD_BYTES_MAX)?,
            to: length("destination", FIELD_BYTES_MAX)?,
            from: length("origin", FIELD_BYTES_MAX)?,
            body: length("body", BODY_BYTES_MAX)?,
        }))
    }

    fn bytes(&self) -> usize {
        HEADER_BYTES + self.name + self.to + self.from + self.body
    }
}

impl Frame {
    /// Its bytes on the wire.
    ///
    /// # Panics
    /// It is larger than a header can say.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let parts = [&self.name, &self.to, &self.from, &self.body];
        let bytes = parts.iter().map(|part| part.len()).sum::<usize>();
        let mut frame = BytesMut::with_capacity(HEADER_BYTES + bytes);
        frame.extend_from_slice(&MAGIC);
        for part in parts {
            frame.put_u32(u32::try_from(part.len()).expect("no part has 4 GiB"));
        }
        for part in parts {
            frame.extend_from_slice(part);
        }
        frame.freeze()
    }
}

/// What an agent adds to a frame, and what it is told alone.
impl Frame {
    /// The same frame, from an agent.
    #[must_use]
    pub fn marked(&self, mark: Mark) -> Self {
        Self { from: format!("{ADDRESS}{mark}").into(), ..self.clone() }
    }

    /// What an agent says with it.
    #[must_use]
    pub fn mark(&self) -> Option<Mark> {
        Mark::read(self.from.strip_prefix(ADDRESS.as_bytes())?)
    }

    /// A word to an agent.
    #[must_use]
    pub fn of_word(word: Word) -> Self {
        let (name, address) = (word.text().as_bytes(), ADDRESS.as_bytes());
        let (name, address) = (Bytes::from_static(name), Bytes::from_static(address));
        Self { name, to: address.clone(), from: address, body: Bytes::new() }
    }

    /// The word that it is.
    #[must_use]
    pub fn word(&self) -> Option<Word> {
        Word::read(&self.name)
    }
}

impl super::Frame for Frame {
    fn bytes_of(front: &[u8]) -> Result<usize, Broken> {
        Ok(Header::read(front)?.map_or(HEADER_BYTES, |header| header.bytes()))
    }

    fn take(buffer: &mut BytesMut) -> Result<Option<Self>, Broken> {
        let Some(header) = Header::read(buffer)? else { return Ok(None) };
        if buffer.len() < header.bytes() {
            return Ok(None);
        }
        buffer.advance(HEADER_BYTES);
        let mut part = |bytes| buffer.split_to(bytes).freeze();
        Ok(Some(Self {
            name: part(header.name),
            to: part(header.to),
            from: part(header.from),
            body: part(header.body),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Frame as _;
    use super::*;

    fn header(lengths: [u32; 4]) -> Vec<u8> {
        let lengths = lengths.iter().flat_map(|length| length.to_be_bytes());
        MAGIC.into_iter().chain(lengths).collect()
    }

    #[test]
    fn a_part_that_claims_too_much_is_refused_before_anything_of_it_is_waited_for() {
        let over = FIELD_BYTES_MAX + 1;
        for (lengths, what, limit) in [
            ([over, 1, 1, 1], "name", FIELD_BYTES_MAX),
            ([1, over, 1, 1], "destination", FIELD_BYTES_MAX),
            ([1, 1, over, 1], "origin", FIELD_BYTES_MAX),
            ([1, 1, 1, BODY_BYTES_MAX + 1], "body", BODY_BYTES_MAX),
            ([1, 1, 1, u32::MAX], "body", BODY_BYTES_MAX),
        ] {
            let Err(Broken::TooLong { what: told, limit: at, .. }) = Frame::bytes_of(&header(lengths)) else {
                panic!("{lengths:?} is read");
            };
            assert_eq!((told, at), (what, limit.into()));
        }
        let largest = [FIELD_BYTES_MAX, FIELD_BYTES_MAX, FIELD_BYTES_MAX, BODY_BYTES_MAX];
        assert!(Frame::bytes_of(&header(largest)).unwrap() > BODY_BYTES_MAX as usize);
    }

    #[test]
    fn a_mark_stands_in_the_place_of_the_origin_and_changes_nothing_else() {
        let part = |text: &'static str| Bytes::from_static(text.as_bytes());
        let frame = Frame { name: part("6"), to: part("@10.0.0.1:8118"), from: part("@"), body: part("x") };
        assert_eq!((frame.mark(), frame.word()), (None, None));
        let mark = Mark { stamp: None };
        let marked = frame.marked(mark);
        assert_eq!((marked.mark(), &marked.from[..]), (Some(mark), &b"@tripod/1"[..]));
        assert_eq!(Frame { from: frame.from.clone(), ..marked }, frame);
        let word = Frame::take(&mut BytesMut::from(&Frame::of_word(Word::Silent).encode()[..]));
        assert_eq!(word.unwrap().unwrap().word(), Some(Word::Silent));
    }

    #[test]
    fn another_magic_is_refused_by_its_first_bytes() {
        let refused = Err(Broken::Beginning { found: *b"RPC1" });
        assert_eq!(Frame::bytes_of(b"RPC1"), refused);
        assert_eq!(Frame::bytes_of(b"RPC"), Ok(HEADER_BYTES), "it may still be one");
        assert_eq!(Frame::bytes_of(b""), Ok(HEADER_BYTES));
    }
}
