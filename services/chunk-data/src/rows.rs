//! Rows of a frame.

use bytes::Bytes;
use tripod_proto::mars::v1::Index;
use tripod_proto::mars::v1::dim_index::Index as Wire;

use crate::index::{Gather, OutOfRange, Pick, Picked};
use crate::layout::{Buffer, Column, Values};
use crate::limits::PICKED_ROWS_BYTES_MAX;

/// Why rows cannot be picked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RowsError {
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    #[error(
        "the rows that are picked have more than {PICKED_ROWS_BYTES_MAX} bytes; next: ask for them in several calls"
    )]
    TooLarge,
    #[error("column {0:?} is damaged: its offsets are not those of its text")]
    Damaged(String),
}

/// The rows that an index picks. Nothing is copied if it is all of them.
///
/// # Errors
/// [`RowsError`].
pub(crate) fn pick(rows: u64, columns: Vec<Column>, index: &Index) -> Result<(u64, Vec<Column>), RowsError> {
    if index.dims.iter().any(|dim| matches!(dim.index, Some(Wire::Integer(_)))) {
        return Err(OutOfRange::Dropped.into());
    }
    // Elements of no bytes: what rows take is counted below.
    let picked = Picked::of(index, &[rows], 0)?;
    let [pick] = &picked.picks[..] else { return Err(OutOfRange::Dropped.into()) };
    if pick.is_all(rows) {
        return Ok((rows, columns));
    }
    let count = pick.count();
    let mut budget = Budget { left: PICKED_ROWS_BYTES_MAX };
    let columns =
        columns.into_iter().map(|column| budget.column(column, rows, pick)).collect::<Result<_, _>>()?;
    Ok((count, columns))
}

/// Bytes that may still be put together.
struct Budget {
    left: u64,
}

impl Budget {
    fn take(&mut self, bytes: Option<u64>) -> Result<usize, RowsError> {
        let left = bytes.and_then(|bytes| self.left.checked_sub(bytes)).ok_or(RowsError::TooLarge)?;
        let taken = self.left - left;
        self.left = left;
        usize::try_from(taken).map_err(|_| RowsError::TooLarge)
    }

    fn column(&mut self, column: Column, rows: u64, pick: &Pick) -> Result<Column, RowsError> {
        let values = match column.values {
            Values::Fixed(element, buffer) => {
                Values::Fixed(element, self.fixed(buffer.bytes, element.width(), rows, pick)?)
            }
            Values::Text { offsets, text } => {
                let damaged = || RowsError::Damaged(column.name.clone());
                self.text(&offsets.bytes, &text.bytes, pick, damaged)?
            }
        };
        let validity = match column.validity {
            Some(validity) => Some(self.fixed(validity.bytes, 1, rows, pick)?),
            None => None,
        };
        Ok(Column { name: column.name, values, validity })
    }

    fn fixed(&mut self, source: Bytes, width: usize, rows: u64, pick: &Pick) -> Result<Buffer, RowsError> {
        let bytes = self.take(pick.count().checked_mul(width as u64))?;
        let picked = Picked { picks: vec![pick.clone()], shape: vec![pick.count()] };
        let gathered = Gather::new(source, &[rows], width, picked).next(bytes);
        Ok(Buffer::of(gathered.unwrap_or_default()))
    }

    fn text(
        &mut self,
        offsets: &[u8],
        text: &[u8],
        pick: &Pick,
        damaged: impl Fn() -> RowsError,
    ) -> Result<Values, RowsError> {
        self.take(pick.count().checked_add(1).and_then(|count| count.checked_mul(8)))?;
        let offset = |row: u64| -> Option<usize> {
            let at = usize::try_from(row.checked_mul(8)?).ok()?;
            let word = offsets.get(at..at.checked_add(8)?)?;
            usize::try_from(u64::from_le_bytes(word.try_into().ok()?)).ok()
        };
        let (mut new_offsets, mut new_text) = (0_u64.to_le_bytes().to_vec(), Vec::new());
        for at in 0..pick.count() {
            let row = pick.place(at);
            let part = match (offset(row), offset(row + 1)) {
                (Some(start), Some(end)) => text.get(start..end).ok_or_else(&damaged)?,
                _ => return Err(damaged()),
            };
            self.take(Some(part.len() as u64))?;
            new_text.extend_from_slice(part);
            new_offsets.extend_from_slice(&(new_text.len() as u64).to_le_bytes());
        }
        Ok(Values::Text { offsets: Buffer::of(new_offsets.into()), text: Buffer::of(new_text.into()) })
    }
}

