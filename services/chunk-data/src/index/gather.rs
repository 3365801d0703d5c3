//! The bytes of what is picked, piece by piece, without holding all of it.

use bytes::Bytes;

use super::{Pick, Picked};

/// An axis along which blocks are picked.
#[derive(Debug)]
struct Axis {
    pick: Pick,
    stride_bytes: u64,
    at: u64,
}

/// Elements of a chunk in C order.
#[derive(Debug)]
pub(crate) struct Gather {
    source: Bytes,
    /// Those whose elements do not follow each other, the outermost first.
    axes: Vec<Axis>,
    /// Of the first block.
    base_bytes: u64,
    block_bytes: usize,
    /// How much of the present block was given.
    in_block: usize,
    left_bytes: u64,
}

impl Gather {
    /// What is picked of the elements of a chunk with that shape.
    pub(crate) fn new(source: Bytes, shape: &[u64], width: usize, picked: Picked) -> Self {
        let left_bytes = picked.elements().saturating_mul(width as u64);
        let mut gather =
            Self { source, axes: Vec::new(), base_bytes: 0, block_bytes: width, in_block: 0, left_bytes };
        if left_bytes == 0 {
            return gather;
        }
        let mut stride_bytes = width as u64;
        let mut together = true;
        for (pick, extent) in picked.picks.into_iter().zip(shape).rev() {
            let whole = pick.is_all(*extent);
            match pick {
                // The last axis that belongs to the block: those within it are whole.
                Pick::Range { first, step, count } if together && (step == 1 || count == 1) => {
                    gather.base_bytes += first * stride_bytes;
                    gather.block_bytes *= usize::try_from(count).unwrap_or(usize::MAX);
                    together = whole;
                }
                Pick::Range { first, count: 1, .. } => gather.base_bytes += first * stride_bytes,
                pick => {
                    gather.axes.push(Axis { pick, stride_bytes, at: 0 });
                    together = false;
                }
            }
            stride_bytes = stride_bytes.saturating_mul(*extent);
        }
        gather.axes.reverse();
        gather
    }

    pub(crate) fn left_bytes(&self) -> u64 {
        self.left_bytes
    }

    /// The next piece, of `most` bytes but for the last; `None` when there is no more.
    pub(crate) fn next(&mut self, most: usize) -> Option<Bytes> {
        if self.left_bytes == 0 {
            return None;
        }
        let len = usize::try_from(self.left_bytes).unwrap_or(usize::MAX).min(most.max(1));
        self.left_bytes -= len as u64;
        let start = self.place();
        if self.block_bytes - self.in_block >= len {
            self.advance(len);
            // No copy: it follows each other.
            return Some(self.source.slice(start..start + len));
        }
        let mut piece = Vec::with_capacity(len);
        while piece.len() < len {
            let start = self.place();
            let take = (self.block_bytes - self.in_block).min(len - piece.len());
            piece.extend_from_slice(&self.source[start..start + take]);
            self.advance(take);
        }
        Some(piece.into())
    }

    fn place(&self) -> usize {
        let of_axes: u64 = self.axes.iter().map(|axis| axis.pick.place(axis.at) * axis.stride_bytes).sum();
        // Within the source, whose length is a usize.
        usize::try_from(self.base_bytes + of_axes).unwrap_or(usize::MAX) + self.in_block
    }

    fn advance(&mut self, bytes: usize) {
        self.in_block += bytes;
        if self.in_block < self.block_bytes {
            return;
        }
        self.in_block = 0;
        for axis in self.axes.iter_mut().rev() {
            axis.at += 1;
            if axis.at < axis.pick.count() {
                return;
            }
            axis.at = 0;
        }
    }
}

/// Writes values to the places that are picked of a chunk with that shape, in C order. They are as many as are picked.
pub(crate) fn scatter(target: &mut [u8], shape: &[u64], width: usize, picked: &Picked, values: &[u8]) {
    let mut strides = vec![width as u64; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis]);
    }
    let mut at = vec![0_u64; shape.len()];
    for value in values.chunks_exact(width) {
        let place: u64 = picked
            .picks
            .iter()
            .zip(&at)
            .zip(&strides)
            .map(|((pick, at), stride)| pick.place(*at) * stride)
            .sum();
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        target[place..place + width].copy_from_slice(value);
        for (at, pick) in at.iter_mut().zip(&picked.picks).rev() {
            *at += 1;
            if *at < pick.count() {
                break;
            }
            *at = 0;
        }
    }
}
