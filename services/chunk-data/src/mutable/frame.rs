//! Cells of a chunk of a frame. A batch brings rows of some columns: a frame in the layout of chunks, with as many rows as
//! places. Pure.

use bytes::{Bytes, BytesMut};
use tripod_proto::mars::v1::ElementType;

use super::MutableError;
use crate::element::Element;
use crate::layout::{Buffer, Chunk, Column, Values};
use crate::limits::{COLUMNS_MAX, MUTABLE_CHUNK_BYTES_MAX};

/// Bytes that a text takes while a frame is put together, beside its own.
const TEXT_TAKEN_BYTES: u64 = 32;

/// A column as the scheduler describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameColumn {
    pub name: String,
    /// `None`: texts.
    pub element: Option<Element>,
    /// What every row is that nobody wrote: the bytes of one element, or a text.
    pub default: Vec<u8>,
}

impl FrameColumn {
    /// As `mars.v1.ElementType` numbers it.
    pub(super) fn number(&self) -> i32 {
        self.element.map_or(ElementType::Text, Element::wire).into()
    }

    fn is_legal(&self) -> bool {
        match self.element {
            Some(element) => self.default.len() == element.width(),
            None => str::from_utf8(&self.default).is_ok(),
        }
    }

    fn is_of(&self, column: &Column) -> bool {
        match (&column.values, self.element) {
            (Values::Fixed(is, _), Some(element)) => *is == element,
            (Values::Text { .. }, None) => true,
            _ => false,
        }
    }
}

/// Whether a chunk of so many rows can be put together.
///
/// # Errors
/// [`MutableError::Illegal`].
pub(super) fn check(columns: &[FrameColumn], rows: u64) -> Result<(), MutableError> {
    let row_bytes = columns.iter().map(|column| {
        let around = if column.element.is_none() { TEXT_TAKEN_BYTES } else { 0 };
        // And a byte that says whether there is a value.
        column.default.len() as u64 + around + 1
    });
    let bytes = row_bytes.sum::<u64>().checked_mul(rows);
    let fits = bytes.is_some_and(|bytes| bytes <= MUTABLE_CHUNK_BYTES_MAX);
    if fits && columns.len() <= COLUMNS_MAX && columns.iter().all(FrameColumn::is_legal) {
        return Ok(());
    }
    Err(MutableError::Illegal(format!(
        "a chunk of a mutable frame has {MUTABLE_CHUNK_BYTES_MAX} bytes at most; next: create the frame with fewer rows in a \
         chunk"
    )))
}

/// The columns that a batch brings of `rows` rows.
///
/// # Errors
/// [`MutableError::Illegal`] if they are none of the frame.
pub(super) fn part(columns: &[FrameColumn], values: &Bytes, rows: u64) -> Result<Vec<Column>, MutableError> {
    let illegal = |why: String| MutableError::Illegal(why);
    let chunk =
        Chunk::read(values, 0).map_err(|error| illegal(format!("the values are no frame: {error}")))?;
    if !chunk.is_whole() {
        return Err(illegal("the values are not those of their checksums".to_owned()));
    }
    let Chunk::Frame { rows: is, columns: brought } = chunk else {
        return Err(illegal("the values of a batch for a frame are a frame".to_owned()));
    };
    if is != rows {
        return Err(illegal(format!("a frame of {is} rows came for {rows}")));
    }
    for (place, column) in brought.iter().enumerate() {
        let name = &column.name;
        let known = columns.iter().find(|known| known.name == *name);
        let known = known.ok_or_else(|| illegal(format!("the frame has no column {name:?}")))?;
        if !known.is_of(column) {
            return Err(illegal(format!("column {name:?} is of another type")));
        }
        if brought.iter().take(place).any(|other| other.name == *name) {
            return Err(illegal(format!("column {name:?} is there twice")));
        }
        let is_strange = |buffer: &Buffer| buffer.bytes.iter().any(|byte| *byte > 1);
        let is_wrong = match &column.values {
            Values::Fixed(Element::Bool, values) => is_strange(values),
            Values::Fixed(..) => false,
            Values::Text { offsets, text } => !are_texts(&offsets.bytes, &text.bytes),
        };
        if is_wrong || column.validity.as_ref().is_some_and(is_strange) {
            return Err(illegal(format!("a value of column {name:?} is none of its type")));
        }
    }
    Ok(brought)
}

