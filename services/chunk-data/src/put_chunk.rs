//! What a chunk that is put has to be: what the scheduler says of its tileable, in either of the encodings in which chunks
//! are read.

use bytes::Bytes;
use tonic::Code;
use tripod_proto::mars::v1::{ElementType, Encoding, MutableInfo};

use crate::element::{Element, bytes_of};
use crate::layout::{Buffer, Chunk, Column, Values};
use crate::limits::{DIMS_MAX, MUTABLE_CHUNK_BYTES_MAX};
use crate::npy;
use crate::status::Trouble;

/// What it has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PutChunk {
    Tensor {
        element: Element,
        shape: Vec<u64>,
    },
    /// Columns have names and `mars.v1.ElementType`s.
    Frame {
        rows: u64,
        columns: Vec<(String, i32)>,
    },
}

impl PutChunk {
    /// The chunk of that key.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it is too large, or the scheduler speaks of another one.
    pub(crate) fn of(info: &MutableInfo, key: &str) -> Result<Self, Trouble> {
        let invalid = |text: String| Trouble::new(Code::InvalidArgument, text);
        let chunk = info.chunks.iter().find(|chunk| chunk.key == key);
        let chunk = chunk.ok_or_else(|| invalid("the scheduler describes another tileable".to_owned()))?;
        let shape = &chunk.shape;
        if !info.columns.is_empty() {
            let [rows] = shape[..] else { return Err(invalid("a frame has one axis".to_owned())) };
            let columns = info.columns.iter().map(|column| (column.name.clone(), column.dtype));
            return Ok(Self::Frame { rows, columns: columns.collect() });
        }
        let element = Element::numbered(info.dtype);
        let element = element.ok_or_else(|| invalid("its type is not known".to_owned()))?;
        let fits = bytes_of(shape, element.width()).is_some_and(|bytes| bytes <= MUTABLE_CHUNK_BYTES_MAX);
        if fits && shape.len() <= DIMS_MAX {
            return Ok(Self::Tensor { element, shape: shape.clone() });
        }
        Err(invalid(format!(
            "a chunk that is put has {MUTABLE_CHUNK_BYTES_MAX} bytes and {DIMS_MAX} axes at most; next: create the tensor \
             with smaller chunks"
        )))
    }

    /// Bytes that it has in any encoding: its values that are not texts.
    pub(crate) fn bytes_min(&self) -> u64 {
        match self {
            Self::Tensor { element, shape } => bytes_of(shape, element.width()).unwrap_or(u64::MAX),
            Self::Frame { rows, columns } => {
                let widths = columns.iter().filter_map(|(_, dtype)| Element::numbered(*dtype));
                let row_bytes: u64 = widths.map(|element| element.width() as u64).sum();
                row_bytes.saturating_mul(*rows)
            }
        }
    }

    /// The chunk that these bytes are.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if they are none, or another one; `DATA_LOSS` if they are not those of their checksums.
    pub(crate) fn read(&self, encoding: i32, image: &Bytes) -> Result<Chunk, Trouble> {
        let invalid = |text: String| Trouble::new(Code::InvalidArgument, text);
        let chunk = match (Encoding::try_from(encoding), self) {
            (Ok(Encoding::Npy), Self::Tensor { element, shape }) => {
                let behind = npy::elements(image, *element, shape).map(|start| image.slice(start..));
                let values =
                    behind.filter(|values| bytes_of(shape, element.width()) == Some(values.len() as u64));
                let values =
                    values.ok_or_else(|| invalid(format!("the bytes are no file of numpy with {self}")))?;
                Chunk::Tensor { element: *element, shape: shape.clone(), values: Buffer::of(values) }
            }
            (Ok(Encoding::Tpch), _) => {
                let chunk = Chunk::read(image, 0).map_err(|illegal| invalid(illegal.to_string()))?;
                if !chunk.is_whole() {
                    return Err(Trouble::new(
                        Code::DataLoss,
                        "bytes of the chunk are not those of their checksums",
                    ));
                }
                chunk
            }
            _ => return Err(invalid(format!("{self} does not come in encoding {encoding}"))),
        };
        if !self.is(&chunk) {
            return Err(invalid(format!("the chunk is to be {self}, and another one came")));
        }
        if has_strange_truths(&chunk) {
            return Err(invalid("a value is neither true nor false".to_owned()));
        }
        Ok(chunk)
    }

    fn is(&self, chunk: &Chunk) -> bool {
        match (self, chunk) {
            (Self::Tensor { element, shape }, Chunk::Tensor { element: is, shape: is_shape, .. }) => {
                (element, shape) == (is, is_shape)
            }
            (Self::Frame { rows, columns }, Chunk::Frame { rows: is_rows, columns: is }) => {
                let same = |((name, dtype), column): (&(String, i32), &Column)| {
                    *name == column.name && *dtype == number(&column.values)
                };
                rows == is_rows && columns.len() == is.len() && columns.iter().zip(is).all(same)
            }
            _ => false,
        }
    }
}

impl std::fmt::Display for PutChunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tensor { element, shape } => {
                write!(f, "a tensor of {} with shape {shape:?}", element.descr())
            }
            Self::Frame { rows, columns } => {
                write!(f, "a frame of {rows} rows and {} columns", columns.len())
            }
        }
    }
}

fn number(values: &Values) -> i32 {
    match values {
        Values::Fixed(element, _) => element.wire().into(),
        Values::Text { .. } => ElementType::Text.into(),
    }
}

/// Whether something that is a truth is not 0 or 1.
fn has_strange_truths(chunk: &Chunk) -> bool {
    let strange = |buffer: &Buffer| buffer.bytes.iter().any(|byte| *byte > 1);
    match chunk {
        Chunk::Tensor { element: Element::Bool, values, .. } => strange(values),
        Chunk::Frame { columns, .. } => columns.iter().any(|column| {
            let values = match &column.values {
                Values::Fixed(Element::Bool, values) => strange(values),
                _ => false,
            };
            values || column.validity.as_ref().is_some_and(strange)
        }),
        _ => false,
    }
}
