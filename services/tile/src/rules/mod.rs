//! How each operator is tiled: a file for each group of them.

mod align;
mod assign;
mod elementwise;
mod frame;
mod group;
mod join;
mod linear;
mod rechunk;
mod reduce;
mod reshape;
mod select;
mod shape;
mod source;
mod take;

use crate::builder::Builder;
use crate::chunk::ChunkOperator;
use crate::graph::Tileable;
use crate::limits::MESSAGE_BYTES_MAX;
use crate::operator::Operator;
use crate::refusal::Reason;
use crate::tiled::Tiled;
use crate::tiling::{Helpers, Input};

/// The chunks of one tileable, from those of its inputs, of which there are as many as it takes.
pub(crate) fn apply(
    builder: &mut Builder,
    tileable: &Tileable,
    inputs: &[Input<'_>],
    helpers: Helpers,
) -> Result<Tiled, Reason> {
    let tiles: Vec<&Tiled> = inputs.iter().map(|input| input.tiled).collect();
    match &tileable.operator {
        Operator::Unary { function } => elementwise::unary(builder, tiles[0], *function),
        Operator::Cast { dtype } => elementwise::cast(builder, tiles[0], *dtype),
        Operator::Binary { function, left, right } => {
            elementwise::binary(builder, &tiles, *function, *left, *right)
        }
        Operator::Where { yes, no } => elementwise::choose(builder, &tiles, *yes, *no),

        Operator::Slice { index } => select::slice(builder, tiles[0], index),
        Operator::Split { sections, part, axis } => select::split(builder, tiles[0], *sections, *part, *axis),
        Operator::SetItem { index, value } => assign::set_item(builder, &tiles, index, *value),
        Operator::Take { indices, axis } => take::take(builder, tiles[0], indices, *axis),
        Operator::Compress { axis } => take::compress(builder, inputs, *axis),

        Operator::Concat { axis } => join::concat(builder, &tiles, *axis),
        Operator::Stack { axis } => join::stack(builder, &tiles, *axis),
        Operator::Transpose { axes } => shape::transpose(builder, tiles[0], axes),
        Operator::ExpandDims { axis } => shape::expand_dims(builder, tiles[0], *axis),
        Operator::Reshape { shape } => reshape::reshape(builder, tiles[0], shape),
        Operator::Rechunk { chunks } => shape::rechunk(builder, tiles[0], chunks),

        Operator::Matmul => linear::matmul(builder, tiles[0], tiles[1]),
        Operator::Reduce { function, axes, keepdims, ddof } => {
            reduce::reduce(builder, tiles[0], *function, axes.as_deref(), *keepdims, *ddof)
        }

        Operator::ReadFrame { format, files, columns } => {
            frame::read(builder, &tileable.data, *format, files, columns)
        }
        Operator::Project { columns } => frame::project(builder, tiles[0], columns),
        Operator::Column { name } => frame::column(builder, tiles[0], name),
        Operator::FilterRows => frame::filter(builder, inputs),
        Operator::Head { rows } => frame::head(builder, tiles[0], *rows),
        Operator::GroupBy { by, aggregates, reducers } => {
            group::group_by(builder, tiles[0], by, aggregates, *reducers)
        }
        Operator::Shuffle { by, reducers } => group::shuffle(builder, tiles[0], by, *reducers),

        Operator::Sleep { .. } | Operator::Fail { .. } | Operator::Alloc { .. } => {
            helper(builder, tiles[0], &tileable.operator, helpers)
        }
        source => source::source(builder, source, &tileable.data),
    }
}

/// Operators that give what they take, sooner or later or not at all.
fn helper(
    builder: &mut Builder,
    tiled: &Tiled,
    operator: &Operator,
    helpers: Helpers,
) -> Result<Tiled, Reason> {
    if helpers == Helpers::Refused {
        return Err(Reason::TestHelper);
    }
    let operator = match operator {
        Operator::Sleep { ms } => ChunkOperator::Sleep { ms: *ms },
        Operator::Fail { message, .. } if message.len() > MESSAGE_BYTES_MAX => {
            return Err(Reason::Text { bytes: message.len(), most: MESSAGE_BYTES_MAX });
        }
        Operator::Fail { message, attempts } => {
            ChunkOperator::Fail { message: message.clone(), attempts: *attempts }
        }
        Operator::Alloc { bytes } => ChunkOperator::Alloc { bytes: *bytes },
        _ => return Err(Reason::TestHelper),
    };
    elementwise::each(builder, tiled, &tiled.content, &operator)
}
