//! Computes tileables as wholes.

use std::collections::BTreeMap;

use tripod_tile::{AxisIndex, DType, Operand, Operator, ReductionFunction, Scalar, Tileable, UnaryFunction};

use crate::dense::{Dense, all, hold};
use crate::functions;

fn size(extent: u64) -> usize {
    usize::try_from(extent).unwrap()
}

fn sizes(shape: &[u64]) -> Vec<usize> {
    shape.iter().map(|extent| size(*extent)).collect()
}

/// The place of an axis.
pub(crate) fn axis_of(axis: i64, dims: usize) -> usize {
    usize::try_from(if axis < 0 { axis + i64::try_from(dims).unwrap() } else { axis }).unwrap()
}

/// The result of one operator. `stored` are chunks that are there, as wholes by the key of their first chunk.
pub(crate) fn compute(tileable: &Tileable, inputs: &[Dense], stored: &BTreeMap<String, Dense>) -> Dense {
    match &tileable.operator {
        Operator::Full { value, shape, dtype, .. } => {
            Dense::from_fn(&sizes(shape), *dtype, |_| value.as_float())
        }
        Operator::Zeros { shape, dtype, .. } => Dense::from_fn(&sizes(shape), *dtype, |_| 0.0),
        Operator::Ones { shape, dtype, .. } => Dense::from_fn(&sizes(shape), *dtype, |_| 1.0),
        Operator::Eye { rows, columns, diagonal, dtype, .. } => {
            Dense::from_fn(&[size(*rows), size(*columns)], *dtype, |index| {
                f64::from(u8::from(index[1] as i64 - index[0] as i64 == *diagonal))
            })
        }
        Operator::Arange { start, stop, step, dtype, .. } => arange(*start, *stop, *step, *dtype),
        Operator::Linspace { start, stop, num, endpoint, .. } => {
            let (start, stop) = (start.as_float(), stop.as_float());
            let gaps = if *endpoint { num.saturating_sub(1) } else { *num } as f64;
            Dense::from_fn(&[size(*num)], DType::F64, |index| {
                if index[0] == 0 { start } else { index[0] as f64 * ((stop - start) / gaps) + start }
            })
        }
        Operator::FromBytes { shape, dtype, .. } => Dense::from_bytes(&sizes(shape), *dtype, &tileable.data),
        Operator::Fetch { chunks, .. } => stored[&chunks[0]].clone(),
        Operator::Unary { function } => {
            let dtype = function.result(inputs[0].dtype).unwrap();
            each(&inputs[0], dtype, |value| functions::unary(*function, value))
        }
        Operator::Cast { dtype } => inputs[0].cast(*dtype),
        Operator::Binary { function, left, right } => {
            functions::apply_binary(inputs, *function, [*left, *right])
        }
        Operator::Where { yes, no } => {
            // A sum has the same type, as all types that the tests use have one.
            let (Operand::Input, Operand::Input) = (yes, no) else { panic!("not in these tests") };
            functions::apply_where(inputs, inputs[1].dtype.promote(inputs[2].dtype), [*yes, *no])
        }
        other => structural(other, inputs),
    }
}

fn structural(operator: &Operator, inputs: &[Dense]) -> Dense {
    let first = &inputs[0];
    match operator {
        Operator::Slice { index } => {
            let (places, drop) = places(&first.shape, index);
            first.pick(&places).without(&drop)
        }
        Operator::SetItem { index, value } => set_item(inputs, index, *value),
        Operator::Take { indices, axis } => {
            let mut places = whole(&first.shape);
            let axis = axis_of(*axis, first.shape.len());
            places[axis] = indices.iter().map(|index| axis_of(*index, first.shape[axis])).collect();
            first.pick(&places)
        }
        Operator::Compress { axis } => {
            let mut places = whole(&first.shape);
            let axis = axis_of(*axis, first.shape.len());
            places[axis].retain(|at| inputs[1].data[*at] != 0.0);
            first.pick(&places)
        }
        Operator::Split { sections, part, axis } => {
            let mut places = whole(&first.shape);
            let axis = axis_of(*axis, first.shape.len());
            let (sections, part) = (size(*sections), size(*part));
            let extent = first.shape[axis];
            let begin = |part: usize| part * (extent / sections) + part.min(extent % sections);
            places[axis] = (begin(part)..begin(part + 1)).collect();
            first.pick(&places)
        }
        Operator::Concat { axis } => concat(inputs, axis_of(*axis, first.shape.len())),
        Operator::Stack { axis } => {
            let axis = axis_of(*axis, first.shape.len() + 1);
            let expanded: Vec<Dense> = inputs.iter().map(|input| expanded(input, axis)).collect();
            concat(&expanded, axis)
        }
        Operator::Transpose { axes } => {
            let axes: Vec<usize> = axes.iter().map(|axis| axis_of(*axis, axes.len())).collect();
            first.transposed(&axes)
        }
        Operator::ExpandDims { axis } => expanded(first, axis_of(*axis, first.shape.len() + 1)),
        Operator::Reshape { shape } => {
            let known: i64 = shape.iter().filter(|extent| **extent != -1).product();
            let left = if known == 0 { 0 } else { first.data.len() / usize::try_from(known).unwrap() };
            let shape: Vec<usize> =
                shape.iter().map(|extent| usize::try_from(*extent).unwrap_or(left)).collect();
            first.reshaped(&shape)
        }
        Operator::Rechunk { .. } => first.clone(),
        Operator::Matmul => first.matmul(&inputs[1], first.dtype.promote(inputs[1].dtype)),
        Operator::Reduce { function, axes, keepdims, ddof } => {
            reduce(first, *function, axes.as_deref(), *keepdims, *ddof)
        }
        other => panic!("not in these tests: {other:?}"),
    }
}

