//! Products of matrices: each chunk of the result is the sum of the products along the inner axis, in its order.

use crate::builder::{Builder, Draft, Part};
use crate::chunk::{ChunkId, ChunkOperator, Content};
use crate::extent::Extent;
use crate::refusal::Reason;
use crate::rules::rechunk::{Apart, rechunk, together};
use crate::splits::Splits;
use crate::tiled::Tiled;

/// As `np.matmul` of one or two axes on each side; a single axis is the inner one.
pub(super) fn matmul(builder: &mut Builder, left: &Tiled, right: &Tiled) -> Result<Tiled, Reason> {
    let dtype = left.dtype()?.promote(right.dtype()?);
    for tiled in [left, right] {
        if !(1..=2).contains(&tiled.splits.dims()) {
            return Err(Reason::Axes { is: tiled.splits.dims(), wanted: "1 or 2".to_owned() });
        }
    }
    let last = left.splits.dims() - 1;
    let inner = together(&[left.splits.axis(last), right.splits.axis(0)]).map_err(|apart| match apart {
        Apart::Unknown => Reason::Unknown { axis: last },
        Apart::Lengths(_) => Reason::Shapes { left: left.splits.shape(), right: right.splits.shape() },
    })?;
    let left = recut(builder, left, last, &inner)?;
    let right = recut(builder, right, 0, &inner)?;
    let rows = left.splits.0[..last].iter().cloned();
    let columns = right.splits.0[1..].iter().cloned();
    let splits = Splits(rows.chain(columns).collect());
    let content = Content::Tensor(dtype);
    let mut chunks = Vec::new();
    for index in builder.grid(&splits)? {
        let (row, column) = index.split_at(last);
        let mut products: Vec<ChunkId> = Vec::new();
        let part = if inner.len() == 1 { Part::Output } else { Part::Between };
        for step in 0..inner.len() {
            let inputs = vec![left.chunk(&[row, &[step]].concat()), right.chunk(&[&[step], column].concat())];
            let draft = Draft::new(ChunkOperator::Matmul, inputs, &content).at(&index, &splits);
            products.push(builder.add(part, draft)?);
        }
        chunks.push(match products[..] {
            [product] => product,
            _ => {
                let draft = Draft::new(ChunkOperator::AddN, products, &content).at(&index, &splits);
                builder.add(Part::Output, draft)?
            }
        });
    }
    Ok(Tiled::tensor(dtype, splits, chunks))
}

fn recut(builder: &mut Builder, tiled: &Tiled, axis: usize, parts: &[Extent]) -> Result<Tiled, Reason> {
    let mut wanted = tiled.splits.clone();
    wanted.0[axis] = parts.to_vec();
    rechunk(builder, Part::Between, tiled, &wanted)
}