fn are_texts(offsets: &[u8], text: &[u8]) -> bool {
    let offsets = offsets_of(offsets);
    let in_order = offsets.windows(2).all(|pair| pair[0] <= pair[1]);
    let all = offsets.first() == Some(&0) && offsets.last() == Some(&text.len());
    let whole = |pair: &[usize]| text.get(pair[0]..pair[1]).is_some_and(|text| str::from_utf8(text).is_ok());
    all && in_order && offsets.windows(2).all(whole)
}

fn offsets_of(bytes: &[u8]) -> Vec<usize> {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| usize::try_from(u64::from_le_bytes(*word)).unwrap_or(usize::MAX)).collect()
}

/// A frame that batches are put into, in the order in which they count.
#[derive(Debug)]
pub(super) struct FrameCells<'a> {
    columns: &'a [FrameColumn],
    rows: usize,
    cells: Vec<ColumnCells>,
}

#[derive(Debug)]
struct ColumnCells {
    values: Cells,
    /// A byte for each row, 0 where a value is missing.
    validity: Vec<u8>,
}

#[derive(Debug)]
enum Cells {
    Fixed(Element, Vec<u8>),
    Text(Vec<Bytes>),
}

impl<'a> FrameCells<'a> {
    /// One to which nothing was written.
    pub(super) fn new(columns: &'a [FrameColumn], rows: u64) -> Self {
        let rows = usize::try_from(rows).unwrap_or(0);
        let cells = columns.iter().map(|column| ColumnCells {
            values: match column.element {
                Some(element) => Cells::Fixed(element, column.default.repeat(rows)),
                None => Cells::Text(vec![Bytes::copy_from_slice(&column.default); rows]),
            },
            validity: vec![1; rows],
        });
        Self { columns, rows, cells: cells.collect() }
    }

    /// Puts what a batch brought where it belongs.
    pub(super) fn put(&mut self, places: &(impl Iterator<Item = u64> + Clone), brought: &[Column]) {
        for (known, cells) in self.columns.iter().zip(&mut self.cells) {
            let Some(column) = brought.iter().find(|column| column.name == known.name) else { continue };
            let places = places.clone().map(|place| usize::try_from(place).unwrap_or(usize::MAX));
            cells.put(places, column);
        }
    }

    /// The frame as it is now.
    pub(super) fn finish(self) -> Chunk {
        let columns = self.columns.iter().zip(self.cells).map(|(column, cells)| cells.finish(&column.name));
        Chunk::Frame { rows: self.rows as u64, columns: columns.collect() }
    }
}

impl ColumnCells {
    fn put(&mut self, places: impl Iterator<Item = usize>, column: &Column) {
        let offsets = match &column.values {
            Values::Text { offsets, .. } => offsets_of(&offsets.bytes),
            Values::Fixed(..) => Vec::new(),
        };
        for (row, place) in places.enumerate() {
            let valid =
                column.validity.as_ref().map_or(1, |validity| validity.bytes.get(row).copied().unwrap_or(0));
            let Some(validity) = self.validity.get_mut(place) else { continue };
            *validity = valid;
            match (&mut self.values, &column.values) {
                (Cells::Fixed(element, cells), Values::Fixed(_, values)) => {
                    let width = element.width();
                    let from = values.bytes.get(row * width..(row + 1) * width);
                    if let (Some(cell), Some(value)) =
                        (cells.get_mut(place * width..(place + 1) * width), from)
                    {
                        cell.copy_from_slice(value);
                    }
                }
                (Cells::Text(cells), Values::Text { text, .. }) => {
                    if let (Some(cell), Some([start, end])) =
                        (cells.get_mut(place), offsets.get(row..row + 2))
                    {
                        *cell = text.bytes.slice(*start..*end);
                    }
                }
                _ => {}
            }
        }
    }

    fn finish(self, name: &str) -> Column {
        let values = match self.values {
            Cells::Fixed(element, cells) => Values::Fixed(element, Buffer::of(cells.into())),
            Cells::Text(cells) => {
                let mut text = BytesMut::with_capacity(cells.iter().map(Bytes::len).sum());
                let mut offsets = Vec::with_capacity(8 * (cells.len() + 1));
                offsets.extend_from_slice(&0_u64.to_le_bytes());
                for cell in &cells {
                    text.extend_from_slice(cell);
                    offsets.extend_from_slice(&(text.len() as u64).to_le_bytes());
                }
                Values::Text { offsets: Buffer::of(offsets.into()), text: Buffer::of(text.freeze()) }
            }
        };
        let validity = self.validity.contains(&0).then(|| Buffer::of(self.validity.into()));
        Column { name: name.to_owned(), values, validity }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, element: Option<Element>, default: &[u8]) -> FrameColumn {
        FrameColumn { name: name.to_owned(), element, default: default.to_vec() }
    }

