//! Reductions: a partial result for each chunk; those are merged in groups of [`COMBINE_SIZE`] along each reduced axis until
//! one such group is left, of which the result is made. The order of merging is part of what a result means.

use crate::builder::{Builder, Draft, Part};
use crate::chunk::{ChunkId, ChunkOperator, Content, Gives, Takes};
use crate::dtype::DType;
use crate::index::Parts;
use crate::limits::COMBINE_SIZE;
use crate::operator::{Reduction, ReductionFunction};
use crate::refusal::Reason;
use crate::rules::shape::distinct;
use crate::splits::{Splits, indexes, place};
use crate::tiled::{ONE, Tiled};

pub(super) fn reduce(
    builder: &mut Builder,
    tiled: &Tiled,
    function: ReductionFunction,
    axes: Option<&[i64]>,
    keepdims: bool,
    ddof: u64,
) -> Result<Tiled, Reason> {
    let dtype = tiled.dtype()?;
    let dims = tiled.splits.dims();
    let mut found = match axes {
        Some(axes) => distinct(axes, dims)?,
        None => (0..dims).collect(),
    };
    found.sort_unstable();
    if function.is_place() && axes.is_some_and(|axes| axes.len() != 1) {
        return Err(Reason::Axes { is: found.len(), wanted: "one, or all".to_owned() });
    }
    if function != ReductionFunction::Var && ddof != 0 {
        return Err(Reason::Value("only a variance takes something from the number of elements"));
    }
    check_empty(tiled, function, &found)?;
    let reduction = Reduction { function, axes: found, keepdims, ddof };
    let run = Run { tiled, reduction, result: function.result(dtype) };
    run.all(builder)
}

/// Numpy refuses the largest of nothing, and a place where there is none, also where the result has no elements either. Of an
/// extent that only execution tells, whoever makes the result says so.
fn check_empty(tiled: &Tiled, function: ReductionFunction, axes: &[usize]) -> Result<(), Reason> {
    let is_empty = |axis: &usize| tiled.splits.total(*axis) == Some(0);
    if !function.has_identity() && axes.iter().any(is_empty) { Err(Reason::Empty) } else { Ok(()) }
}

/// One reduction of one tensor.
struct Run<'a> {
    tiled: &'a Tiled,
    reduction: Reduction,
    result: DType,
}

/// Results on the way, and how many there are along each axis.
struct Level {
    chunks: Vec<ChunkId>,
    splits: Splits,
}

