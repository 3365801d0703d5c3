//! What a mutable chunk is.

use tripod_proto::mars::v1::{Column, ElementType, MutableInfo, Scalar, scalar};

use super::MutableError;
use super::frame::{self, FrameCells, FrameColumn};
use crate::element::{Element, bytes_of};
use crate::layout::Chunk;
use crate::limits::{DIMS_MAX, MUTABLE_CHUNK_BYTES_MAX};

/// The name of a chunk: keys belong to sessions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkId {
    pub session: String,
    pub key: String,
}

/// What names of mutable tileables begin with whose chunks are put as wholes. One that is missing is refused when they are
/// sealed; were it one that is written in place, all of it would be what nobody wrote.
const FOR_PUTS: &str = "put.";

/// Whether the chunks of a tileable are put as wholes.
pub(crate) fn is_for_puts(info: &MutableInfo) -> bool {
    info.name.starts_with(FOR_PUTS)
}

/// A chunk as the scheduler describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The number that the log gave the tileable: a name that is used again has another one.
    pub tileable: u64,
    /// Of a tensor; of a frame it means nothing.
    pub element: Element,
    pub shape: Vec<u64>,
    /// The bytes of one element, which every cell is that nobody wrote. Of a frame each column has its own.
    pub default: Vec<u8>,
    /// Of a frame; a tensor has none.
    pub columns: Vec<FrameColumn>,
}

impl Definition {
    /// The chunk of that key.
    ///
    /// # Errors
    /// [`MutableError::Illegal`] if it is none or too large.
    pub(crate) fn of(info: &MutableInfo, key: &str) -> Result<Self, MutableError> {
        if is_for_puts(info) {
            return Err(MutableError::Illegal(format!(
                "the chunks of {:?} are put as wholes, with PutChunksData, and read once it is sealed",
                info.name
            )));
        }
        let illegal = |text: &str| MutableError::Illegal(text.to_owned());
        let chunk = info.chunks.iter().find(|chunk| chunk.key == key);
        let chunk = chunk.ok_or_else(|| illegal("the scheduler describes another tileable"))?;
        if !info.columns.is_empty() {
            let columns = columns(info).ok_or_else(|| illegal("a column's type or default is not known"))?;
            return Self::of_frame(info.id, chunk.shape.clone(), columns);
        }
        let element = Element::numbered(info.dtype).ok_or_else(|| illegal("its type is not known"))?;
        let default = match info.default_values.first() {
            None => vec![0; element.width()],
            Some(scalar) => {
                bytes_of_scalar(scalar, element).ok_or_else(|| illegal("its default is not of its type"))?
            }
        };
        let columns = Vec::new();
        let made = Self { tileable: info.id, element, shape: chunk.shape.clone(), default, columns };
        made.check()?;
        Ok(made)
    }

    /// A chunk of a frame.
    ///
    /// # Errors
    /// [`MutableError::Illegal`] if it is none or too large.
    pub(super) fn of_frame(
        tileable: u64,
        shape: Vec<u64>,
        columns: Vec<FrameColumn>,
    ) -> Result<Self, MutableError> {
        let made = Self { tileable, element: Element::Bool, shape, default: vec![0], columns };
        made.check()?;
        Ok(made)
    }

    pub(crate) fn is_frame(&self) -> bool {
        !self.columns.is_empty()
    }

    /// # Errors
    /// [`MutableError::Illegal`] if it is too large to be read.
    pub(super) fn check(&self) -> Result<(), MutableError> {
        if self.is_frame() {
            let [rows] = self.shape[..] else {
                return Err(MutableError::Illegal("a frame has one axis".to_owned()));
            };
            return frame::check(&self.columns, rows);
        }
        let bytes = bytes_of(&self.shape, self.element.width());
        let fits = bytes.is_some_and(|bytes| bytes <= MUTABLE_CHUNK_BYTES_MAX);
        if fits && self.shape.len() <= DIMS_MAX && self.default.len() == self.element.width() {
            return Ok(());
        }
        Err(MutableError::Illegal(format!(
            "a mutable chunk has {MUTABLE_CHUNK_BYTES_MAX} bytes and {DIMS_MAX} axes at most; next: create the tensor with \
             smaller chunks"
        )))
    }

    /// A chunk of a frame to which nothing was written.
    pub(crate) fn default_frame(&self) -> Chunk {
        FrameCells::new(&self.columns, self.cells()).finish()
    }

    /// A chunk to which nothing was written.
    pub(crate) fn defaults(&self) -> Vec<u8> {
        self.default.repeat(usize::try_from(self.cells()).unwrap_or(0))
    }

    pub(crate) fn cells(&self) -> u64 {
        bytes_of(&self.shape, 1).unwrap_or(0)
    }
}

/// `None` if there is a type or a default that is none.
fn columns(info: &MutableInfo) -> Option<Vec<FrameColumn>> {
    let of = |(place, column): (usize, &Column)| {
        let value = info.default_values.get(place).and_then(|scalar| scalar.value.as_ref());
        let is_text = column.dtype == i32::from(ElementType::Text);
        let element = if is_text { None } else { Some(Element::numbered(column.dtype)?) };
        let default = match (element, value) {
            (Some(element), None) => vec![0; element.width()],
            (Some(element), Some(_)) => bytes_of_scalar(info.default_values.get(place)?, element)?,
            (None, None) => Vec::new(),
            (None, Some(scalar::Value::Text(text))) => text.as_bytes().to_vec(),
            (None, Some(_)) => return None,
        };
        Some(FrameColumn { name: column.name.clone(), element, default })
    };
    info.columns.iter().enumerate().map(of).collect()
}

/// `None` if the number has no place in that type.
fn bytes_of_scalar(scalar: &Scalar, element: Element) -> Option<Vec<u8>> {
    use scalar::Value;
    let value = scalar.value.as_ref()?;
    let integer = match value {
        Value::Boolean(boolean) => Some(i64::from(*boolean)),
        Value::Integer(integer) => Some(*integer),
        Value::Fraction(_) | Value::Text(_) => None,
    };
    let fraction = match value {
        Value::Fraction(fraction) => Some(*fraction),
        Value::Text(_) => None,
        #[allow(clippy::cast_precision_loss, reason = "as numpy casts it")]
        _ => integer.map(|integer| integer as f64),
    };
    Some(match element {
        Element::Bool => vec![u8::from(fraction? != 0.0)],
        Element::I32 => i32::try_from(integer?).ok()?.to_le_bytes().to_vec(),
        Element::I64 => integer?.to_le_bytes().to_vec(),
        #[allow(clippy::cast_possible_truncation, reason = "as numpy casts it")]
        Element::F32 => (fraction? as f32).to_le_bytes().to_vec(),
        Element::F64 => fraction?.to_le_bytes().to_vec(),
    })
}