fn arange(start: Scalar, stop: Scalar, step: Scalar, dtype: DType) -> Dense {
    let (start, stop, step) = (start.as_float(), stop.as_float(), step.as_float());
    let count = ((stop - start) / step).ceil().max(0.0) as usize;
    Dense::from_fn(&[count], dtype, |index| start + index[0] as f64 * step)
}

fn each(array: &Dense, dtype: DType, function: impl Fn(f64) -> f64) -> Dense {
    let data = array.data.iter().map(|value| hold(dtype, function(*value))).collect();
    Dense { shape: array.shape.clone(), dtype, data }
}

pub(crate) fn whole(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().map(|extent| (0..*extent).collect()).collect()
}

/// As Python picks them, one by one.
fn places(shape: &[usize], index: &[AxisIndex]) -> (Vec<Vec<usize>>, Vec<usize>) {
    let mut places = whole(shape);
    let mut drop = Vec::new();
    for (axis, picked) in index.iter().enumerate() {
        let extent = i64::try_from(shape[axis]).unwrap();
        match picked {
            AxisIndex::At(at) => {
                places[axis] = vec![axis_of(*at, shape[axis])];
                drop.push(axis);
            }
            AxisIndex::Slice { start, stop, step } => {
                let step = step.unwrap_or(1);
                let wrap = |at: i64| if at < 0 { at + extent } else { at };
                let (low, high) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
                let (from, to) = if step > 0 { (low, high) } else { (high, low) };
                let mut at = start.map_or(from, |at| wrap(at).clamp(low, high));
                let end = stop.map_or(to, |at| wrap(at).clamp(low, high));
                places[axis].clear();
                while if step > 0 { at < end } else { at > end } {
                    places[axis].push(usize::try_from(at).unwrap());
                    at += step;
                }
            }
        }
    }
    (places, drop)
}

fn set_item(inputs: &[Dense], index: &[AxisIndex], value: Operand) -> Dense {
    let mut result = inputs[0].clone();
    let value = functions::operands(&inputs[1..], &[value]).remove(0);
    let (places, drop) = places(&result.shape, index);
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

fn expanded(array: &Dense, axis: usize) -> Dense {
    let mut shape = array.shape.clone();
    shape.insert(axis, 1);
    array.reshaped(&shape)
}

fn concat(arrays: &[Dense], axis: usize) -> Dense {
    let dtype = arrays.iter().map(|array| array.dtype).reduce(DType::promote).unwrap();
    let mut shape = arrays[0].shape.clone();
    shape[axis] = arrays.iter().map(|array| array.shape[axis]).sum();
    Dense::from_fn(&shape, dtype, |index| {
        let mut from = index.to_vec();
        let mut arrays = arrays.iter();
        let mut array = arrays.next().unwrap();
        while from[axis] >= array.shape[axis] {
            from[axis] -= array.shape[axis];
            array = arrays.next().unwrap();
        }
        array.at(&from)
    })
}

fn reduce(
    array: &Dense,
    function: ReductionFunction,
    axes: Option<&[i64]>,
    keepdims: bool,
    ddof: u64,
) -> Dense {
    let dims = array.shape.len();
    let axes: Vec<usize> =
        axes.map_or((0..dims).collect(), |axes| axes.iter().map(|axis| axis_of(*axis, dims)).collect());
    let kept: Vec<usize> =
        (0..dims).map(|axis| if axes.contains(&axis) { 1 } else { array.shape[axis] }).collect();
    let folded: Vec<usize> =
        (0..dims).map(|axis| if axes.contains(&axis) { array.shape[axis] } else { 1 }).collect();
    let result = Dense::from_fn(&kept, function.result(array.dtype), |index| {
        let at = |inner: Vec<usize>| {
            let from: Vec<usize> = inner.iter().zip(index).map(|(one, other)| one + other).collect();
            array.at(&from)
        };
        fold(&all(&folded).into_iter().map(at).collect::<Vec<_>>(), function, ddof)
    });
    if keepdims { result } else { result.without(&axes) }
}

/// By the definitions.
fn fold(values: &[f64], function: ReductionFunction, ddof: u64) -> f64 {
    let truth = |value: bool| f64::from(u8::from(value));
    let count = values.len() as f64;
    let sum: f64 = values.iter().sum();
    let first = |wanted: f64| values.iter().position(|value| *value == wanted).unwrap() as f64;
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    match function {
        ReductionFunction::Sum => sum,
        ReductionFunction::Prod => values.iter().product(),
        ReductionFunction::Max => most,
        ReductionFunction::Min => least,
        ReductionFunction::Any => truth(values.iter().any(|value| *value != 0.0)),
        ReductionFunction::All => truth(values.iter().all(|value| *value != 0.0)),
        ReductionFunction::Count => values.iter().filter(|value| **value != 0.0).count() as f64,
        ReductionFunction::Mean => sum / count,
        ReductionFunction::Var => {
            let squares: f64 = values.iter().map(|value| (value - sum / count).powi(2)).sum();
            squares / (count - ddof as f64).max(0.0)
        }
        ReductionFunction::ArgMax => first(most),
        ReductionFunction::ArgMin => first(least),
    }
}

/// Whether a function makes whole numbers of whole numbers, so that the order of what follows does not matter.
pub(crate) const fn stays_whole(function: UnaryFunction) -> bool {
    matches!(function, UnaryFunction::Neg | UnaryFunction::Abs | UnaryFunction::Relu | UnaryFunction::Not)
}
