//! Computes chunk graphs, one chunk after the other, and compares what the graph says of each with what it is.

use std::collections::BTreeMap;

use tripod_tile::{
    ChunkGraph, ChunkNode, ChunkOperator, Content, DType, Extent, Gives, Operand, Range, Reduction, Step,
    Takes, Target,
};

use crate::cell::Cell;
use crate::dense::{Dense, all, hold};
use crate::direct::whole;
use crate::functions;

/// What a node gives.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Array(Dense),
    /// With a cell for each element of the result, all axes kept.
    Partial(Vec<usize>, Vec<Cell>),
    Several(Vec<Value>),
}

/// The results of the targets.
pub(crate) fn compute(graph: &ChunkGraph, stored: &BTreeMap<String, Dense>) -> Vec<Dense> {
    let mut values: Vec<Value> = Vec::new();
    let mut measured = BTreeMap::new();
    for node in &graph.nodes {
        let inputs: Vec<&Value> = node.inputs.iter().map(|input| &values[input.0]).collect();
        let value = one(node, &inputs, stored);
        check(node, &value, &mut measured);
        values.push(value);
    }
    graph.targets.iter().map(|target| put_together(target, &values)).collect()
}

/// Extents and type are what the graph says, and extents of one name are equal.
fn check(node: &ChunkNode, value: &Value, measured: &mut BTreeMap<String, usize>) {
    let shape = match value {
        Value::Array(array) => {
            assert_eq!(node.content, Content::Tensor(array.dtype), "{}", node.key);
            &array.shape
        }
        Value::Partial(shape, _) => {
            assert_eq!(node.content, Content::Partial, "{}", node.key);
            shape
        }
        Value::Several(_) => {
            assert_eq!(node.content, Content::Partial, "{}", node.key);
            return;
        }
    };
    assert_eq!(node.extents.len(), shape.len(), "{}: {shape:?}", node.key);
    for (extent, is) in node.extents.iter().zip(shape) {
        let wanted = match extent {
            Extent::Known(extent) => usize::try_from(*extent).unwrap(),
            Extent::Unknown(_) => *measured.entry(extent.to_string()).or_insert(*is),
        };
        assert_eq!(wanted, *is, "{}: {:?} is {shape:?}", node.key, node.extents);
    }
}

fn put_together(target: &Target, values: &[Value]) -> Dense {
    let Content::Tensor(dtype) = target.content else { panic!("a tensor") };
    let chunks: Vec<&Dense> = target.chunks.iter().map(|chunk| array(&values[chunk.0])).collect();
    let grid = target.splits.counts();
    joined(&grid, &chunks, dtype)
}

/// Arrays side by side in a grid.
fn joined(grid: &[usize], arrays: &[&Dense], dtype: DType) -> Dense {
    let indexes = all(grid);
    assert_eq!(indexes.len(), arrays.len());
    let mut begins: Vec<Vec<usize>> = grid.iter().map(|count| vec![0; count + 1]).collect();
    for (index, array) in indexes.iter().zip(arrays) {
        for (axis, part) in index.iter().enumerate() {
            begins[axis][part + 1] = array.shape[axis];
        }
    }
    for begins in &mut begins {
        for part in 1..begins.len() {
            begins[part] += begins[part - 1];
        }
    }
    let shape: Vec<usize> = begins.iter().map(|begins| *begins.last().unwrap()).collect();
    let mut result = Dense::from_fn(&shape, dtype, |_| 0.0);
    for (index, array) in indexes.iter().zip(arrays) {
        for at in all(&array.shape) {
            let to: Vec<usize> =
                at.iter().enumerate().map(|(axis, at)| begins[axis][index[axis]] + at).collect();
            let place = result.place(&to);
            result.data[place] = array.at(&at);
        }
        let parts = index.iter().enumerate().map(|(axis, part)| begins[axis][part + 1] - begins[axis][*part]);
        assert_eq!(parts.collect::<Vec<_>>(), array.shape, "chunks of a row are equally long");
    }
    result
}

