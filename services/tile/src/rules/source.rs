//! Tensors that are made of nothing: one chunk for each cell of how they are cut.

use crate::builder::{Builder, Draft, Part};
use crate::chunk::{ChunkOperator, Content};
use crate::dtype::DType;
use crate::extent::{Extent, Measure, Unknown};
use crate::index::Parts;
use crate::limits::{BYTES_MAX, CHUNK_KEY_BYTES_MAX, DIMS_MAX};
use crate::operator::{Chunking, Operator};
use crate::refusal::Reason;
use crate::scalar::Scalar;
use crate::splits::{Splits, indexes};
use crate::tiled::Tiled;

pub(super) fn source(builder: &mut Builder, operator: &Operator, data: &[u8]) -> Result<Tiled, Reason> {
    match operator {
        Operator::Full { value, shape, dtype, chunks } => {
            check_value(*value, *dtype)?;
            full(builder, *value, shape, *dtype, chunks)
        }
        Operator::Zeros { shape, dtype, chunks } => full(builder, Scalar::Int(0), shape, *dtype, chunks),
        Operator::Ones { shape, dtype, chunks } => full(builder, Scalar::Int(1), shape, *dtype, chunks),
        Operator::Eye { rows, columns, diagonal, dtype, chunks } => {
            eye(builder, [*rows, *columns], *diagonal, *dtype, chunks)
        }
        Operator::Arange { start, stop, step, dtype, chunks } => {
            arange(builder, [*start, *stop, *step], *dtype, chunks)
        }
        Operator::Linspace { start, stop, num, endpoint, chunks } => {
            linspace(builder, *start, *stop, (*num, *endpoint), chunks)
        }
        Operator::RandUniform { seed, low, high, shape, dtype, chunks } => {
            let (seed, low, high) = (*seed, *low, *high);
            let operator = |stream| ChunkOperator::RandUniform { seed, stream, low, high };
            random(builder, shape, *dtype, chunks, operator)
        }
        Operator::RandNormal { seed, mean, deviation, shape, dtype, chunks } => {
            let (seed, mean, deviation) = (*seed, *mean, *deviation);
            let operator = |stream| ChunkOperator::RandNormal { seed, stream, mean, deviation };
            random(builder, shape, *dtype, chunks, operator)
        }
        Operator::FromBytes { shape, dtype, chunks } => from_bytes(builder, data, shape, *dtype, chunks),
        Operator::Fetch { content, splits, chunks } => fetch(builder, content, splits, chunks),
        _ => Err(Reason::Value("an operator with inputs is no source")),
    }
}

/// Whether elements of a type can hold a number; fractions lose what is behind the point, as in numpy.
pub(super) fn check_value(value: Scalar, dtype: DType) -> Result<(), Reason> {
    let fits = match (value, dtype) {
        (Scalar::Int(_), DType::I32) => dtype.with_scalar(value).is_some(),
        (Scalar::Float(value), DType::I32) => value.abs() <= f64::from(i32::MAX),
        // 2^63 itself is beyond, and no fraction of 64 bits lies between it and what is within.
        (Scalar::Float(value), DType::I64) => value.abs() < 9_223_372_036_854_775_808.0,
        _ => true,
    };
    if fits { Ok(()) } else { Err(Reason::ScalarRange(dtype)) }
}

/// A chunk for each index, made by what `make` says of its number, its index and where it begins.
fn chunks(
    builder: &mut Builder,
    splits: Splits,
    dtype: DType,
    mut make: impl FnMut(u64, &[u64], &[Extent]) -> (ChunkOperator, Vec<u8>),
) -> Result<Tiled, Reason> {
    let parts: Vec<Parts> =
        (0..splits.dims()).map(|axis| Parts::new(splits.known(axis).unwrap_or_default())).collect();
    let mut made = Vec::new();
    for (number, index) in (0_u64..).zip(builder.grid(&splits)?) {
        let begins: Vec<u64> = parts.iter().zip(&index).map(|(parts, part)| parts.begin(*part)).collect();
        let (operator, data) = make(number, &begins, &splits.extents(&index));
        let draft = Draft::new(operator, Vec::new(), &Content::Tensor(dtype)).at(&index, &splits);
        made.push(builder.add(Part::Output, draft.with_data(data))?);
    }
    Ok(Tiled::tensor(dtype, splits, made))
}

fn full(
    builder: &mut Builder,
    value: Scalar,
    shape: &[u64],
    dtype: DType,
    chunking: &Chunking,
) -> Result<Tiled, Reason> {
    let splits = chunking.resolve(shape, dtype)?;
    chunks(builder, splits, dtype, |_, _, _| (ChunkOperator::Full { value }, Vec::new()))
}

