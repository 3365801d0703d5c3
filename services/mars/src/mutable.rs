//! Definitions of tensors and frames that are written in place.

use tonic::Status;
use tripod_proto::mars::v1 as pb;
use tripod_proto::mars::v1::scalar::Value;

use crate::domain::{Column, Definition, Scalar, TileableKind, limits};
use crate::graph::number;
use crate::status;

/// Bytes of a chunk where the client says nothing of chunks: as tiling has it.
const CHUNK_BYTES_DEFAULT: u64 = tripod_tile::limits::CHUNK_BYTES_DEFAULT;

/// What a tensor is to be.
///
/// # Errors
/// What is said of it does not go together.
pub(crate) fn tensor(request: &pb::CreateMutableTensorRequest) -> Result<Definition, Status> {
    let dtype = dtype("dtype", request.dtype)?;
    if dtype == pb::ElementType::Text {
        return Err(status::invalid("dtype: texts are in columns of frames only"));
    }
    let shape = &request.shape;
    if shape.len() as u64 > limits::DIMS_MAX {
        return Err(status::too_many("axes of shape", shape.len(), as_usize(limits::DIMS_MAX)));
    }
    let elements = shape.iter().try_fold(1_u64, |elements, extent| elements.checked_mul((*extent).max(1)));
    if elements.is_none_or(|elements| elements > limits::MUTABLE_ELEMENTS_MAX) {
        let most = limits::MUTABLE_ELEMENTS_MAX;
        return Err(status::invalid(&format!("shape: {shape:?} has more than {most} elements")));
    }
    let nsplits = if request.nsplits.is_empty() {
        by_sizes(shape, &sizes(shape, &request.chunk_size, bytes(dtype))?)?
    } else {
        if !request.chunk_size.is_empty() {
            return Err(status::invalid("chunk_size: nsplits says already how it is cut"));
        }
        given(shape, &request.nsplits)?
    };
    Ok(Definition {
        kind: TileableKind::Tensor,
        element_type: number(dtype),
        columns: Vec::new(),
        defaults: vec![default("default_value", request.default_value.as_ref(), dtype)?],
        nsplits,
        replicas: request.replicas,
    })
}

/// What a frame is to be.
///
/// # Errors
/// What is said of it does not go together.
pub(crate) fn frame(request: &pb::CreateMutableDataFrameRequest) -> Result<Definition, Status> {
    let columns = &request.columns;
    if columns.is_empty() {
        return Err(status::invalid("columns: a frame has some"));
    }
    if columns.len() as u64 > limits::COLUMNS_MAX {
        return Err(status::too_many("columns", columns.len(), as_usize(limits::COLUMNS_MAX)));
    }
    let defaults = &request.default_values;
    if !defaults.is_empty() && defaults.len() != columns.len() {
        let (is, wanted) = (defaults.len(), columns.len());
        return Err(status::invalid(&format!(
            "default_values: {is} of them, and there are {wanted} columns"
        )));
    }
    let mut known = Vec::with_capacity(columns.len());
    let mut values = Vec::with_capacity(columns.len());
    for (place, column) in columns.iter().enumerate() {
        let field = format!("columns: {:?}", column.name.chars().take(64).collect::<String>());
        let dtype = dtype(&field, column.dtype)?;
        known.push(Column { name: column.name.clone(), element_type: number(dtype) });
        values.push(default(&field, defaults.get(place), dtype)?);
    }
    let rows = if request.chunk_rows == 0 { request.rows.max(1) } else { request.chunk_rows };
    Ok(Definition {
        kind: TileableKind::Frame,
        element_type: 0,
        columns: known,
        defaults: values,
        nsplits: by_sizes(&[request.rows], &[rows])?,
        replicas: request.replicas,
    })
}

fn dtype(field: &str, number: i32) -> Result<pb::ElementType, Status> {
    match pb::ElementType::try_from(number) {
        Ok(dtype) if dtype != pb::ElementType::Unspecified => Ok(dtype),
        _ => Err(status::invalid(&format!("{field}: {number} is no element type"))),
    }
}

fn as_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn bytes(dtype: pb::ElementType) -> u64 {
    match dtype {
        pb::ElementType::Bool => 1,
        pb::ElementType::I32 | pb::ElementType::F32 => 4,
        _ => 8,
    }
}