fn array(value: &Value) -> &Dense {
    match value {
        Value::Array(array) => array,
        Value::Partial(..) | Value::Several(_) => panic!("a partial result among arrays"),
    }
}

fn one(node: &ChunkNode, inputs: &[&Value], stored: &BTreeMap<String, Dense>) -> Value {
    if let ChunkOperator::Reduce { reduction, takes, gives, begin, whole } = &node.operator {
        return match takes {
            Takes::Values => mapped(array(inputs[0]), reduction, *gives, (begin, whole)),
            Takes::Partials => merged(inputs, reduction, *gives, node),
        };
    }
    if let Some(value) = several_at_once(node, inputs, stored) {
        return value;
    }
    let arrays: Vec<Dense> = inputs.iter().map(|input| array(input).clone()).collect();
    let Content::Tensor(dtype) = node.content else { panic!("{node:?}") };
    let known = || -> Vec<usize> {
        node.extents.iter().map(|extent| usize::try_from(extent.known().unwrap()).unwrap()).collect()
    };
    Value::Array(match &node.operator {
        ChunkOperator::Full { .. }
        | ChunkOperator::Eye { .. }
        | ChunkOperator::Arange { .. }
        | ChunkOperator::Linspace { .. }
        | ChunkOperator::RandUniform { .. }
        | ChunkOperator::RandNormal { .. } => source(&node.operator, &known(), dtype),
        ChunkOperator::FromBytes => Dense::from_bytes(&known(), dtype, &node.data),
        ChunkOperator::Fetch { chunk } => stored[chunk].clone(),
        ChunkOperator::Unary { function } => {
            let data = arrays[0].data.iter().map(|value| hold(dtype, functions::unary(*function, *value)));
            Dense { shape: arrays[0].shape.clone(), dtype, data: data.collect() }
        }
        ChunkOperator::Cast => arrays[0].cast(dtype),
        ChunkOperator::Binary { function, left, right } => {
            functions::apply_binary(&arrays, *function, [*left, *right])
        }
        ChunkOperator::Where { yes, no } => functions::apply_where(&arrays, dtype, [*yes, *no]),
        other => structural(other, &arrays, dtype, &known),
    })
}

/// What is made of several operators.
fn several_at_once(node: &ChunkNode, inputs: &[&Value], stored: &BTreeMap<String, Dense>) -> Option<Value> {
    Some(match &node.operator {
        ChunkOperator::Fused { steps } => stepped(node, steps, inputs, stored),
        ChunkOperator::Chains { chains } => {
            let made = chains.iter().map(|steps| stepped(node, steps, &[], stored));
            Value::Several(made.flat_map(|value| apart(&value)).collect())
        }
        ChunkOperator::ReduceSeveral { parts } => {
            let part = |operator: &ChunkOperator| {
                one(&ChunkNode { operator: operator.clone(), ..node.clone() }, inputs, stored)
            };
            Value::Several(parts.iter().map(part).collect())
        }
        ChunkOperator::ReduceTree { reduction, gives, leaves, groups } => {
            let inputs: Vec<Vec<Value>> = inputs.iter().map(|input| apart(input)).collect();
            let mut values: Vec<Value> =
                leaves.iter().map(|(input, part)| inputs[*input][*part].clone()).collect();
            for (place, group) in groups.iter().enumerate() {
                let gives = if place + 1 == groups.len() { *gives } else { Gives::Partial };
                let members: Vec<&Value> = group.iter().map(|at| &values[*at]).collect();
                let value = merged(&members, reduction, gives, node);
                values.push(value);
            }
            values.pop().unwrap()
        }
        _ => return None,
    })
}

fn stepped(node: &ChunkNode, steps: &[Step], inputs: &[&Value], stored: &BTreeMap<String, Dense>) -> Value {
    let mut made: Option<Value> = None;
    for Step { operator, extents, content } in steps.iter().cloned() {
        let step = ChunkNode { operator, extents, content, ..node.clone() };
        let value = match &made {
            Some(before) => one(&step, &[before], stored),
            None => one(&step, inputs, stored),
        };
        made = Some(value);
    }
    made.unwrap()
}

