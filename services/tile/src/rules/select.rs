//! Parts of a tensor that slices pick: of each chunk what is in it, and no chunk of which nothing is.

use crate::builder::{Builder, Draft, Part};
use crate::chunk::ChunkOperator;
use crate::index::{AxisIndex, Cut, Parts, Piece, Range};
use crate::refusal::Reason;
use crate::splits::{Splits, indexes};
use crate::tiled::Tiled;

/// What is picked of each part of each axis.
#[derive(Debug)]
pub(super) struct Selection {
    /// For each axis of the tensor, in the order of the result.
    pub(super) axes: Vec<Vec<Piece>>,
    /// Axes that the result does not have.
    pub(super) drop: Vec<usize>,
}

impl Selection {
    pub(super) fn of(tiled: &Tiled, index: &[AxisIndex]) -> Result<Self, Reason> {
        let dims = tiled.splits.dims();
        if index.len() > dims {
            return Err(Reason::Axes { is: index.len(), wanted: format!("at most {dims}") });
        }
        let mut axes = Vec::with_capacity(dims);
        let mut drop = Vec::new();
        for axis in 0..dims {
            let picked = index.get(axis).copied().unwrap_or(AxisIndex::ALL);
            if matches!(picked, AxisIndex::At(_)) {
                drop.push(axis);
            }
            axes.push(pieces(tiled, axis, picked)?);
        }
        Ok(Self { axes, drop })
    }

    /// How the result is cut.
    pub(super) fn splits(&self) -> Splits {
        let extents = |pieces: &Vec<Piece>| pieces.iter().map(|piece| piece.extent).collect();
        Splits(self.kept(&self.axes).into_iter().map(extents).collect())
    }

    /// Of how many pieces each axis consists, those that are dropped among them.
    pub(super) fn counts(&self) -> Vec<usize> {
        self.axes.iter().map(Vec::len).collect()
    }

    /// What is there for each axis of the result.
    pub(super) fn kept<'a, T>(&self, axes: &'a [T]) -> Vec<&'a T> {
        axes.iter().enumerate().filter(|(axis, _)| !self.drop.contains(axis)).map(|(_, item)| item).collect()
    }

    /// In which chunk the pieces at an index are, and where in it.
    pub(super) fn at(&self, index: &[usize]) -> (Vec<usize>, Vec<Range>) {
        let pieces = self.axes.iter().zip(index).map(|(pieces, piece)| pieces[*piece]);
        pieces.map(|piece| (piece.part, piece.range)).unzip()
    }
}

pub(super) fn slice(builder: &mut Builder, tiled: &Tiled, index: &[AxisIndex]) -> Result<Tiled, Reason> {
    let selection = Selection::of(tiled, index)?;
    select(builder, tiled, &selection)
}

/// One of so many parts, as `np.array_split` makes them.
pub(super) fn split(
    builder: &mut Builder,
    tiled: &Tiled,
    sections: u64,
    part: u64,
    axis: i64,
) -> Result<Tiled, Reason> {
    if part >= sections {
        return Err(Reason::Value("there are fewer sections"));
    }
    let axis = tiled.axis(axis)?;
    let extent = tiled.total(axis)?;
    let (each, longer) = (extent / sections, extent % sections);
    let begin = |part: u64| part * each + part.min(longer);
    let mut selection = Selection::of(tiled, &[])?;
    let cut = Cut::run(begin(part), begin(part + 1) - begin(part));
    selection.axes[axis] = Parts::new(tiled.known(axis)?).pieces(cut);
    select(builder, tiled, &selection)
}

fn select(builder: &mut Builder, tiled: &Tiled, selection: &Selection) -> Result<Tiled, Reason> {
    let dtype = tiled.dtype()?;
    let (splits, counts) = (selection.splits(), selection.counts());
    builder.room(&counts)?;
    let mut chunks = Vec::new();
    for index in indexes(&counts) {
        let (source, ranges) = selection.at(&index);
        let is_whole = ranges.iter().all(|range| *range == Range::Whole);
        chunks.push(if is_whole && selection.drop.is_empty() {
            tiled.chunk(&source)
        } else {
            let operator = ChunkOperator::Slice { ranges, drop: selection.drop.clone() };
            let draft = Draft::new(operator, vec![tiled.chunk(&source)], &tiled.content);
            let kept: Vec<usize> = selection.kept(&index).into_iter().copied().collect();
            builder.add(Part::Output, draft.at(&kept, &splits))?
        });
    }
    Ok(Tiled::tensor(dtype, splits, chunks))
}

fn pieces(tiled: &Tiled, axis: usize, picked: AxisIndex) -> Result<Vec<Piece>, Reason> {
    if picked.is_all() {
        let parts = tiled.splits.axis(axis).iter().enumerate();
        return Ok(parts.map(|(part, extent)| Piece::whole(part, *extent)).collect());
    }
    let parts = Parts::new(tiled.known(axis)?);
    let extent = tiled.total(axis)?;
    let cut = match picked {
        AxisIndex::Slice { start, stop, step } => Cut::of(start, stop, step, extent).ok_or(Reason::Step)?,
        AxisIndex::At(index) => Cut::run(element(index, extent)?, 1),
    };
    Ok(parts.pieces(cut))
}

/// The place of an element, which a client may count from the end.
pub(super) fn element(index: i64, extent: u64) -> Result<u64, Reason> {
    let place = i128::from(index) + if index < 0 { i128::from(extent) } else { 0 };
    let place = u64::try_from(place).ok().filter(|place| *place < extent);
    place.ok_or(Reason::Index { index, extent })
}