    fn columns() -> Vec<FrameColumn> {
        vec![column("n", Some(Element::I32), &7_i32.to_le_bytes()), column("t", None, "-".as_bytes())]
    }

    fn numbers(name: &str, values: &[i32]) -> Column {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Column {
            name: name.to_owned(),
            values: Values::Fixed(Element::I32, Buffer::of(bytes.into())),
            validity: None,
        }
    }

    fn texts(name: &str, values: &[&str], validity: Option<Vec<u8>>) -> Column {
        let mut offsets = 0_u64.to_le_bytes().to_vec();
        let mut end = 0;
        for value in values {
            end += value.len() as u64;
            offsets.extend_from_slice(&end.to_le_bytes());
        }
        let text = Buffer::of(values.concat().into_bytes().into());
        Column {
            name: name.to_owned(),
            values: Values::Text { offsets: Buffer::of(offsets.into()), text },
            validity: validity.map(|validity| Buffer::of(validity.into())),
        }
    }

    fn image(rows: u64, columns: Vec<Column>) -> Bytes {
        Chunk::Frame { rows, columns }.image().concat().into()
    }

    #[test]
    fn rows_are_what_the_last_batch_with_their_column_put_there() {
        let columns = columns();
        let mut cells = FrameCells::new(&columns, 4);
        let both = image(2, vec![texts("t", &["größe", ""], Some(vec![1, 0])), numbers("n", &[1, 2])]);
        cells.put(&[3, 0].into_iter(), &part(&columns, &both, 2).expect("of the frame"));
        let one = image(3, vec![texts("t", &["a", "b", "cd"], None)]);
        cells.put(&[1, 3, 1].into_iter(), &part(&columns, &one, 3).expect("of the frame"));
        let wanted =
            vec![numbers("n", &[2, 7, 7, 1]), texts("t", &["", "cd", "-", "b"], Some(vec![0, 1, 1, 1]))];
        assert_eq!(cells.finish(), Chunk::Frame { rows: 4, columns: wanted });
        let nothing = FrameCells::new(&columns, 2).finish();
        let wanted = vec![numbers("n", &[7, 7]), texts("t", &["-", "-"], None)];
        assert_eq!(nothing, Chunk::Frame { rows: 2, columns: wanted });
    }

    #[test]
    fn what_is_no_part_of_the_frame_is_refused_with_the_reason() {
        let refused = |rows, values: Bytes| part(&columns(), &values, rows).expect_err("refused").to_string();
        assert!(refused(1, Bytes::from_static(b"no frame")).contains("no frame"));
        assert!(refused(1, image(2, vec![numbers("n", &[1, 2])])).contains("2 rows came for 1"));
        assert!(refused(1, image(1, vec![numbers("x", &[1])])).contains("no column \"x\""));
        assert!(refused(1, image(1, vec![numbers("t", &[1])])).contains("another type"));
        assert!(refused(1, image(1, vec![numbers("n", &[1]), numbers("n", &[1])])).contains("twice"));
        let tensor =
            Chunk::Tensor { element: Element::Bool, shape: vec![1], values: Buffer::of(vec![1].into()) };
        assert!(refused(1, tensor.image().concat().into()).contains("are a frame"));
        let strange = texts("t", &["a"], Some(vec![2]));
        assert!(refused(1, image(1, vec![strange])).contains("none of its type"));
        let mut halves = texts("t", &["a", "b"], None);
        halves.values = match texts("t", &["ö"], None).values {
            Values::Text { text, .. } => {
                let offsets: Vec<u8> = [0_u64, 1, 2].iter().flat_map(|offset| offset.to_le_bytes()).collect();
                Values::Text { offsets: Buffer::of(offsets.into()), text }
            }
            other => other,
        };
        assert!(refused(2, image(2, vec![halves])).contains("none of its type"));
        let mut damaged = image(1, vec![numbers("n", &[1])]).to_vec();
        *damaged.last_mut().expect("not empty") ^= 1;
        assert!(refused(1, damaged.into()).contains("checksums"));
    }

    #[test]
    fn a_chunk_that_could_not_be_put_together_is_refused() {
        assert!(check(&columns(), 1 << 20).is_ok());
        assert!(check(&columns(), 1 << 26).is_err());
        assert!(check(&columns(), u64::MAX).is_err());
        assert!(check(&[column("n", Some(Element::I32), b"?")], 1).is_err());
        assert!(check(&[column("t", None, b"\xff")], 1).is_err());
    }
}