/// All partial results of a chunk.
fn apart(value: &Value) -> Vec<Value> {
    match value {
        Value::Several(values) => values.clone(),
        value => vec![value.clone()],
    }
}

fn source(operator: &ChunkOperator, shape: &[usize], dtype: DType) -> Dense {
    let count = |index: &[usize], offset: u64| offset as f64 + index[0] as f64;
    let flat =
        |index: &[usize]| index.iter().zip(shape).fold(0_usize, |place, (at, extent)| place * extent + at);
    Dense::from_fn(shape, dtype, |index| match operator {
        ChunkOperator::Full { value } => value.as_float(),
        ChunkOperator::Eye { diagonal } => {
            f64::from(u8::from(index[1] as i64 - index[0] as i64 == *diagonal))
        }
        ChunkOperator::Arange { start, delta, offset } => {
            start.as_float() + count(index, *offset) * delta.as_float()
        }
        ChunkOperator::Linspace { start, step, last, num, offset } => {
            let at = count(index, *offset);
            let is_last = at + 1.0 == *num as f64;
            last.filter(|_| is_last)
                .map_or(at * step.as_float() + start.as_float(), tripod_tile::Scalar::as_float)
        }
        ChunkOperator::RandUniform { seed, stream, .. } | ChunkOperator::RandNormal { seed, stream, .. } => {
            functions::noise(*seed, *stream, flat(index))
        }
        other => panic!("{other:?}"),
    })
}

fn structural(
    operator: &ChunkOperator,
    arrays: &[Dense],
    dtype: DType,
    known: &dyn Fn() -> Vec<usize>,
) -> Dense {
    match operator {
        ChunkOperator::Slice { ranges, drop } => {
            arrays[0].pick(&places(&arrays[0].shape, ranges)).without(drop)
        }
        ChunkOperator::Assemble { grid, pieces } => {
            let picked: Vec<Dense> = arrays
                .iter()
                .zip(pieces)
                .map(|(array, ranges)| array.pick(&places(&array.shape, ranges)))
                .collect();
            assert_eq!(arrays.len(), pieces.len());
            joined(grid, &picked.iter().collect::<Vec<_>>(), dtype)
        }
        ChunkOperator::Gather { axis, from } => {
            let mut shape = arrays[0].shape.clone();
            shape[*axis] = from.len();
            Dense::from_fn(&shape, dtype, |index| {
                let (input, at) = from[index[*axis]];
                let mut index = index.to_vec();
                index[*axis] = usize::try_from(at).unwrap();
                arrays[input].at(&index)
            })
        }
        ChunkOperator::Assign { ranges, drop, value } => assign(arrays, ranges, drop, *value),
        ChunkOperator::Compress { axis } => {
            let mut places = whole(&arrays[0].shape);
            assert_eq!(places[*axis].len(), arrays[1].data.len(), "a mask is as long as what it picks from");
            places[*axis].retain(|at| arrays[1].data[*at] != 0.0);
            arrays[0].pick(&places)
        }
        ChunkOperator::Transpose { axes } => arrays[0].transposed(axes),
        ChunkOperator::ExpandDims { axis } => {
            let mut shape = arrays[0].shape.clone();
            shape.insert(*axis, 1);
            arrays[0].reshaped(&shape)
        }
        ChunkOperator::Reshape => arrays[0].reshaped(&known()),
        ChunkOperator::Matmul => arrays[0].matmul(&arrays[1], dtype),
        ChunkOperator::MatmulSum => {
            let products: Vec<_> = arrays.chunks(2).map(|pair| pair[0].matmul(&pair[1], dtype)).collect();
            Dense::from_fn(&products[0].shape, dtype, |index| products.iter().map(|one| one.at(index)).sum())
        }
        ChunkOperator::AddN => {
            Dense::from_fn(&arrays[0].shape, dtype, |index| arrays.iter().map(|array| array.at(index)).sum())
        }
        other => panic!("not in these tests: {other:?}"),
    }
}

