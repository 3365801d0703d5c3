//! Reading descriptions that anybody may have written.

use bytes::Bytes;

use super::{
    BUFFER_ALIGNMENT, Buffer, Chunk, Column, FLAG_VALIDITY, Illegal, KIND_FRAME, KIND_PARTIAL, KIND_TENSOR,
    MAGIC, TEXT, VERSION, Values,
};
use crate::element::{Element, bytes_of};
use crate::limits::{COLUMNS_MAX, DESCRIPTION_BYTES_MAX, DIMS_MAX, NAME_BYTES_MAX};

impl Chunk {
    /// The chunk that is described at `metadata_offset` of an object. Every length is compared with the object; checksums
    /// are not, see [`Chunk::is_whole`].
    ///
    /// # Errors
    /// [`Illegal`] says what is wrong with the description.
    pub fn read(object: &Bytes, metadata_offset: u64) -> Result<Self, Illegal> {
        let offset = usize::try_from(metadata_offset).unwrap_or(usize::MAX);
        if !metadata_offset.is_multiple_of(8) || offset >= object.len() {
            return Illegal::new(format!("{metadata_offset} is no place of its description"));
        }
        let end = object.len().min(offset.saturating_add(DESCRIPTION_BYTES_MAX));
        let mut reader = Reader { object, at: offset, end };
        if reader.take::<4>()? != MAGIC {
            return Illegal::new("its description does not begin with TPCH");
        }
        let version = reader.u32()?;
        if version != VERSION {
            return Illegal::new(format!("it is of version {version}, and known is {VERSION}"));
        }
        let [kind] = reader.take()?;
        let [element] = reader.take()?;
        let dims = usize::from(u16::from_le_bytes(reader.take()?));
        let columns = usize::try_from(reader.u32()?).unwrap_or(usize::MAX);
        if dims > DIMS_MAX || columns > COLUMNS_MAX {
            return Illegal::new(format!("{dims} axes or {columns} columns are too many"));
        }
        let shape = (0..dims).map(|_| reader.u64()).collect::<Result<Vec<_>, _>>()?;
        match (kind, columns, element) {
            (KIND_TENSOR, 0, number) => {
                let Some(element) = Element::numbered(number.into()) else {
                    return Illegal::new(format!("{number} is no type of elements"));
                };
                let values = reader.buffer()?;
                match bytes_of(&shape, element.width()) {
                    Some(bytes) if bytes == values.bytes.len() as u64 => {
                        Ok(Self::Tensor { element, shape, values })
                    }
                    _ => Illegal::new(format!("{} bytes are not those of {shape:?}", values.bytes.len())),
                }
            }
            (KIND_FRAME, _, 0) => {
                let [rows] = shape[..] else { return Illegal::new("a frame has one axis") };
                let columns = (0..columns).map(|_| reader.column(rows)).collect::<Result<_, _>>()?;
                Ok(Self::Frame { rows, columns })
            }
            (KIND_PARTIAL, 0, 0) => Ok(Self::Partial { shape, bytes: reader.buffer()? }),
            _ => Illegal::new(format!("kind {kind} with {columns} columns of type {element} is none")),
        }
    }
}

struct Reader<'a> {
    object: &'a Bytes,
    at: usize,
    /// Of the description.
    end: usize,
}

impl Reader<'_> {
    fn bytes(&mut self, len: usize) -> Result<&[u8], Illegal> {
        let end = self.at.checked_add(len).filter(|end| *end <= self.end);
        let Some(end) = end else { return Illegal::new("its description ends too soon") };
        let bytes = &self.object[self.at..end];
        self.at = end;
        Ok(bytes)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Illegal> {
        let mut taken = [0; N];
        taken.copy_from_slice(self.bytes(N)?);
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32, Illegal> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64, Illegal> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn zero(&mut self) -> Result<(), Illegal> {
        if self.u32()? == 0 { Ok(()) } else { Illegal::new("what must be zero is not") }
    }

    fn buffer(&mut self) -> Result<Buffer, Illegal> {
        let (place, bytes, crc32c) = (self.u64()?, self.u64()?, self.u32()?);
        self.zero()?;
        if bytes == 0 {
            return Ok(Buffer { bytes: Bytes::new(), crc32c });
        }
        let end = place.checked_add(bytes).filter(|end| *end <= self.object.len() as u64);
        let end = end.filter(|_| place.is_multiple_of(BUFFER_ALIGNMENT));
        match (usize::try_from(place), end.map(usize::try_from)) {
            (Ok(place), Some(Ok(end))) => Ok(Buffer { bytes: self.object.slice(place..end), crc32c }),
            _ => Illegal::new(format!("{bytes} bytes at {place} are no part of the object")),
        }
    }

    fn column(&mut self, rows: u64) -> Result<Column, Illegal> {
        let name_bytes = usize::from(u16::from_le_bytes(self.take()?));
        let [number] = self.take()?;
        let [flags] = self.take()?;
        self.zero()?;
        if name_bytes > NAME_BYTES_MAX || flags & !FLAG_VALIDITY != 0 {
            return Illegal::new("a column has too long a name or flags that nobody knows");
        }
        let padded = self.bytes(name_bytes.next_multiple_of(8))?;
        let Ok(name) = str::from_utf8(&padded[..name_bytes]).map(str::to_owned) else {
            return Illegal::new("a column's name is no UTF-8");
        };
        let values = match (number, Element::numbered(number.into())) {
            (TEXT, _) => {
                let (offsets, text) = (self.buffer()?, self.buffer()?);
                check_len(&name, &offsets, rows.checked_add(1).and_then(|count| count.checked_mul(8)))?;
                Values::Text { offsets, text }
            }
            (_, Some(element)) => {
                let values = self.buffer()?;
                check_len(&name, &values, bytes_of(&[rows], element.width()))?;
                Values::Fixed(element, values)
            }
            (number, None) => return Illegal::new(format!("{number} is no type of a column")),
        };
        let validity = if flags & FLAG_VALIDITY == 0 { None } else { Some(self.buffer()?) };
        if let Some(validity) = &validity {
            check_len(&name, validity, Some(rows))?;
        }
        Ok(Column { name, values, validity })
    }
}

fn check_len(name: &str, buffer: &Buffer, expected: Option<u64>) -> Result<(), Illegal> {
    let have = buffer.bytes.len();
    if expected == Some(have as u64) {
        return Ok(());
    }
    Illegal::new(format!("column {name:?} has {have} bytes, which are not those of its rows"))
}
