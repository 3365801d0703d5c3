//! Graphs that are made of choices. What the choices say is always a graph that numpy would compute.
//!
//! Numbers are whole, or halves of them, and few functions are applied before the last one, so that no order of sums rounds
//! otherwise: results are compared bit by bit wherever a function is not itself inexact.

use std::collections::BTreeMap;

use tripod_tile::{
    AxisIndex, BinaryFunction, Chunking, Content, DType, Declared, Helpers, Operand, Operator, Reason,
    ReductionFunction, Scalar, Tileable, TileableGraph, UnaryFunction, tile,
};

use crate::choices::Choices;
use crate::dense::{Dense, all, broadcast_shape};
use crate::direct::{compute, stays_whole};

/// A graph, and what it needs and makes.
pub(crate) struct Built {
    pub(crate) graph: TileableGraph,
    /// Of each tileable.
    pub(crate) results: Vec<Dense>,
    /// Chunks that are there.
    pub(crate) chunks: BTreeMap<String, Dense>,
    /// Operators that were left out, because only execution tells an extent that they need.
    pub(crate) unknown: usize,
    wholes: BTreeMap<String, Dense>,
}

const DTYPES: [DType; 5] = [DType::I64, DType::F64, DType::Bool, DType::I32, DType::F32];

/// The graph of some choices.
pub(crate) fn build(bytes: &[u8]) -> Built {
    let mut choices = Choices(bytes);
    let mut built = Built {
        graph: TileableGraph::default(),
        results: Vec::new(),
        chunks: BTreeMap::new(),
        unknown: 0,
        wholes: BTreeMap::new(),
    };
    for _ in 0..=choices.below(3) {
        source(&mut built, &mut choices);
    }
    for _ in 0..=choices.below(7) {
        operate(&mut built, &mut choices);
    }
    last(&mut built, &mut choices);
    built
}

impl Built {
    /// Adds a tileable, unless tiling refuses it for an extent that only execution tells.
    fn add(&mut self, operator: Operator, inputs: &[usize], data: Vec<u8>) -> usize {
        let name = |place: &usize| format!("t{place}").as_str().into();
        let mut tileable = Tileable {
            key: name(&self.results.len()),
            operator,
            inputs: inputs.iter().map(name).collect(),
            data,
            declared: None,
        };
        let arrays: Vec<Dense> = inputs.iter().map(|input| self.results[*input].clone()).collect();
        let result = compute(&tileable, &arrays, &self.wholes);
        let shape = result.shape.iter().map(|extent| Some(*extent as u64)).collect();
        tileable.declared = Some(Declared { shape, dtype: result.dtype });
        self.graph.tileables.push(tileable);
        match tile(&self.graph, Helpers::Refused) {
            Ok(_) => self.results.push(result),
            Err(refusal) if matches!(refusal.reason, Reason::Unknown { .. }) => {
                self.unknown += 1;
                self.graph.tileables.pop();
                return self.results.len() - 1;
            }
            Err(refusal) => panic!("{refusal}: {:#?}", self.graph),
        }
        self.results.len() - 1
    }

    fn shape(&self, place: usize) -> &[usize] {
        &self.results[place].shape
    }
}

fn numbers(choices: &mut Choices<'_>, shape: &[u64], dtype: DType) -> Dense {
    let (salt, step) = (choices.below(7), choices.of(&[1, 2, 3, 5]));
    let shape: Vec<usize> = shape.iter().map(|extent| usize::try_from(*extent).unwrap()).collect();
    let mut at = salt;
    Dense::from_fn(&shape, dtype, |_| {
        at += step;
        (at % 7) as f64 - 3.0
    })
}

