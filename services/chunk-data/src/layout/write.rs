//! Writing chunks, their description first.

use bytes::{Bytes, BytesMut};

use super::{
    BUFFER_ALIGNMENT, Buffer, Chunk, Column, FLAG_VALIDITY, KIND_FRAME, KIND_PARTIAL, KIND_TENSOR, MAGIC,
    TEXT, VERSION, Values,
};

/// Bytes of a description before its axes, and of a buffer's.
const HEAD_BYTES: usize = 16;
const BUFFER_BYTES: usize = 24;

impl Chunk {
    /// The chunk as an object whose metadata offset is 0, in pieces; buffers are not copied.
    #[must_use]
    pub fn image(&self) -> Vec<Bytes> {
        self.image_at(0)
    }

    /// The chunk as an object of a store, in pieces, and its metadata offset. That is not 0, which means something else to a
    /// store.
    #[must_use]
    pub fn object(&self) -> (Vec<Bytes>, u64) {
        let mut pieces = vec![Bytes::from_static(&[0; BUFFER_ALIGNMENT as usize])];
        pieces.extend(self.image_at(BUFFER_ALIGNMENT));
        (pieces, BUFFER_ALIGNMENT)
    }

    /// `base` bytes, a multiple of the alignment, stand before it.
    fn image_at(&self, base: u64) -> Vec<Bytes> {
        let description_bytes = self.description_bytes();
        let mut places = Places { end: base + description_bytes as u64 };
        let mut out = Vec::with_capacity(description_bytes);
        let (kind, element, columns) = match self {
            Self::Tensor { element, .. } => (KIND_TENSOR, element.number(), &[][..]),
            Self::Frame { columns, .. } => (KIND_FRAME, 0, &columns[..]),
            Self::Partial { .. } => (KIND_PARTIAL, 0, &[][..]),
        };
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[kind, element]);
        out.extend_from_slice(&u16::try_from(self.shape().len()).unwrap_or(u16::MAX).to_le_bytes());
        out.extend_from_slice(&u32::try_from(columns.len()).unwrap_or(u32::MAX).to_le_bytes());
        for extent in self.shape() {
            out.extend_from_slice(&extent.to_le_bytes());
        }
        match self {
            Self::Tensor { values: one, .. } | Self::Partial { bytes: one, .. } => {
                places.describe(one, &mut out);
            }
            Self::Frame { columns, .. } => {
                for column in columns {
                    describe(column, &mut places, &mut out);
                }
            }
        }
        let mut written = out.len() as u64;
        let mut pieces = vec![Bytes::from(out)];
        for buffer in self.buffers().filter(|buffer| !buffer.bytes.is_empty()) {
            let place = written.next_multiple_of(BUFFER_ALIGNMENT);
            let padding = usize::try_from(place - written).unwrap_or_default();
            if padding > 0 {
                pieces.push(BytesMut::zeroed(padding).freeze());
            }
            pieces.push(buffer.bytes.clone());
            written = place + buffer.bytes.len() as u64;
        }
        pieces
    }

    fn description_bytes(&self) -> usize {
        let columns = match self {
            Self::Tensor { .. } | Self::Partial { .. } => BUFFER_BYTES,
            Self::Frame { columns, .. } => columns
                .iter()
                .map(|column| {
                    8 + column.name.len().next_multiple_of(8) + BUFFER_BYTES * column.buffers().count()
                })
                .sum(),
        };
        HEAD_BYTES + 8 * self.shape().len() + columns
    }
}

/// Where buffers are put, one after the other.
struct Places {
    end: u64,
}

impl Places {
    fn describe(&mut self, buffer: &Buffer, out: &mut Vec<u8>) {
        let bytes = buffer.bytes.len() as u64;
        let place = if bytes == 0 { 0 } else { self.end.next_multiple_of(BUFFER_ALIGNMENT) };
        if bytes > 0 {
            self.end = place + bytes;
        }
        out.extend_from_slice(&place.to_le_bytes());
        out.extend_from_slice(&bytes.to_le_bytes());
        out.extend_from_slice(&buffer.crc32c.to_le_bytes());
        out.extend_from_slice(&0_u32.to_le_bytes());
    }
}

fn describe(column: &Column, places: &mut Places, out: &mut Vec<u8>) {
    let (number, flags) = match &column.values {
        Values::Fixed(element, _) => (element.number(), u8::from(column.validity.is_some()) * FLAG_VALIDITY),
        Values::Text { .. } => (TEXT, u8::from(column.validity.is_some()) * FLAG_VALIDITY),
    };
    out.extend_from_slice(&u16::try_from(column.name.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.extend_from_slice(&[number, flags]);
    out.extend_from_slice(&0_u32.to_le_bytes());
    out.extend_from_slice(column.name.as_bytes());
    out.resize(out.len().next_multiple_of(8), 0);
    for buffer in column.buffers() {
        places.describe(buffer, out);
    }
}
