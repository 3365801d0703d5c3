//! Tensors whose elements are taken together: as numpy broadcasts them, and cut alike.

use crate::builder::{Builder, Part};
use crate::extent::Extent;
use crate::limits::DIMS_MAX;
use crate::refusal::Reason;
use crate::rules::rechunk::{Apart, rechunk, together};
use crate::splits::Splits;
use crate::tiled::{ONE, Tiled};

/// Tensors that go together, and how what is made of them is cut.
#[derive(Debug)]
pub(super) struct Aligned {
    pub(super) splits: Splits,
    pub(super) tiles: Vec<Tiled>,
}

/// Cuts tensors alike. Axes are matched from the last one; an axis of one element goes together with any.
pub(super) fn align(builder: &mut Builder, tiles: &[&Tiled]) -> Result<Aligned, Reason> {
    let dims = tiles.iter().map(|tiled| tiled.splits.dims()).max().unwrap_or(0);
    if dims > DIMS_MAX {
        return Err(Reason::Dims { dims });
    }
    let splits = Splits((0..dims).map(|axis| common(tiles, dims, axis)).collect::<Result<_, _>>()?);
    let cut = tiles.iter().map(|tiled| {
        let missing = dims - tiled.splits.dims();
        let axis = |axis: usize| {
            if tiled.is_one(axis) { vec![ONE] } else { splits.axis(missing + axis).to_vec() }
        };
        let wanted = Splits((0..tiled.splits.dims()).map(axis).collect());
        rechunk(builder, Part::Between, tiled, &wanted)
    });
    let tiles = cut.collect::<Result<_, _>>()?;
    Ok(Aligned { splits, tiles })
}

/// The index of the chunk of a tensor that goes into the chunk at an index of what is made of it.
pub(super) fn source(tiled: &Tiled, index: &[usize]) -> Vec<usize> {
    let missing = index.len() - tiled.splits.dims();
    let part = |axis: usize| if tiled.is_one(axis) { 0 } else { index[missing + axis] };
    (0..tiled.splits.dims()).map(part).collect()
}

/// The parts of one axis of the result.
fn common(tiles: &[&Tiled], dims: usize, axis: usize) -> Result<Vec<Extent>, Reason> {
    let mut lists: Vec<&[Extent]> = Vec::new();
    let mut whose = Vec::new();
    for tiled in tiles {
        let own = (axis + tiled.splits.dims()).checked_sub(dims);
        if let Some(own) = own.filter(|own| !tiled.is_one(*own)) {
            lists.push(tiled.splits.axis(own));
            whose.push(*tiled);
        }
    }
    together(&lists).map_err(|apart| match apart {
        Apart::Unknown => Reason::Unknown { axis },
        Apart::Lengths(other) => {
            Reason::Shapes { left: whose[0].splits.shape(), right: whose[other].splits.shape() }
        }
    })
}