#[cfg(test)]
mod tests {
    use tripod_proto::mars::v1::{DimIndex, IntegerList, Slice};

    use super::*;
    use crate::element::Element;

    fn columns(words: &[&str]) -> Vec<Column> {
        let mut offsets = 0_u64.to_le_bytes().to_vec();
        let mut text = Vec::new();
        for word in words {
            text.extend_from_slice(word.as_bytes());
            offsets.extend_from_slice(&(text.len() as u64).to_le_bytes());
        }
        let numbers: Vec<u8> = (0_i32..).take(words.len()).flat_map(i32::to_le_bytes).collect();
        let validity: Vec<u8> = (0_u8..).take(words.len()).collect();
        let texts = Values::Text { offsets: Buffer::of(offsets.into()), text: Buffer::of(text.into()) };
        vec![
            Column {
                name: "n".to_owned(),
                values: Values::Fixed(Element::I32, Buffer::of(numbers.into())),
                validity: Some(Buffer::of(validity.into())),
            },
            Column { name: "t".to_owned(), values: texts, validity: None },
        ]
    }

    fn index(wire: Wire) -> Index {
        Index { dims: vec![DimIndex { index: Some(wire) }] }
    }

    #[test]
    fn rows_are_those_of_a_frame_that_was_made_of_them() {
        let frame = columns(&["zero", "", "two", "three"]);
        let slice = Slice { start: Some(-1), stop: None, step: Some(-2) };
        let (rows, picked) = pick(4, frame.clone(), &index(Wire::Slice(slice))).unwrap();
        assert_eq!((rows, &picked[1]), (2, &columns(&["three", ""])[1]));
        let list = IntegerList { integers: vec![3, 0, 3] };
        let (rows, picked) = pick(4, frame.clone(), &index(Wire::List(list))).unwrap();
        assert_eq!((rows, &picked[1]), (3, &columns(&["three", "zero", "three"])[1]));
        let Values::Fixed(_, numbers) = &picked[0].values else { panic!("of numbers") };
        assert_eq!(&numbers.bytes[..], &[3, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(picked[0].validity.as_ref().map(|bytes| bytes.bytes.to_vec()), Some(vec![3, 0, 3]));
        assert_eq!(pick(4, frame.clone(), &Index::default()), Ok((4, frame.clone())));
        assert_eq!(pick(4, frame, &index(Wire::Integer(0))), Err(OutOfRange::Dropped.into()));
    }

    #[test]
    fn offsets_that_are_none_of_the_text_are_told() {
        let mut frame = columns(&["a", "b", "c"]);
        let Values::Text { offsets, .. } = &mut frame[1].values else { panic!("of text") };
        let mut wrong = offsets.bytes.to_vec();
        wrong[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        *offsets = Buffer::of(wrong.into());
        let slice = Slice { start: Some(0), stop: Some(2), step: None };
        let refused = pick(3, frame, &index(Wire::Slice(slice))).expect_err("damaged");
        assert_eq!(refused, RowsError::Damaged("t".to_owned()));
    }

    #[test]
    fn rows_of_very_many_bytes_are_refused_before_they_are_put_together() {
        let long = "x".repeat(1 << 20);
        let frame = columns(&[&long, ""]);
        let list = IntegerList { integers: vec![0; 1000] };
        assert_eq!(pick(2, frame, &index(Wire::List(list))), Err(RowsError::TooLarge));
    }
}