fn source(built: &mut Built, choices: &mut Choices<'_>) {
    let dtype = choices.of(&DTYPES);
    let shape = choices.shape();
    let chunks = choices.chunking(&shape);
    let operator = match choices.below(8) {
        0 => Operator::Full { value: choices.scalar(), shape, dtype, chunks },
        1 => Operator::Ones { shape, dtype, chunks },
        2 => {
            let (rows, columns) = (choices.below(6) as u64, choices.below(6) as u64);
            let chunks = choices.chunking(&[rows, columns]);
            Operator::Eye { rows, columns, diagonal: choices.signed(3), dtype, chunks }
        }
        3 => {
            let (start, stop, step) = (choices.signed(9), choices.signed(9), choices.of(&[1, -1, 2, 3, -4]));
            let [start, stop, step] = [start, stop, step].map(Scalar::Int);
            let dtype = choices.of(&[DType::I64, DType::I32, DType::F64]);
            Operator::Arange { start, stop, step, dtype, chunks: Chunking::Size(1 + choices.below(4) as u64) }
        }
        4 => {
            let num = choices.below(7) as u64;
            let stop = Scalar::Float(num as f64 - 1.0);
            let chunks = Chunking::Size(1 + choices.below(4) as u64);
            Operator::Linspace { start: Scalar::Int(0), stop, num, endpoint: num != 0, chunks }
        }
        5 => return fetched(built, choices, &shape, dtype),
        _ => {
            let data = numbers(choices, &shape, dtype).to_bytes();
            built.add(Operator::FromBytes { shape, dtype, chunks }, &[], data);
            return;
        }
    };
    built.add(operator, &[], Vec::new());
}

/// Chunks that are there, some of which have no elements, and of some of which it is not told how long they are.
fn fetched(built: &mut Built, choices: &mut Choices<'_>, shape: &[u64], dtype: DType) {
    let whole = numbers(choices, shape, dtype);
    let parts: Vec<Vec<u64>> = shape.iter().map(|extent| choices.parts(*extent, true)).collect();
    let counts: Vec<usize> = parts.iter().map(Vec::len).collect();
    let name = format!("stored{}", built.results.len());
    let mut keys = Vec::new();
    for index in all(&counts) {
        let places = index.iter().zip(&parts).map(|(part, parts)| {
            let begin: u64 = parts[..*part].iter().sum();
            (begin..begin + parts[*part]).map(|at| usize::try_from(at).unwrap()).collect()
        });
        let key = format!("{name}:{}", keys.len());
        built.chunks.insert(key.clone(), whole.pick(&places.collect::<Vec<_>>()));
        keys.push(key);
    }
    built.wholes.insert(keys[0].clone(), whole);
    let mut told = |parts: Vec<u64>| {
        let is_told = choices.below(4) > 0;
        parts.into_iter().map(|part| (is_told || choices.below(2) == 0).then_some(part)).collect()
    };
    let splits = parts.into_iter().map(&mut told).collect();
    built.add(Operator::Fetch { content: Content::Tensor(dtype), splits, chunks: keys }, &[], Vec::new());
}