/// The places of a range, all of which must be there.
fn places(shape: &[usize], ranges: &[Range]) -> Vec<Vec<usize>> {
    assert_eq!(shape.len(), ranges.len());
    let axis = |(extent, range): (&usize, &Range)| match range {
        Range::Whole => (0..*extent).collect(),
        Range::Part { start, step, count } => {
            let place = |at: u64| usize::try_from(*start as i64 + at as i64 * step).unwrap();
            (0..*count).map(place).collect()
        }
    };
    shape.iter().zip(ranges).map(axis).collect()
}

fn assign(arrays: &[Dense], ranges: &[Range], drop: &[usize], value: Operand) -> Dense {
    let mut result = arrays[0].clone();
    let value = functions::operands(&arrays[1..], &[value]).remove(0);
    let places = places(&result.shape, ranges);
    let shape: Vec<usize> = places.iter().map(Vec::len).collect();
    for at in all(&shape) {
        let to: Vec<usize> = at.iter().zip(&places).map(|(at, places)| places[*at]).collect();
        let kept: Vec<usize> =
            at.iter().enumerate().filter(|(axis, _)| !drop.contains(axis)).map(|(_, at)| *at).collect();
        let place = result.place(&to);
        result.data[place] = hold(result.dtype, value.broadcast(&kept));
    }
    result
}

fn mapped(array: &Dense, reduction: &Reduction, gives: Gives, places: (&[u64], &[u64])) -> Value {
    let shape: Vec<usize> = (0..array.shape.len())
        .map(|axis| if reduction.axes.contains(&axis) { 1 } else { array.shape[axis] })
        .collect();
    let result = Dense::from_fn(&shape, DType::F64, |_| 0.0);
    let mut cells = vec![Cell::empty(); result.data.len()];
    for index in all(&array.shape) {
        let to: Vec<usize> = index
            .iter()
            .enumerate()
            .map(|(axis, at)| if reduction.axes.contains(&axis) { 0 } else { *at })
            .collect();
        let (begin, whole) = places;
        let own = reduction.axes.iter().map(|axis| index[*axis] as u64);
        let place = own
            .zip(begin.iter().zip(whole))
            .fold(0_u64, |place, (at, (begin, whole))| place * whole + begin + at);
        let cell = &mut cells[result.place(&to)];
        *cell = cell.merge(&Cell::of(array.at(&index), place));
    }
    finished(shape, cells, reduction, gives, reduction.function.result(array.dtype))
}

fn merged(inputs: &[&Value], reduction: &Reduction, gives: Gives, node: &ChunkNode) -> Value {
    let partial = |value: &Value| match value {
        Value::Partial(shape, cells) => (shape.clone(), cells.clone()),
        Value::Array(_) | Value::Several(_) => panic!("no partial result among them"),
    };
    let (shape, mut cells) = partial(inputs[0]);
    for input in &inputs[1..] {
        let (_, others) = partial(input);
        assert_eq!(cells.len(), others.len());
        cells = cells.iter().zip(&others).map(|(cell, other)| cell.merge(other)).collect();
    }
    let dtype = match node.content {
        Content::Tensor(dtype) => dtype,
        _ => DType::F64,
    };
    finished(shape, cells, reduction, gives, dtype)
}

fn finished(shape: Vec<usize>, cells: Vec<Cell>, reduction: &Reduction, gives: Gives, dtype: DType) -> Value {
    if gives == Gives::Partial {
        return Value::Partial(shape, cells);
    }
    let result = |cell: &Cell| hold(dtype, cell.result(reduction.function, reduction.ddof));
    let array = Dense { shape, dtype, data: cells.iter().map(result).collect() };
    Value::Array(if reduction.keepdims { array } else { array.without(&reduction.axes) })
}
