//! Reads one segment file as it lies on disk.

use std::io;

use crate::disk::Blob;
use crate::disk::journal::frame::{
    ALIGN, FrameHead, FrameNumber, HEADER_BYTES, JournalId, Salt, SegmentHead, SegmentNumber,
};

/// A segment's bytes and the frames at its beginning that are whole.
pub(crate) struct Scan {
    pub(crate) number: SegmentNumber,
    salt: Salt,
    bytes: Vec<u8>,
    /// Where each begins, and its header.
    pub(crate) frames: Vec<(u64, FrameHead)>,
}

impl Scan {
    /// Reads a whole file. Blocks.
    pub(crate) fn read(file: &dyn Blob, journal: JournalId, number: SegmentNumber) -> io::Result<Self> {
        let size = usize::try_from(file.size()?).map_err(io::Error::other)?;
        let mut bytes = vec![0; size];
        let read = file.read_at(0, &mut bytes)?;
        bytes.truncate(read);
        let salt = Salt::new(journal, number);
        let frames = whole_frames(&bytes, salt);
        Ok(Self { number, salt, bytes, frames })
    }

    /// Reads a whole file of the journal that it says it belongs to; `None` if it does not say. Blocks.
    pub(crate) fn of_itself(file: &dyn Blob, number: SegmentNumber) -> io::Result<Option<Self>> {
        let mut bytes = vec![0; usize::try_from(ALIGN).expect("a small number")];
        let read = file.read_at(0, &mut bytes)?;
        match SegmentHead::parse(&bytes[..read]) {
            Some(head) => Self::read(file, head.journal, number).map(Some),
            None => Ok(None),
        }
    }

    /// What the file says of itself, if that is whole.
    pub(crate) fn head(&self) -> Option<SegmentHead> {
        SegmentHead::parse(&self.bytes)
    }

    /// Bytes of the file.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Where the whole frames end.
    pub(crate) fn end_bytes(&self) -> u64 {
        self.frames.last().map_or(ALIGN, |(offset, head)| offset + head.span())
    }

    /// A frame's body.
    pub(crate) fn body(&self, offset_bytes: u64, head: FrameHead) -> &[u8] {
        let start = usize::try_from(offset_bytes).expect("the frame was read") + HEADER_BYTES;
        &self.bytes[start..start + head.length as usize]
    }

    /// The highest number in a header behind the whole frames. Every frame below it was durable when
    /// that header was written.
    pub(crate) fn claim(&self) -> Option<FrameNumber> {
        let behind = self.bytes.get(usize::try_from(self.end_bytes()).ok()?..)?;
        let slots = behind.chunks(usize::try_from(ALIGN).expect("a small number"));
        slots.filter_map(|slot| FrameHead::parse(self.salt, slot)).map(|head| head.number).max()
    }

    /// Whether a seal stands right behind the whole frames, which says that `next` follows.
    pub(crate) fn is_sealed(&self, next: FrameNumber) -> bool {
        let at = usize::try_from(self.end_bytes()).expect("the file was read");
        let head = self.bytes.get(at..).and_then(|bytes| FrameHead::parse(self.salt, bytes));
        head.is_some_and(|head| head.seal && head.number == next)
    }
}

fn whole_frames(bytes: &[u8], salt: Salt) -> Vec<(u64, FrameHead)> {
    let mut frames: Vec<(u64, FrameHead)> = Vec::new();
    let mut at = usize::try_from(ALIGN).expect("a small number");
    while let Some(head) = bytes.get(at..).and_then(|bytes| FrameHead::parse(salt, bytes)) {
        let body = at + HEADER_BYTES;
        let follows = frames.last().is_none_or(|(_, before)| before.number.next() == head.number);
        let fits = bytes.get(body..body + head.length as usize).is_some_and(|body| head.fits(salt, body));
        if head.seal || !follows || !fits {
            break;
        }
        frames.push((at as u64, head));
        at += usize::try_from(head.span()).expect("the frame was read");
    }
    frames
}

/// Whether a whole frame stands at the beginning of a file, as in every segment that was ever begun
/// and finished its first write. Reads no more than that frame.
pub(crate) fn is_begun(file: &dyn Blob, journal: JournalId, number: SegmentNumber) -> io::Result<bool> {
    let salt = Salt::new(journal, number);
    let mut header = [0; HEADER_BYTES];
    let read = file.read_at(ALIGN, &mut header)?;
    let Some(head) = FrameHead::parse(salt, &header[..read]) else { return Ok(false) };
    // A damaged length must not make us allocate more than the file has.
    if head.seal || u64::from(head.length) > file.size()? {
        return Ok(false);
    }
    let mut body = vec![0; head.length as usize];
    let read = file.read_at(ALIGN + HEADER_BYTES as u64, &mut body)?;
    Ok(head.fits(salt, &body[..read]))
}