fn operate(built: &mut Built, choices: &mut Choices<'_>) {
    let first = built.results.len() - 1 - choices.below(built.results.len().min(3));
    let dims = built.shape(first).len();
    let none = Vec::new();
    match choices.below(18) {
        0 | 1 => binary(built, choices, first),
        2 => {
            let functions = [UnaryFunction::Not, UnaryFunction::Abs, UnaryFunction::Neg, UnaryFunction::Relu];
            let function = choices.of(&functions);
            let is_possible = function.result(built.results[first].dtype).is_some();
            let function = if is_possible && stays_whole(function) { function } else { UnaryFunction::Not };
            built.add(Operator::Unary { function }, &[first], none);
        }
        3 => {
            built.add(Operator::Cast { dtype: choices.of(&DTYPES) }, &[first], none);
        }
        4 | 5 => {
            let index = index(built, choices, first);
            built.add(Operator::Slice { index }, &[first], none);
        }
        6 => set_item(built, choices, first),
        7 => choose(built, choices, first),
        8 if dims > 0 => take(built, choices, first),
        9 if dims > 0 => compress(built, choices, first),
        10 if dims > 0 => {
            let sections = 1 + choices.below(4) as u64;
            let part = choices.below(usize::try_from(sections).unwrap()) as u64;
            let axis = axis(choices, dims);
            built.add(Operator::Split { sections, part, axis }, &[first], none);
        }
        11 if dims > 0 => {
            let axis = axis(choices, dims);
            let inputs = like(built, choices, first);
            built.add(Operator::Concat { axis }, &inputs, none);
        }
        12 if dims < 4 => {
            let axis = axis(choices, dims + 1);
            let inputs = like(built, choices, first);
            built.add(Operator::Stack { axis }, &inputs, none);
        }
        13 => {
            let mut axes: Vec<i64> = (0..i64::try_from(dims).unwrap()).collect();
            for at in (1..dims).rev() {
                axes.swap(at, choices.below(at + 1));
            }
            built.add(Operator::Transpose { axes }, &[first], none);
        }
        14 if dims < 4 => {
            let axis = axis(choices, dims + 1);
            built.add(Operator::ExpandDims { axis }, &[first], none);
        }
        15 => reshape(built, choices, first),
        16 => {
            let shape: Vec<u64> = built.shape(first).iter().map(|extent| *extent as u64).collect();
            let chunks = choices.chunking(&shape);
            built.add(Operator::Rechunk { chunks }, &[first], none);
        }
        _ => matmul_or_reduce(built, choices, first),
    }
}

fn axis(choices: &mut Choices<'_>, dims: usize) -> i64 {
    let axis = i64::try_from(choices.below(dims)).unwrap();
    if choices.below(3) == 0 { axis - i64::try_from(dims).unwrap() } else { axis }
}

fn binary(built: &mut Built, choices: &mut Choices<'_>, first: usize) {
    let functions = [
        BinaryFunction::Add,
        BinaryFunction::Mul,
        BinaryFunction::Sub,
        BinaryFunction::Max,
        BinaryFunction::Min,
        BinaryFunction::Eq,
        BinaryFunction::Ne,
        BinaryFunction::Lt,
        BinaryFunction::Le,
        BinaryFunction::Gt,
        BinaryFunction::Ge,
        BinaryFunction::And,
        BinaryFunction::Or,
    ];
    let mut function = choices.of(&functions);
    let dtype = built.results[first].dtype;
    let (left, right, inputs, common) = if choices.below(3) == 0 {
        let scalar = choices.scalar();
        let common = dtype.with_scalar(scalar).unwrap();
        let scalar = Operand::Scalar(scalar);
        let swapped = choices.below(2) == 1;
        let (left, right) = if swapped { (scalar, Operand::Input) } else { (Operand::Input, scalar) };
        (left, right, vec![first], common)
    } else {
        let second = partner(built, choices, first);
        let common = dtype.promote(built.results[second].dtype);
        (Operand::Input, Operand::Input, vec![first, second], common)
    };
    if function.result(common).is_none() {
        function = BinaryFunction::Add;
    }
    built.add(Operator::Binary { function, left, right }, &inputs, Vec::new());
}

/// Something that goes together with it.
fn partner(built: &Built, choices: &mut Choices<'_>, first: usize) -> usize {
    let goes = |other: &usize| {
        broadcast_shape(&[&built.results[first], &built.results[*other]])
            .is_some_and(|shape| shape.len() <= 4)
    };
    let fitting: Vec<usize> = (0..built.results.len()).filter(goes).collect();
    choices.of(&fitting)
}

/// Several of the same shape.
fn like(built: &Built, choices: &mut Choices<'_>, first: usize) -> Vec<usize> {
    let same = |other: &usize| built.shape(*other) == built.shape(first);
    let fitting: Vec<usize> = (0..built.results.len()).filter(same).collect();
    let more = choices.below(3);
    let mut inputs = vec![first];
    inputs.extend((0..more).map(|_| choices.of(&fitting)));
    inputs
}