impl Run<'_> {
    fn all(&self, builder: &mut Builder) -> Result<Tiled, Reason> {
        let splits = &self.tiled.splits;
        let is_single = self.reduction.axes.iter().all(|axis| splits.axis(*axis).len() == 1);
        let gives = if is_single { Gives::Result } else { Gives::Partial };
        let mut level = self.map(builder, gives)?;
        if !is_single {
            while self.reduction.axes.iter().any(|axis| level.splits.axis(*axis).len() > COMBINE_SIZE) {
                level = self.merge(builder, &level, COMBINE_SIZE, Gives::Partial)?;
            }
            level = self.merge(builder, &level, COMBINE_SIZE, Gives::Result)?;
        }
        Ok(Tiled::tensor(self.result, self.cut_result(&level.splits), level.chunks))
    }

    /// The first step, of each chunk.
    fn map(&self, builder: &mut Builder, gives: Gives) -> Result<Level, Reason> {
        let mut splits = self.tiled.splits.clone();
        for axis in &self.reduction.axes {
            splits.0[*axis] = vec![ONE; splits.0[*axis].len()];
        }
        let places = if self.reduction.function.is_place() { Some(self.places()?) } else { None };
        let mut chunks = Vec::with_capacity(self.tiled.chunks.len());
        for (index, chunk) in builder.grid(&splits)?.zip(&self.tiled.chunks) {
            let (begin, whole) = match &places {
                Some((parts, whole)) => {
                    let begin =
                        parts.iter().zip(&self.reduction.axes).map(|(parts, axis)| parts.begin(index[*axis]));
                    (begin.collect(), whole.clone())
                }
                None => (Vec::new(), Vec::new()),
            };
            let reduction = self.reduction.clone();
            let operator = ChunkOperator::Reduce { reduction, takes: Takes::Values, gives, begin, whole };
            chunks.push(self.add(builder, operator, vec![*chunk], gives, &index, &splits)?);
        }
        Ok(Level { chunks, splits })
    }

    /// Where the parts of the reduced axes begin, and how long those are.
    fn places(&self) -> Result<(Vec<Parts>, Vec<u64>), Reason> {
        let parts = self.reduction.axes.iter().map(|axis| Ok(Parts::new(self.tiled.known(*axis)?)));
        let whole = self.reduction.axes.iter().map(|axis| self.tiled.total(*axis));
        Ok((parts.collect::<Result<_, _>>()?, whole.collect::<Result<_, _>>()?))
    }

    /// A step that takes so many along each reduced axis.
    fn merge(
        &self,
        builder: &mut Builder,
        level: &Level,
        size: usize,
        gives: Gives,
    ) -> Result<Level, Reason> {
        let counts = level.splits.counts();
        let mut splits = level.splits.clone();
        for axis in &self.reduction.axes {
            splits.0[*axis] = vec![ONE; counts[*axis].div_ceil(size)];
        }
        let mut chunks = Vec::new();
        for index in builder.grid(&splits)? {
            let inputs = self.group(level, &counts, &index, size);
            let operator = ChunkOperator::reduce(self.reduction.clone(), Takes::Partials, gives);
            chunks.push(self.add(builder, operator, inputs, gives, &index, &splits)?);
        }
        Ok(Level { chunks, splits })
    }

    /// What becomes the chunk at an index of the next level.
    fn group(&self, level: &Level, counts: &[usize], index: &[usize], size: usize) -> Vec<ChunkId> {
        let is_reduced = |axis: usize| self.reduction.axes.contains(&axis);
        let begins: Vec<usize> = index
            .iter()
            .enumerate()
            .map(|(axis, at)| if is_reduced(axis) { at * size } else { *at })
            .collect();
        let extent = |axis: usize| if is_reduced(axis) { size.min(counts[axis] - begins[axis]) } else { 1 };
        let extents: Vec<usize> = (0..counts.len()).map(extent).collect();
        let chunk = |at: Vec<usize>| {
            let from: Vec<usize> = at.iter().zip(&begins).map(|(at, begin)| at + begin).collect();
            level.chunks[place(&from, counts)]
        };
        indexes(&extents).map(chunk).collect()
    }

    fn add(
        &self,
        builder: &mut Builder,
        operator: ChunkOperator,
        inputs: Vec<ChunkId>,
        gives: Gives,
        index: &[usize],
        splits: &Splits,
    ) -> Result<ChunkId, Reason> {
        if gives == Gives::Partial {
            let draft = Draft::new(operator, inputs, &Content::Partial).at(index, splits);
            return builder.add(Part::Between, draft);
        }
        let kept: Vec<usize> = self.kept(index);
        let draft = Draft::new(operator, inputs, &Content::Tensor(self.result));
        builder.add(Part::Output, draft.at(&kept, &self.cut_result(splits)))
    }

    /// What remains of a list with an item for each axis.
    fn kept<T: Clone>(&self, axes: &[T]) -> Vec<T> {
        let stays = |axis: usize| self.reduction.keepdims || !self.reduction.axes.contains(&axis);
        axes.iter().enumerate().filter(|(axis, _)| stays(*axis)).map(|(_, item)| item.clone()).collect()
    }

    fn cut_result(&self, splits: &Splits) -> Splits {
        Splits(self.kept(&splits.0))
    }
}
