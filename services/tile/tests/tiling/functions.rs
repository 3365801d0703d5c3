//! Functions of elements, as both ways to compute a graph apply them.

use tripod_tile::{BinaryFunction, DType, Operand, Scalar, UnaryFunction};

use crate::dense::{Dense, broadcast_shape, hold};

pub(crate) fn unary(function: UnaryFunction, value: f64) -> f64 {
    match function {
        UnaryFunction::Neg => -value,
        UnaryFunction::Abs => value.abs(),
        UnaryFunction::Sqrt => value.sqrt(),
        UnaryFunction::Exp => value.exp(),
        UnaryFunction::Log => value.ln(),
        UnaryFunction::Tanh => value.tanh(),
        UnaryFunction::Sigmoid => 1.0 / (1.0 + (-value).exp()),
        UnaryFunction::Relu => value.max(0.0),
        UnaryFunction::Not => truth(value == 0.0),
    }
}

fn truth(value: bool) -> f64 {
    f64::from(u8::from(value))
}

fn binary(function: BinaryFunction, left: f64, right: f64) -> f64 {
    match function {
        BinaryFunction::Add => left + right,
        BinaryFunction::Sub => left - right,
        BinaryFunction::Mul => left * right,
        BinaryFunction::Div => left / right,
        BinaryFunction::FloorDiv => (left / right).floor(),
        BinaryFunction::Mod => left - right * (left / right).floor(),
        BinaryFunction::Pow => left.powf(right),
        BinaryFunction::Max => left.max(right),
        BinaryFunction::Min => left.min(right),
        BinaryFunction::Eq => truth(left == right),
        BinaryFunction::Ne => truth(left != right),
        BinaryFunction::Lt => truth(left < right),
        BinaryFunction::Le => truth(left <= right),
        BinaryFunction::Gt => truth(left > right),
        BinaryFunction::Ge => truth(left >= right),
        BinaryFunction::And => truth(left != 0.0 && right != 0.0),
        BinaryFunction::Or => truth(left != 0.0 || right != 0.0),
    }
}

fn scalar(scalar: Scalar) -> Dense {
    let dtype = match scalar {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::I64,
        Scalar::Float(_) => DType::F64,
    };
    Dense { shape: Vec::new(), dtype, data: vec![scalar.as_float()] }
}

/// The operands, with numbers as arrays of no axes.
pub(crate) fn operands(inputs: &[Dense], operands: &[Operand]) -> Vec<Dense> {
    let mut inputs = inputs.iter().cloned();
    let operand = |operand: &Operand| match operand {
        Operand::Input => inputs.next().unwrap(),
        Operand::Scalar(value) => scalar(*value),
    };
    operands.iter().map(operand).collect()
}

/// The type that a function of two operands computes in.
fn common(inputs: &[Dense], operands: &[Operand]) -> DType {
    let arrays = inputs.iter().map(|input| input.dtype).reduce(DType::promote).unwrap();
    operands.iter().fold(arrays, |common, operand| match operand {
        Operand::Input => common,
        Operand::Scalar(scalar) => common.with_scalar(*scalar).unwrap(),
    })
}

pub(crate) fn apply_binary(inputs: &[Dense], function: BinaryFunction, sides: [Operand; 2]) -> Dense {
    let common = common(inputs, &sides);
    let both = operands(inputs, &sides);
    let shape = broadcast_shape(&[&both[0], &both[1]]).unwrap();
    Dense::from_fn(&shape, function.result(common).unwrap(), |index| {
        let side = |array: &Dense| hold(common, array.broadcast(index));
        binary(function, side(&both[0]), side(&both[1]))
    })
}

pub(crate) fn apply_where(inputs: &[Dense], dtype: DType, sides: [Operand; 2]) -> Dense {
    let both = operands(&inputs[1..], &sides);
    let shape = broadcast_shape(&[&inputs[0], &both[0], &both[1]]).unwrap();
    Dense::from_fn(&shape, dtype, |index| {
        let chosen = if inputs[0].broadcast(index) != 0.0 { &both[0] } else { &both[1] };
        chosen.broadcast(index)
    })
}

/// A number for each element that a random chunk has, by its generator.
pub(crate) fn noise(seed: u64, stream: u64, at: usize) -> f64 {
    let mixed = (seed ^ (stream << 20) ^ at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed >> 40) % 1000) as f64
}