fn index(built: &Built, choices: &mut Choices<'_>, first: usize) -> Vec<AxisIndex> {
    let shape = built.shape(first).to_vec();
    let named = choices.below(shape.len() + 1);
    let axis = |extent: &usize| match choices.below(5) {
        0 if *extent > 0 => AxisIndex::At(axis(choices, *extent)),
        1 => AxisIndex::ALL,
        _ => choices.slice(),
    };
    shape[..named].iter().map(axis).collect()
}

fn set_item(built: &mut Built, choices: &mut Choices<'_>, first: usize) {
    let index = index(built, choices, first);
    if choices.below(2) == 0 {
        let value = Operand::Scalar(choices.scalar());
        built.add(Operator::SetItem { index, value }, &[first], Vec::new());
        return;
    }
    // The same part of something of the same shape; its last axis may become one element.
    let others = like(built, choices, first);
    let other = others[others.len() - 1];
    let before = built.results.len();
    let mut part = built.add(Operator::Slice { index: index.clone() }, &[other], Vec::new());
    if built.results.len() == before {
        return;
    }
    if choices.below(2) == 0 && !built.shape(part).is_empty() {
        let one = Operator::Reduce {
            function: ReductionFunction::Sum,
            axes: Some(vec![-1]),
            keepdims: choices.below(2) == 0,
            ddof: 0,
        };
        let summed = built.add(one, &[part], Vec::new());
        // Without the axis it may not go together with what is picked any more.
        let wanted = broadcast_shape(&[&built.results[part], &built.results[summed]]);
        if wanted.as_deref() == Some(built.shape(part)) {
            part = summed;
        }
    }
    built.add(Operator::SetItem { index, value: Operand::Input }, &[first, part], Vec::new());
}

fn choose(built: &mut Built, choices: &mut Choices<'_>, first: usize) {
    let condition = partner(built, choices, first);
    let shape = broadcast_shape(&[&built.results[condition], &built.results[first]]).unwrap();
    let all_fit = |other: &usize| {
        broadcast_shape(&[&built.results[condition], &built.results[first], &built.results[*other]])
            .is_some_and(|both| both.len() <= 4 && shape.len() <= 4)
    };
    let fitting: Vec<usize> = (0..built.results.len()).filter(all_fit).collect();
    let other = choices.of(&fitting);
    let operator = Operator::Where { yes: Operand::Input, no: Operand::Input };
    built.add(operator, &[condition, first, other], Vec::new());
}

fn take(built: &mut Built, choices: &mut Choices<'_>, first: usize) {
    let axis = axis(choices, built.shape(first).len());
    let extent = built.shape(first)[crate::direct::axis_of(axis, built.shape(first).len())];
    let count = if extent == 0 { 0 } else { choices.below(9) };
    let indices = (0..count).map(|_| self::axis(choices, extent)).collect();
    built.add(Operator::Take { indices, axis }, &[first], Vec::new());
}

/// By a mask of its own; sometimes two by the same one, which then go together.
fn compress(built: &mut Built, choices: &mut Choices<'_>, first: usize) {
    let dims = built.shape(first).len();
    let axis = axis(choices, dims);
    let extent = built.shape(first)[crate::direct::axis_of(axis, dims)] as u64;
    let data = numbers(choices, &[extent], DType::Bool).to_bytes();
    let chunks = choices.chunking(&[extent]);
    let mask = built.add(Operator::FromBytes { shape: vec![extent], dtype: DType::Bool, chunks }, &[], data);
    let before = built.results.len();
    let kept = built.add(Operator::Compress { axis }, &[first, mask], Vec::new());
    if built.results.len() > before && choices.below(2) == 0 {
        let others = like(built, choices, first);
        let before = built.results.len();
        let other = built.add(Operator::Compress { axis }, &[others[others.len() - 1], mask], Vec::new());
        if built.results.len() > before {
            let operator = Operator::Binary {
                function: BinaryFunction::Add,
                left: Operand::Input,
                right: Operand::Input,
            };
            built.add(operator, &[kept, other], Vec::new());
        }
    }
}

