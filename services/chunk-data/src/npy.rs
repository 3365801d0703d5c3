//! The head of a file as `np.save` writes it.

use bytes::Bytes;

use crate::element::Element;

const MAGIC: &[u8] = b"\x93NUMPY";
/// What follows a head begins at a multiple of it.
const ALIGNMENT: usize = 64;

/// Where the elements of a file begin that `np.save` wrote of an array of that type and shape, in C order; `None`: it is none.
pub(crate) fn elements(file: &[u8], element: Element, shape: &[u64]) -> Option<usize> {
    let (version, rest) = file.strip_prefix(MAGIC)?.split_first_chunk::<2>()?;
    let (length, before) = match version {
        [1, 0] => (u32::from(u16::from_le_bytes(*rest.first_chunk()?)), MAGIC.len() + 4),
        [2, 0] => (u32::from_le_bytes(*rest.first_chunk()?), MAGIC.len() + 6),
        _ => return None,
    };
    let end = before.checked_add(usize::try_from(length).ok()?)?;
    let said = str::from_utf8(file.get(before..end)?).ok()?;
    (said.trim_end() == text(element, shape)).then_some(end)
}

fn text(element: Element, shape: &[u64]) -> String {
    let mut axes = shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    if shape.len() == 1 {
        axes.push(',');
    }
    let descr = element.descr();
    format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({axes}), }}")
}

/// The head of an array of that type and shape, in C order. Version 1.0, or 2.0 if its length needs more than 16 bits.
pub(crate) fn head(element: Element, shape: &[u64]) -> Bytes {
    let text = text(element, shape);
    let padded = |before: usize| (before + text.len() + 1).next_multiple_of(ALIGNMENT) - before;
    let short = u16::try_from(padded(MAGIC.len() + 4));
    let mut head = Vec::with_capacity(padded(MAGIC.len() + 6) + MAGIC.len() + 6);
    head.extend_from_slice(MAGIC);
    let length = if let Ok(length) = short {
        head.extend_from_slice(&[1, 0]);
        head.extend_from_slice(&length.to_le_bytes());
        usize::from(length)
    } else {
        let length = padded(MAGIC.len() + 6);
        head.extend_from_slice(&[2, 0]);
        head.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
        length
    };
    let end = head.len() + length;
    head.extend_from_slice(text.as_bytes());
    head.resize(end - 1, b' ');
    head.push(b'\n');
    head.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As numpy 2 wrote it.
    #[test]
    fn heads_are_those_of_numpy() {
        let cases = [
            (Element::F64, vec![3, 4], "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }"),
            (Element::Bool, vec![7], "{'descr': '|b1', 'fortran_order': False, 'shape': (7,), }"),
            (Element::I32, vec![], "{'descr': '<i4', 'fortran_order': False, 'shape': (), }"),
        ];
        for (element, shape, text) in cases {
            let head = head(element, &shape);
            assert_eq!((&head[..8], head.len() % 64), (&b"\x93NUMPY\x01\x00"[..], 0));
            assert_eq!(usize::from(u16::from_le_bytes([head[8], head[9]])), head.len() - 10);
            assert!(head[10..].starts_with(text.as_bytes()), "{text}");
            assert!(head.ends_with(b" \n"));
        }
    }

    #[test]
    fn elements_are_found_behind_the_head_that_is_expected_and_no_other() {
        for (element, shape) in
            [(Element::F64, vec![3, 4]), (Element::Bool, vec![7]), (Element::I64, vec![1; 40_000])]
        {
            let head = head(element, &shape);
            let file = [&head[..], b"elements"].concat();
            assert_eq!(elements(&file, element, &shape), Some(head.len()));
            assert_eq!(elements(&file, Element::I32, &shape), None, "another type");
            assert_eq!(elements(&file, element, &[3, 5]), None, "another shape");
            for cut in [0, 5, 6, 9, head.len() - 1] {
                assert_eq!(elements(&file[..cut], element, &shape), None, "cut at {cut}");
            }
        }
        let fortran =
            b"\x93NUMPY\x01\0\x40\0{'descr': '<f8', 'fortran_order': True, 'shape': (3, 4), }     \n";
        assert_eq!(elements(fortran, Element::F64, &[3, 4]), None);
    }

    #[test]
    fn a_long_head_is_of_version_2() {
        let head = head(Element::I64, &[1; 40_000]);
        assert_eq!((&head[6..8], head.len() % 64), (&[2, 0][..], 0));
        let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        assert_eq!(length as usize, head.len() - 12);
    }
}
