//! A small array: elements of every type are kept as fractions of 64 bits, which hold all that the tests need.

use tripod_tile::DType;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dense {
    pub(crate) shape: Vec<usize>,
    pub(crate) dtype: DType,
    pub(crate) data: Vec<f64>,
}

/// What an element of a type makes of a number.
pub(crate) fn hold(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::Bool => f64::from(u8::from(value != 0.0)),
        DType::I32 => f64::from(value as i64 as i32),
        DType::I64 => value as i64 as f64,
        DType::F32 => f64::from(value as f32),
        DType::F64 => value,
    }
}

/// All indexes of a shape in their order.
pub(crate) fn all(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut found = vec![Vec::new()];
    for extent in shape {
        let longer = |index: &Vec<usize>| {
            let index = index.clone();
            (0..*extent).map(move |at| [&index[..], &[at]].concat())
        };
        found = found.iter().flat_map(longer).collect();
    }
    found
}

impl Dense {
    pub(crate) fn from_fn(shape: &[usize], dtype: DType, value: impl FnMut(&[usize]) -> f64) -> Self {
        let mut value = value;
        let data = all(shape).iter().map(|index| hold(dtype, value(index))).collect();
        Self { shape: shape.to_vec(), dtype, data }
    }

    /// Elements as bytes, as they are sent.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let bytes = |value: &f64| match self.dtype {
            DType::Bool => vec![*value as u8],
            DType::I32 => (*value as i32).to_le_bytes().to_vec(),
            DType::I64 => (*value as i64).to_le_bytes().to_vec(),
            DType::F32 => (*value as f32).to_le_bytes().to_vec(),
            DType::F64 => value.to_le_bytes().to_vec(),
        };
        self.data.iter().flat_map(bytes).collect()
    }

    pub(crate) fn from_bytes(shape: &[usize], dtype: DType, bytes: &[u8]) -> Self {
        let value = |bytes: &[u8]| match dtype {
            DType::Bool => f64::from(bytes[0]),
            DType::I32 => f64::from(i32::from_le_bytes(bytes.try_into().unwrap())),
            DType::I64 => i64::from_le_bytes(bytes.try_into().unwrap()) as f64,
            DType::F32 => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
            DType::F64 => f64::from_le_bytes(bytes.try_into().unwrap()),
        };
        let width = usize::try_from(dtype.bytes()).unwrap();
        let data: Vec<f64> = bytes.chunks(width).map(value).collect();
        assert_eq!(data.len(), shape.iter().product::<usize>());
        Self { shape: shape.to_vec(), dtype, data }
    }

    pub(crate) fn place(&self, index: &[usize]) -> usize {
        index.iter().zip(&self.shape).fold(0, |place, (at, extent)| {
            assert!(at < extent, "{index:?} of {:?}", self.shape);
            place * extent + at
        })
    }

    pub(crate) fn at(&self, index: &[usize]) -> f64 {
        self.data[self.place(index)]
    }

    /// The element that numpy would repeat at an index of a larger shape.
    pub(crate) fn broadcast(&self, index: &[usize]) -> f64 {
        let own = &index[index.len() - self.shape.len()..];
        let own: Vec<usize> =
            own.iter().zip(&self.shape).map(|(at, extent)| if *extent == 1 { 0 } else { *at }).collect();
        self.at(&own)
    }

    pub(crate) fn cast(&self, dtype: DType) -> Self {
        let data = self.data.iter().map(|value| hold(dtype, *value)).collect();
        Self { shape: self.shape.clone(), dtype, data }
    }

    /// The elements at these places of each axis.
    pub(crate) fn pick(&self, places: &[Vec<usize>]) -> Self {
        assert_eq!(places.len(), self.shape.len());
        let shape: Vec<usize> = places.iter().map(Vec::len).collect();
        Self::from_fn(&shape, self.dtype, |index| {
            let from: Vec<usize> = index.iter().zip(places).map(|(at, places)| places[*at]).collect();
            self.at(&from)
        })
    }

    pub(crate) fn reshaped(&self, shape: &[usize]) -> Self {
        assert_eq!(shape.iter().product::<usize>(), self.data.len(), "{:?} to {shape:?}", self.shape);
        Self { shape: shape.to_vec(), ..self.clone() }
    }

    /// Without axes of one element.
    pub(crate) fn without(&self, axes: &[usize]) -> Self {
        let kept = self.shape.iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
        let shape: Vec<usize> = kept.map(|(_, extent)| *extent).collect();
        self.reshaped(&shape)
    }

    pub(crate) fn transposed(&self, axes: &[usize]) -> Self {
        let shape: Vec<usize> = axes.iter().map(|axis| self.shape[*axis]).collect();
        Self::from_fn(&shape, self.dtype, |index| {
            let mut from = vec![0; index.len()];
            for (at, axis) in index.iter().zip(axes) {
                from[*axis] = *at;
            }
            self.at(&from)
        })
    }

    /// As numpy's, of one or two axes on each side.
    pub(crate) fn matmul(&self, other: &Self, dtype: DType) -> Self {
        let inner = *self.shape.last().unwrap();
        assert_eq!(inner, other.shape[0]);
        let rows = &self.shape[..self.shape.len() - 1];
        let shape = [rows, &other.shape[1..]].concat();
        Self::from_fn(&shape, dtype, |index| {
            let (row, column) = index.split_at(rows.len());
            (0..inner).map(|at| self.at(&[row, &[at]].concat()) * other.at(&[&[at], column].concat())).sum()
        })
    }
}

/// The shape of arrays that numpy takes together.
pub(crate) fn broadcast_shape(arrays: &[&Dense]) -> Option<Vec<usize>> {
    let dims = arrays.iter().map(|array| array.shape.len()).max().unwrap_or(0);
    let mut shape = vec![1; dims];
    for array in arrays {
        let missing = dims - array.shape.len();
        for (axis, extent) in array.shape.iter().enumerate().filter(|(_, extent)| **extent != 1) {
            let common = &mut shape[missing + axis];
            if *common != 1 && common != extent {
                return None;
            }
            *common = *extent;
        }
    }
    Some(shape)
}
