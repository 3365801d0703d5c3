//! Chunks as objects hold them: little-endian, described at the object's metadata offset.
//!
//! ```text
//! "TPCH" | u32 version | u8 kind | u8 element type | u16 axes | u32 columns | a u64 for each axis | parts
//! buffer: u64 place, a multiple of 64 | u64 bytes | u32 crc32c | u32 zero
//! tensor: one buffer            partial result: one buffer
//! frame, for each column: u16 bytes of its name | u8 element type | u8 flags | u32 zero | name, padded to 8
//!                         | buffer of values; of text: of offsets | of text: buffer of UTF-8 | flag 1: buffer of validity
//! ```

mod read;
mod write;

use bytes::Bytes;

use crate::element::Element;

pub(super) const MAGIC: [u8; 4] = *b"TPCH";
pub(super) const VERSION: u32 = 1;
pub(super) const KIND_TENSOR: u8 = 1;
pub(super) const KIND_FRAME: u8 = 2;
pub(super) const KIND_PARTIAL: u8 = 3;
/// `mars.v1.ElementType` of text.
pub(super) const TEXT: u8 = 6;
/// A buffer of validity follows.
pub(super) const FLAG_VALIDITY: u8 = 1;
/// Buffers begin at multiples of it.
pub(super) const BUFFER_ALIGNMENT: u64 = 64;

/// Bytes of a chunk, with their checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    pub bytes: Bytes,
    pub crc32c: u32,
}

impl Buffer {
    /// A buffer of these bytes.
    #[must_use]
    pub fn of(bytes: Bytes) -> Self {
        Self { crc32c: crc32c::crc32c(&bytes), bytes }
    }

    fn is_whole(&self) -> bool {
        crc32c::crc32c(&self.bytes) == self.crc32c
    }
}

/// A chunk. Its buffers are parts of the object, not copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    Tensor {
        element: Element,
        shape: Vec<u64>,
        values: Buffer,
    },
    Frame {
        rows: u64,
        columns: Vec<Column>,
    },
    /// Something on the way to a result, which only operators read.
    Partial {
        shape: Vec<u64>,
        bytes: Buffer,
    },
}

/// One column of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub values: Values,
    /// A byte for each row, 0 where there is no value.
    pub validity: Option<Buffer>,
}

/// The values of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values {
    Fixed(Element, Buffer),
    /// Row `i` is what stands between the `i`-th and the next offset.
    Text {
        offsets: Buffer,
        text: Buffer,
    },
}

/// Why bytes are no chunk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is no chunk: {0}")]
pub struct Illegal(pub(super) String);

impl Illegal {
    pub(super) fn new<T>(why: impl Into<String>) -> Result<T, Self> {
        Err(Self(why.into()))
    }
}

impl Chunk {
    /// Whether all bytes are those that were written. Reads all of them.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.buffers().all(Buffer::is_whole)
    }

    /// Extents of all axes; of a frame the number of rows.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        match self {
            Self::Tensor { shape, .. } | Self::Partial { shape, .. } => shape,
            Self::Frame { rows, .. } => std::slice::from_ref(rows),
        }
    }

    fn buffers(&self) -> impl Iterator<Item = &Buffer> {
        let (one, columns) = match self {
            Self::Tensor { values: one, .. } | Self::Partial { bytes: one, .. } => (Some(one), &[][..]),
            Self::Frame { columns, .. } => (None, &columns[..]),
        };
        one.into_iter().chain(columns.iter().flat_map(Column::buffers))
    }
}

impl Column {
    /// In the order in which they are described.
    fn buffers(&self) -> impl Iterator<Item = &Buffer> {
        let (first, second) = match &self.values {
            Values::Fixed(_, values) => (values, None),
            Values::Text { offsets, text } => (offsets, Some(text)),
        };
        std::iter::once(first).chain(second).chain(&self.validity)
    }
}

#[cfg(test)]
mod tests;