fn eye(
    builder: &mut Builder,
    shape: [u64; 2],
    diagonal: i64,
    dtype: DType,
    chunking: &Chunking,
) -> Result<Tiled, Reason> {
    let splits = chunking.resolve(&shape, dtype)?;
    chunks(builder, splits, dtype, |_, begins, _| {
        // Row `r` of the chunk is row `r + begins[0]` of the whole. A diagonal beyond the whole stays beyond its chunks.
        let begin = |axis: usize| i64::try_from(begins[axis]).unwrap_or(i64::MAX);
        let diagonal = diagonal.saturating_add(begin(0)).saturating_sub(begin(1));
        (ChunkOperator::Eye { diagonal }, Vec::new())
    })
}

fn arange(
    builder: &mut Builder,
    [start, stop, step]: [Scalar; 3],
    dtype: DType,
    chunking: &Chunking,
) -> Result<Tiled, Reason> {
    let (count, delta) = match dtype {
        DType::I32 | DType::I64 => (whole_steps(start, stop, step, dtype)?, step),
        DType::F64 => {
            let (start, stop, step) = (start.as_float(), stop.as_float(), step.as_float());
            // As numpy does, which fills from the difference of the first two elements.
            (fraction_steps(start, stop, step)?, Scalar::Float(start + step - start))
        }
        DType::Bool | DType::F32 => return Err(Reason::DType(dtype)),
    };
    let start = if dtype == DType::F64 { Scalar::Float(start.as_float()) } else { start };
    let splits = chunking.resolve(&[count], dtype)?;
    chunks(builder, splits, dtype, |_, begins, _| {
        (ChunkOperator::Arange { start, delta, offset: begins[0] }, Vec::new())
    })
}

fn whole_steps(start: Scalar, stop: Scalar, step: Scalar, dtype: DType) -> Result<u64, Reason> {
    let (Scalar::Int(first), Scalar::Int(stop), Scalar::Int(step)) = (start, stop, step) else {
        return Err(Reason::Value("a range of whole numbers has whole bounds and steps"));
    };
    let (first, span, step) = (i128::from(first), i128::from(stop) - i128::from(first), i128::from(step));
    if step == 0 {
        return Err(Reason::Step);
    }
    if span == 0 || (span > 0) != (step > 0) {
        return Ok(0);
    }
    let count = (span.abs() - 1) / step.abs() + 1;
    let last = i64::try_from(first + (count - 1) * step).map_err(|_| Reason::ScalarRange(dtype))?;
    check_value(start, dtype)?;
    check_value(Scalar::Int(last), dtype)?;
    u64::try_from(count).map_err(|_| Reason::ScalarRange(dtype))
}

fn fraction_steps(start: f64, stop: f64, step: f64) -> Result<u64, Reason> {
    if step == 0.0 {
        return Err(Reason::Step);
    }
    let count = ((stop - start) / step).ceil();
    if !count.is_finite() {
        return Err(Reason::Value("a range of fractions has finite bounds"));
    }
    if count <= 0.0 {
        return Ok(0);
    }
    // Larger than any shape may be, and still a whole number.
    if count > 1e18 {
        return Err(Reason::TooLarge { shape: vec![u64::MAX] });
    }
    Ok(count as u64)
}

fn linspace(
    builder: &mut Builder,
    start: Scalar,
    stop: Scalar,
    (num, endpoint): (u64, bool),
    chunking: &Chunking,
) -> Result<Tiled, Reason> {
    let dtype = DType::F64;
    let splits = chunking.resolve(&[num], dtype)?;
    let (first, end) = (start.as_float(), stop.as_float());
    let gaps = if endpoint { num.saturating_sub(1) } else { num };
    let step = if gaps == 0 { 0.0 } else { (end - first) / gaps as f64 };
    let last = (endpoint && num > 1).then_some(Scalar::Float(end));
    let (start, step) = (Scalar::Float(first), Scalar::Float(step));
    chunks(builder, splits, dtype, |_, begins, _| {
        (ChunkOperator::Linspace { start, step, last, num, offset: begins[0] }, Vec::new())
    })
}

fn random(
    builder: &mut Builder,
    shape: &[u64],
    dtype: DType,
    chunking: &Chunking,
    operator: impl Fn(u64) -> ChunkOperator,
) -> Result<Tiled, Reason> {
    if !dtype.is_float() {
        return Err(Reason::DType(dtype));
    }
    let splits = chunking.resolve(shape, dtype)?;
    chunks(builder, splits, dtype, |number, _, _| (operator(number), Vec::new()))
}

