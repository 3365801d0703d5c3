//! Types of elements.

use tripod_proto::mars::v1::ElementType;

/// The type of an element that has a width. Numbers are those of `mars.v1.ElementType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    Bool,
    I32,
    I64,
    F32,
    F64,
}

impl Element {
    /// The type of that number; `None` for text, which has no width, and for what is no type.
    #[must_use]
    pub fn numbered(number: i32) -> Option<Self> {
        Some(match ElementType::try_from(number).ok()? {
            ElementType::Bool => Self::Bool,
            ElementType::I32 => Self::I32,
            ElementType::I64 => Self::I64,
            ElementType::F32 => Self::F32,
            ElementType::F64 => Self::F64,
            ElementType::Unspecified | ElementType::Text => return None,
        })
    }

    pub(crate) fn wire(self) -> ElementType {
        match self {
            Self::Bool => ElementType::Bool,
            Self::I32 => ElementType::I32,
            Self::I64 => ElementType::I64,
            Self::F32 => ElementType::F32,
            Self::F64 => ElementType::F64,
        }
    }

    /// Its number in messages and in objects.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Bool => 1,
            Self::I32 => 2,
            Self::I64 => 3,
            Self::F32 => 4,
            Self::F64 => 5,
        }
    }

    /// Bytes of one element.
    #[must_use]
    pub fn width(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }

    /// What numpy calls it, little-endian.
    pub(crate) fn descr(self) -> &'static str {
        match self {
            Self::Bool => "|b1",
            Self::I32 => "<i4",
            Self::I64 => "<i8",
            Self::F32 => "<f4",
            Self::F64 => "<f8",
        }
    }
}

/// As many bytes as elements of that shape take; `None` if that is no number of 64 bits.
pub(crate) fn bytes_of(shape: &[u64], width: usize) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(width as u64, |bytes, extent| bytes.checked_mul(*extent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_wire() {
        for number in -1..9 {
            if let Some(element) = Element::numbered(number) {
                assert_eq!((i32::from(element.number()), element.wire() as i32), (number, number));
            }
        }
        assert_eq!(Element::numbered(ElementType::Text as i32), None);
    }

    #[test]
    fn a_shape_that_is_larger_than_numbers_has_no_bytes_unless_it_is_empty() {
        assert_eq!(bytes_of(&[u64::MAX, 2], 8), None);
        assert_eq!(bytes_of(&[u64::MAX, 2, 0], 8), Some(0));
        assert_eq!((bytes_of(&[], 4), bytes_of(&[3, 4], 4)), (Some(4), Some(48)));
    }
}
