//! A chunk, or what is wanted of it, as pieces of bytes.

use std::collections::VecDeque;

use bytes::Bytes;
use tripod_proto::mars::v1::{ElementType, Encoding, Index};

use crate::element::Element;
use crate::index::{Gather, OutOfRange, Picked};
use crate::layout::Chunk;
use crate::limits::PART_BYTES;
use crate::status::Trouble;
use crate::{npy, rows};

/// What one key is answered with.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) encoding: Encoding,
    pub(crate) shape: Vec<u64>,
    pub(crate) element: ElementType,
    pieces: VecDeque<Bytes>,
    gather: Option<Gather>,
}

impl Answer {
    /// What an index picks of a chunk; everything without one.
    ///
    /// # Errors
    /// [`Trouble`].
    pub(crate) fn of(chunk: Chunk, index: Option<&Index>) -> Result<Self, Trouble> {
        match chunk {
            Chunk::Tensor { element, shape, values } => Self::tensor(element, &shape, values.bytes, index),
            Chunk::Frame { rows, columns } => {
                let (rows, columns) = match index {
                    Some(index) => rows::pick(rows, columns, index)?,
                    None => (rows, columns),
                };
                Ok(Self::image(&Chunk::Frame { rows, columns }))
            }
            partial @ Chunk::Partial { .. } => match index {
                Some(index) if !index.dims.is_empty() => Err(OutOfRange::Partial.into()),
                _ => Ok(Self::image(&partial)),
            },
        }
    }

    /// The same of elements in C order.
    ///
    /// # Errors
    /// [`Trouble`].
    pub(crate) fn tensor(
        element: Element,
        shape: &[u64],
        values: Bytes,
        index: Option<&Index>,
    ) -> Result<Self, Trouble> {
        let picked = match index {
            Some(index) => Picked::of(index, shape, element.width())?,
            None => Picked::all(shape),
        };
        let answered = picked.shape.clone();
        let gather = if picked.is_all(shape) {
            None
        } else {
            Some(Gather::new(values.clone(), shape, element.width(), picked))
        };
        let mut pieces = VecDeque::from([npy::head(element, &answered)]);
        if gather.is_none() && !values.is_empty() {
            pieces.push_back(values);
        }
        Ok(Self { encoding: Encoding::Npy, shape: answered, element: element.wire(), pieces, gather })
    }

    fn image(chunk: &Chunk) -> Self {
        let pieces = chunk.image().into();
        let (shape, element) = (chunk.shape().to_vec(), ElementType::Unspecified);
        Self { encoding: Encoding::Tpch, shape, element, pieces, gather: None }
    }

    /// The next piece, of [`PART_BYTES`] at most; `None` when there is no more. Large ones are not copied.
    pub(crate) fn next(&mut self) -> Option<Bytes> {
        let Some(mut first) = self.pieces.pop_front() else {
            return self.gather.as_mut()?.next(PART_BYTES);
        };
        if first.len() > PART_BYTES {
            self.pieces.push_front(first.split_off(PART_BYTES));
            return Some(first);
        }
        // Small ones go together.
        let fits = |have: usize, next: &Bytes| have + next.len() <= PART_BYTES;
        if self.pieces.front().is_none_or(|next| !fits(first.len(), next)) {
            return Some(first);
        }
        let mut together = first.to_vec();
        while let Some(next) = self.pieces.pop_front_if(|next| fits(together.len(), next)) {
            together.extend_from_slice(&next);
        }
        Some(together.into())
    }

    pub(crate) fn is_done(&self) -> bool {
        self.pieces.is_empty() && self.gather.as_ref().is_none_or(|gather| gather.left_bytes() == 0)
    }
}

#[cfg(test)]
mod tests {
    use tripod_proto::mars::v1::{DimIndex, dim_index};

    use super::*;
    use crate::layout::{Buffer, Column, Values};

    fn all(mut answer: Answer) -> Vec<Bytes> {
        let mut pieces = Vec::new();
        while !answer.is_done() {
            let piece = answer.next().expect("it is not done");
            assert!(piece.len() <= PART_BYTES);
            pieces.push(piece);
        }
        assert_eq!(answer.next(), None);
        pieces
    }

    #[test]
    fn a_tensor_is_a_file_of_numpy() {
        let len = 3 * PART_BYTES / 8 + 5;
        let values: Bytes = (0..len as u64).flat_map(u64::to_le_bytes).collect::<Vec<_>>().into();
        let chunk = Chunk::Tensor {
            element: Element::I64,
            shape: vec![len as u64],
            values: Buffer::of(values.clone()),
        };
        let pieces = all(Answer::of(chunk, None).expect("answered"));
        let head = npy::head(Element::I64, &[len as u64]);
        assert_eq!(pieces.concat(), [&head[..], &values].concat());
        assert_eq!(pieces.len(), 5);
    }

    #[test]
    fn what_is_picked_is_a_file_of_its_own_shape() {
        let values = Buffer::of((0..12).collect::<Vec<u8>>().into());
        let chunk = Chunk::Tensor { element: Element::Bool, shape: vec![3, 4], values };
        let dims = vec![DimIndex::default(), DimIndex { index: Some(dim_index::Index::Integer(-1)) }];
        let answer = Answer::of(chunk.clone(), Some(&Index { dims })).expect("answered");
        assert_eq!((&answer.shape[..], answer.element), (&[3][..], ElementType::Bool));
        assert_eq!(all(answer).concat(), [&npy::head(Element::Bool, &[3])[..], &[3, 7, 11]].concat());
        let dims = vec![DimIndex { index: Some(dim_index::Index::Integer(3)) }];
        let refused = Answer::of(chunk, Some(&Index { dims })).expect_err("out of range");
        assert_eq!(refused.code, tonic::Code::OutOfRange);
    }

    #[test]
    fn a_frame_is_a_chunk_of_its_own() {
        let column = |name: &str, len: usize| Column {
            name: name.to_owned(),
            values: Values::Fixed(Element::Bool, Buffer::of(vec![1; len].into())),
            validity: None,
        };
        for rows in [0, 7, 3 * PART_BYTES] {
            let columns = vec![column("a", rows), column("b", rows)];
            let frame = Chunk::Frame { rows: rows as u64, columns };
            let pieces = all(Answer::of(frame.clone(), Some(&Index::default())).expect("answered"));
            assert_eq!(Chunk::read(&pieces.concat().into(), 0), Ok(frame));
        }
    }

    #[test]
    fn of_a_partial_result_nothing_is_picked() {
        let partial = Chunk::Partial { shape: vec![], bytes: Buffer::of("x".into()) };
        assert!(Answer::of(partial.clone(), Some(&Index::default())).is_ok());
        let dims = vec![DimIndex::default()];
        assert!(Answer::of(partial, Some(&Index { dims })).is_err());
    }
}