fn from_bytes(
    builder: &mut Builder,
    data: &[u8],
    shape: &[u64],
    dtype: DType,
    chunking: &Chunking,
) -> Result<Tiled, Reason> {
    let splits = chunking.resolve(shape, dtype)?;
    let wanted = shape.iter().fold(dtype.bytes(), |bytes, extent| bytes.saturating_mul(*extent));
    let is = data.len() as u64;
    if is != wanted {
        return Err(Reason::DataBytes { is, wanted });
    }
    chunks(builder, splits, dtype, |_, begins, extents| {
        (ChunkOperator::FromBytes, cut_bytes(data, shape, begins, extents, dtype))
    })
}

/// The elements of one chunk, from those of the whole. All that is there is in memory, so its numbers fit.
fn cut_bytes(data: &[u8], shape: &[u64], begins: &[u64], extents: &[Extent], dtype: DType) -> Vec<u8> {
    let fit = |number: u64| usize::try_from(number).expect("no larger than the data");
    let extents: Vec<usize> = extents.iter().map(|extent| fit(extent.known().unwrap_or(0))).collect();
    let width = fit(dtype.bytes());
    let (rows, run) = match extents.split_last() {
        Some((run, rows)) => (rows, *run),
        None => (&extents[..], 1),
    };
    let mut cut = Vec::with_capacity(extents.iter().product::<usize>() * width);
    if run == 0 {
        return cut;
    }
    for row in indexes(rows) {
        let mut first = 0;
        for (axis, extent) in shape.iter().enumerate() {
            first = first * fit(*extent) + fit(begins[axis]) + row.get(axis).copied().unwrap_or(0);
        }
        cut.extend_from_slice(&data[first * width..(first + run) * width]);
    }
    cut
}

fn fetch(
    builder: &mut Builder,
    content: &Content,
    told: &[Vec<Option<u64>>],
    keys: &[String],
) -> Result<Tiled, Reason> {
    let dims_fit = match content {
        Content::Tensor(_) => told.len() <= DIMS_MAX,
        Content::Frame(columns) => {
            super::frame::check_columns(columns)?;
            told.len() == 1
        }
        Content::Partial => return Err(Reason::Value("partial results are not fetched")),
    };
    if !dims_fit {
        return Err(Reason::Dims { dims: told.len() });
    }
    if told.iter().any(Vec::is_empty) {
        return Err(Reason::Chunking("an axis without parts".to_owned()));
    }
    let sum = |parts: &Vec<Option<u64>>| {
        parts.iter().flatten().try_fold(0_u64, |sum, part| sum.checked_add(*part)).unwrap_or(u64::MAX)
    };
    if told.iter().any(|parts| sum(parts) > BYTES_MAX) {
        return Err(Reason::TooLarge { shape: told.iter().map(sum).collect() });
    }
    if let Some(key) = keys.iter().find(|key| key.is_empty() || key.len() > CHUNK_KEY_BYTES_MAX) {
        return Err(Reason::Text { bytes: key.len(), most: CHUNK_KEY_BYTES_MAX });
    }
    let splits = told_splits(builder.place(), told);
    let indexes = builder.grid(&splits)?;
    if splits.counts().iter().product::<usize>() != keys.len() {
        return Err(Reason::Chunking(format!("{} keys for {:?} parts", keys.len(), splits.counts())));
    }
    let mut chunks = Vec::with_capacity(keys.len());
    for (index, key) in indexes.zip(keys) {
        let operator = ChunkOperator::Fetch { chunk: key.clone() };
        chunks
            .push(builder.add(Part::Output, Draft::new(operator, Vec::new(), content).at(&index, &splits))?);
    }
    Ok(Tiled { content: content.clone(), splits, chunks })
}

/// Extents that nobody knows are called by the tileable that fetches them.
fn told_splits(tileable: usize, told: &[Vec<Option<u64>>]) -> Splits {
    let extent = |axis, part, extent: &Option<u64>| {
        let unknown = Unknown { tileable, axis, part, measure: Measure::Extent };
        extent.map_or(Extent::Unknown(unknown), Extent::Known)
    };
    let parts = |(axis, parts): (usize, &Vec<Option<u64>>)| {
        parts.iter().enumerate().map(|(part, told)| extent(axis, part, told)).collect()
    };
    Splits(told.iter().enumerate().map(parts).collect())
}
