//! An object as the chunks of a stream.

use bytes::Bytes;
use tripod_proto::ray::ObjChunk;

use crate::value::Pinned;

/// The size of chunks for a receiver that does not ask for another: what stores of August 2016 sent.
const SEED_CHUNK_BYTES: u64 = 8192;
/// The largest chunks that a receiver gets, however large it asks for them.
pub(crate) const CHUNK_BYTES_MAX: u64 = 1 << 20;

/// The chunks of an object from an offset on. An object, or a rest, of no bytes is one empty chunk.
#[derive(Debug)]
pub(crate) struct Chunks {
    object: Pinned,
    metadata_offset: u64,
    next: usize,
    chunk_bytes: usize,
    /// The receiver asked for the size of chunks, so it knows our other fields.
    checked: bool,
    /// Of everything before the first chunk; `None` once that was sent.
    before_crc32c: Option<u32>,
    ended: bool,
}

/// The receiver asks for bytes behind the object's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BeyondEnd;

impl Chunks {
    /// Chunks of `chunk_bytes`, 0 for those that stores of August 2016 sent, which ignored `offset` too.
    pub(crate) fn new(
        object: Pinned,
        metadata_offset: u64,
        offset: u64,
        chunk_bytes: u64,
    ) -> Result<Self, BeyondEnd> {
        let next = usize::try_from(offset).map_err(|_| BeyondEnd)?;
        let before = object.bytes.get(..next).ok_or(BeyondEnd)?;
        let checked = chunk_bytes > 0;
        let before_crc32c = (checked && offset > 0).then(|| crc32c::crc32c(before));
        let chunk_bytes =
            if checked { chunk_bytes.clamp(SEED_CHUNK_BYTES, CHUNK_BYTES_MAX) } else { SEED_CHUNK_BYTES };
        let chunk_bytes = usize::try_from(chunk_bytes).map_err(|_| BeyondEnd)?;
        Ok(Self { object, metadata_offset, next, chunk_bytes, checked, before_crc32c, ended: false })
    }
}

impl Iterator for Chunks {
    type Item = ObjChunk;

    fn next(&mut self) -> Option<ObjChunk> {
        if self.ended {
            return None;
        }
        let all: &Bytes = &self.object.bytes;
        let end = all.len().min(self.next.saturating_add(self.chunk_bytes));
        let data = all.slice(self.next..end);
        self.next = end;
        self.ended = end == all.len();
        Some(ObjChunk {
            total_size: all.len() as u64,
            metadata_offset: self.metadata_offset,
            data_crc32c: self.checked.then(|| crc32c::crc32c(&data)),
            before_crc32c: self.before_crc32c.take(),
            data,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::value::{Gauge, Value};

    fn chunks(len: usize, offset: u64, chunk_bytes: u64) -> Result<Vec<ObjChunk>, BeyondEnd> {
        let bytes: Vec<u8> = (0..len).map(|place| u8::try_from(place % 251).expect("below 251")).collect();
        let gauge = Arc::new(Gauge::default());
        let value = Arc::new(Value::inline(bytes.into(), 5, gauge.take(0)));
        Ok(Chunks::new(value.bytes().expect("inline"), 5, offset, chunk_bytes)?.collect())
    }

    #[test]
    fn seed_peers_get_chunks_of_8_kib_with_the_totals_in_each_and_no_fields_of_ours() {
        for (len, count) in [(0, 1), (1, 1), (8191, 1), (8192, 1), (8193, 2), (1 << 20, 128)] {
            let chunks = chunks(len, 0, 0).expect("from the beginning");
            assert_eq!(chunks.len(), count, "{len} bytes");
            assert_eq!(chunks.iter().map(|chunk| chunk.data.len()).sum::<usize>(), len);
            for chunk in &chunks {
                assert_eq!((chunk.total_size, chunk.metadata_offset), (len as u64, 5));
                assert_eq!((chunk.data_crc32c, chunk.before_crc32c), (None, None));
            }
        }
    }

    #[test]
    fn sizes_that_are_asked_for_are_kept_within_bounds() {
        assert_eq!(chunks(100_000, 0, 1).expect("cut").len(), 13);
        assert_eq!(chunks(3 << 20, 0, u64::MAX).expect("cut").len(), 3);
        assert_eq!(chunks(100_000, 0, 50_000).expect("cut").len(), 2);
    }

    #[test]
    fn the_rest_of_an_object_says_what_is_before_it() {
        let whole = chunks(20_000, 0, 1 << 20).expect("whole").remove(0);
        let rest = chunks(20_000, 9_000, 1 << 20).expect("rest").remove(0);
        assert_eq!(rest.data, whole.data.slice(9_000..));
        assert_eq!(rest.before_crc32c, Some(crc32c::crc32c(&whole.data[..9_000])));
        assert_eq!(rest.data_crc32c, Some(crc32c::crc32c(&rest.data)));
        assert_eq!(whole.before_crc32c, None);
        let nothing = chunks(20_000, 20_000, 1 << 20).expect("nothing is left");
        assert_eq!((nothing.len(), nothing[0].data.len()), (1, 0));
        assert_eq!(chunks(20_000, 20_001, 1 << 20), Err(BeyondEnd));
        assert_eq!(chunks(20_000, u64::MAX, 1 << 20), Err(BeyondEnd));
    }
}