/// How long a chunk is along each axis.
fn sizes(shape: &[u64], asked: &[u64], bytes: u64) -> Result<Vec<u64>, Status> {
    let sizes = match asked {
        [] => default_sizes(shape, bytes),
        [all] => vec![*all; shape.len()],
        each if each.len() == shape.len() => each.to_vec(),
        each => {
            let (is, wanted) = (each.len(), shape.len());
            return Err(status::invalid(&format!(
                "chunk_size: {is} extents, and the shape has {wanted} axes"
            )));
        }
    };
    if sizes.contains(&0) {
        return Err(status::invalid("chunk_size: an extent of 0"));
    }
    Ok(sizes)
}

/// The longest axis is halved until a chunk is small enough.
fn default_sizes(shape: &[u64], bytes: u64) -> Vec<u64> {
    let mut sizes: Vec<u64> = shape.iter().map(|extent| (*extent).max(1)).collect();
    while sizes.iter().fold(bytes, |all, size| all.saturating_mul(*size)) > CHUNK_BYTES_DEFAULT {
        let Some(longest) = sizes.iter_mut().max().filter(|size| **size > 1) else { break };
        *longest = longest.div_ceil(2);
    }
    sizes
}

/// The parts of each axis. An axis without elements has one.
fn by_sizes(shape: &[u64], sizes: &[u64]) -> Result<Vec<Vec<u64>>, Status> {
    let counts = shape.iter().zip(sizes).map(|(extent, size)| extent.div_ceil(*size).max(1));
    check_chunks(counts)?;
    let parts = shape.iter().zip(sizes).map(|(extent, size)| {
        let whole = as_usize(extent / size);
        let mut parts = vec![*size; whole];
        let rest = extent % size;
        if rest > 0 || parts.is_empty() {
            parts.push(rest);
        }
        parts
    });
    Ok(parts.collect())
}

fn given(shape: &[u64], nsplits: &[pb::Extents]) -> Result<Vec<Vec<u64>>, Status> {
    if nsplits.len() != shape.len() {
        let (is, wanted) = (nsplits.len(), shape.len());
        return Err(status::invalid(&format!("nsplits: of {is} axes, and the shape has {wanted}")));
    }
    check_chunks(nsplits.iter().map(|axis| axis.extents.len() as u64))?;
    let axis = |(axis, (parts, extent)): (usize, (&pb::Extents, &u64))| {
        let wrong =
            || status::invalid(&format!("nsplits: the parts of axis {axis} are not {extent} together"));
        let parts: Option<Vec<u64>> = parts.extents.iter().map(|part| u64::try_from(*part).ok()).collect();
        let parts = parts.filter(|parts| !parts.is_empty()).ok_or_else(wrong)?;
        let sum = parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(*part));
        if sum == Some(*extent) { Ok(parts) } else { Err(wrong()) }
    };
    nsplits.iter().zip(shape).enumerate().map(axis).collect()
}

/// Looks at how many there would be before any is made.
fn check_chunks(mut counts: impl Iterator<Item = u64>) -> Result<(), Status> {
    let chunks = counts.try_fold(1_u64, u64::checked_mul);
    if chunks.is_some_and(|chunks| chunks <= limits::MUTABLE_CHUNKS_MAX) {
        return Ok(());
    }
    let most = limits::MUTABLE_CHUNKS_MAX;
    Err(status::invalid(&format!("chunk_size: more chunks than {most}; choose larger ones")))
}