fn reshape(built: &mut Built, choices: &mut Choices<'_>, first: usize) {
    let mut left = built.results[first].data.len();
    let mut shape: Vec<i64> = Vec::new();
    if left == 0 {
        shape = choices.of(&[&[0][..], &[2, 0], &[0, 3]]).to_vec();
    } else {
        for _ in 0..choices.below(3) {
            let divisors: Vec<usize> = (1..=left).filter(|divisor| left.is_multiple_of(*divisor)).collect();
            let extent = choices.of(&divisors);
            left /= extent;
            shape.push(i64::try_from(extent).unwrap());
        }
        shape.push(if choices.below(2) == 0 { -1 } else { i64::try_from(left).unwrap() });
    }
    built.add(Operator::Reshape { shape }, &[first], Vec::new());
}

fn matmul_or_reduce(built: &mut Built, choices: &mut Choices<'_>, first: usize) {
    let is_matrix = |place: &usize| (1..=2).contains(&built.shape(*place).len());
    let inner = built.shape(first).last().copied();
    let fits = |place: &usize| is_matrix(place) && Some(built.shape(*place)[0]) == inner;
    let fitting: Vec<usize> = (0..built.results.len()).filter(fits).collect();
    if is_matrix(&first) && !fitting.is_empty() && choices.below(2) == 0 {
        let second = choices.of(&fitting);
        built.add(Operator::Matmul, &[first, second], Vec::new());
        return;
    }
    let exact = [
        ReductionFunction::Sum,
        ReductionFunction::Max,
        ReductionFunction::Min,
        ReductionFunction::Any,
        ReductionFunction::All,
        ReductionFunction::Count,
        ReductionFunction::ArgMax,
        ReductionFunction::ArgMin,
    ];
    let function = choices.of(&exact);
    reduce(built, choices, first, function);
}

fn reduce(built: &mut Built, choices: &mut Choices<'_>, first: usize, function: ReductionFunction) {
    let shape = built.shape(first).to_vec();
    let axes: Option<Vec<i64>> = if shape.is_empty() || choices.below(3) == 0 {
        None
    } else if function.is_place() {
        Some(vec![axis(choices, shape.len())])
    } else {
        let some = (0..shape.len()).filter(|_| choices.below(2) == 0);
        Some(some.map(|axis| i64::try_from(axis).unwrap()).collect())
    };
    // Numpy refuses to find something among nothing.
    let function =
        if shape.contains(&0) && !function.has_identity() { ReductionFunction::Sum } else { function };
    let keepdims = choices.below(3) == 0;
    let ddof = if function == ReductionFunction::Var { choices.below(2) as u64 } else { 0 };
    built.add(Operator::Reduce { function, axes, keepdims, ddof }, &[first], Vec::new());
}

/// Something inexact, of which nothing else is made.
fn last(built: &mut Built, choices: &mut Choices<'_>) {
    let first = built.results.len() - 1;
    let functions =
        [ReductionFunction::Sum, ReductionFunction::Mean, ReductionFunction::Var, ReductionFunction::Prod];
    match choices.below(3) {
        0 => {}
        1 => {
            let function = choices.of(&functions);
            reduce(built, choices, first, function);
        }
        _ => {
            let functions =
                [UnaryFunction::Sqrt, UnaryFunction::Exp, UnaryFunction::Tanh, UnaryFunction::Sigmoid];
            let function = choices.of(&functions);
            if function.result(built.results[first].dtype).is_some() {
                built.add(Operator::Unary { function }, &[first], Vec::new());
            }
        }
    }
}