/// What cells are that were not written; nothing said: 0, or no text.
fn default(field: &str, value: Option<&pb::Scalar>, dtype: pb::ElementType) -> Result<Scalar, Status> {
    use pb::ElementType as T;
    let value = value.and_then(|value| value.value.as_ref());
    let wrong = || status::invalid(&format!("{field}: the default value is none of its element type"));
    let fraction = |value: f64| Scalar::Fraction(value.to_bits());
    Ok(match (dtype, value) {
        (T::Bool, None) => Scalar::Boolean(false),
        (T::Bool, Some(Value::Boolean(value))) => Scalar::Boolean(*value),
        (T::I32 | T::I64, None) => Scalar::Integer(0),
        (T::I32 | T::I64, Some(Value::Boolean(value))) => Scalar::Integer((*value).into()),
        (T::I32, Some(Value::Integer(value))) => {
            Scalar::Integer(i32::try_from(*value).map_err(|_| wrong())?.into())
        }
        (T::I64, Some(Value::Integer(value))) => Scalar::Integer(*value),
        (T::F32 | T::F64, None) => fraction(0.0),
        (T::F32 | T::F64, Some(Value::Boolean(value))) => fraction(f64::from(u8::from(*value))),
        // As numpy does: rounded where it has more than 53 bits.
        (T::F32 | T::F64, Some(Value::Integer(value))) => fraction(*value as f64),
        (T::F32 | T::F64, Some(Value::Fraction(value))) => fraction(*value),
        (T::Text, None) => Scalar::Text(String::new()),
        (T::Text, Some(Value::Text(value))) if value.len() <= limits::TEXT_BYTES_MAX => {
            Scalar::Text(value.clone())
        }
        _ => return Err(wrong()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(shape: &[u64], chunk_size: &[u64]) -> pb::CreateMutableTensorRequest {
        pb::CreateMutableTensorRequest {
            shape: shape.to_vec(),
            dtype: pb::ElementType::F64.into(),
            chunk_size: chunk_size.to_vec(),
            ..Default::default()
        }
    }

    fn splits(shape: &[u64], chunk_size: &[u64]) -> Vec<Vec<u64>> {
        tensor(&asked(shape, chunk_size)).unwrap().nsplits
    }

    fn text(request: &pb::CreateMutableTensorRequest) -> String {
        tensor(request).unwrap_err().message().to_owned()
    }

    #[test]
    fn a_tensor_is_cut_by_one_extent_by_one_for_each_axis_or_by_itself() {
        assert_eq!(splits(&[5, 4], &[2]), [vec![2, 2, 1], vec![2, 2]]);
        assert_eq!(splits(&[5, 4], &[5, 3]), [vec![5], vec![3, 1]]);
        assert_eq!(splits(&[0, 3], &[2]), [vec![0], vec![2, 1]]);
        assert_eq!(splits(&[], &[]), Vec::<Vec<u64>>::new());
        assert_eq!(splits(&[1 << 24], &[]), [vec![1 << 23; 2]]);
        let mut given = asked(&[5], &[]);
        given.nsplits = vec![pb::Extents { extents: vec![1, 4] }];
        assert_eq!(tensor(&given).unwrap().nsplits, [vec![1, 4]]);
        given.nsplits = vec![pb::Extents { extents: vec![-1, 6] }];
        assert!(text(&given).contains("axis 0"));
    }

    #[test]
    fn what_does_not_go_together_is_refused_with_the_field() {
        assert!(text(&asked(&[4], &[1, 2])).starts_with("chunk_size: 2 extents"));
        assert!(text(&asked(&[4], &[0])).starts_with("chunk_size: an extent of 0"));
        assert!(text(&asked(&[1 << 40], &[1])).contains("more chunks than"));
        assert!(text(&asked(&[u64::MAX, 2], &[1])).starts_with("shape:"));
        assert!(text(&asked(&[1; 33], &[1])).starts_with("axes of shape"));
        let texts =
            pb::CreateMutableTensorRequest { dtype: pb::ElementType::Text.into(), ..asked(&[1], &[1]) };
        assert!(text(&texts).starts_with("dtype:"));
    }

    #[test]
    fn defaults_are_of_the_element_type() {
        let of = |dtype, value| default("d", Some(&pb::Scalar { value: Some(value) }), dtype);
        use pb::ElementType as T;
        assert_eq!(default("d", None, T::F32).unwrap(), Scalar::Fraction(0.0_f64.to_bits()));
        assert_eq!(of(T::F64, Value::Integer(3)).unwrap(), Scalar::Fraction(3.0_f64.to_bits()));
        assert_eq!(of(T::I64, Value::Integer(-3)).unwrap(), Scalar::Integer(-3));
        assert!(of(T::I32, Value::Integer(1 << 40)).is_err());
        assert!(of(T::I64, Value::Fraction(0.5)).is_err());
        assert!(of(T::Bool, Value::Integer(1)).is_err());
    }

    #[test]
    fn a_frame_has_a_default_for_each_column_and_is_cut_by_rows() {
        let column =
            |name: &str, dtype: pb::ElementType| pb::Column { name: name.to_owned(), dtype: dtype.into() };
        let mut request = pb::CreateMutableDataFrameRequest {
            rows: 5,
            columns: vec![column("a", pb::ElementType::I64), column("b", pb::ElementType::Text)],
            chunk_rows: 2,
            ..Default::default()
        };
        let defined = frame(&request).unwrap();
        assert_eq!(defined.nsplits, [vec![2, 2, 1]]);
        assert_eq!(defined.defaults, [Scalar::Integer(0), Scalar::Text(String::new())]);
        request.default_values = vec![pb::Scalar::default()];
        assert!(frame(&request).unwrap_err().message().starts_with("default_values: 1 of them"));
        request.columns.clear();
        assert!(frame(&request).is_err());
    }
}
