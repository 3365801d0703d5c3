//! Indexes against arrays that are walked element by element, by Python's own words for slices.

use bytes::Bytes;
use proptest::prelude::*;
use tripod_proto::mars::v1::{DimIndex, IntegerList};

use super::*;

fn slice(start: Option<i64>, stop: Option<i64>, step: Option<i64>) -> DimIndex {
    DimIndex { index: Some(Wire::Slice(Slice { start, stop, step })) }
}

fn integer(at: i64) -> DimIndex {
    DimIndex { index: Some(Wire::Integer(at)) }
}

fn list(integers: Vec<i64>) -> DimIndex {
    DimIndex { index: Some(Wire::List(IntegerList { integers })) }
}

/// Places along one axis as the documentation of Python has them: `i = start + n * step` while it is before `stop`, of
/// what is beyond the ends only what lies between them.
fn naive(dim: &DimIndex, extent: i64) -> Option<Vec<i64>> {
    let inside = |at: i64| if at < 0 { at + extent } else { at };
    match dim.index.as_ref() {
        None => Some((0..extent).collect()),
        Some(Wire::Integer(at)) => Some(vec![inside(*at)]),
        Some(Wire::List(list)) => Some(list.integers.iter().map(|at| inside(*at)).collect()),
        Some(Wire::Slice(Slice { start, stop, step })) => {
            let step = step.unwrap_or(1);
            let mut places = Vec::new();
            if step == 0 {
                return None;
            }
            let candidates: Vec<i64> =
                if step > 0 { (0..extent).collect() } else { (0..extent).rev().collect() };
            let after_start = |at: i64| match start {
                None => true,
                Some(start) if step > 0 => at >= inside(*start),
                Some(start) => at <= inside(*start),
            };
            let before_stop = |at: i64| match stop {
                None => true,
                Some(stop) if step > 0 => at < inside(*stop),
                Some(stop) => at > inside(*stop),
            };
            let kept: Vec<i64> =
                candidates.into_iter().filter(|at| after_start(*at) && before_stop(*at)).collect();
            places
                .extend(kept.into_iter().step_by(usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX)));
            Some(places)
        }
    }
}

/// The elements that an index picks, or that it is refused.
fn naive_all(index: &Index, shape: &[u64]) -> Option<Vec<u64>> {
    let mut picked = vec![0_u64];
    for (axis, extent) in shape.iter().enumerate() {
        let extent = i64::try_from(*extent).ok()?;
        let dim = index.dims.get(axis).cloned().unwrap_or_default();
        let places = naive(&dim, extent)?;
        if places.iter().any(|at| !(0..extent).contains(at)) {
            return None;
        }
        picked = picked
            .iter()
            .flat_map(|before| {
                places
                    .iter()
                    .map(move |at| before * u64::try_from(extent).unwrap() + u64::try_from(*at).unwrap())
            })
            .collect();
    }
    Some(picked)
}

fn numbers(shape: &[u64]) -> Bytes {
    (0..bytes_of(shape, 1).unwrap()).flat_map(u64::to_le_bytes).collect::<Vec<_>>().into()
}

fn gathered(shape: &[u64], picked: Picked, most: usize) -> Vec<u64> {
    let mut gather = Gather::new(numbers(shape), shape, 8, picked);
    let mut bytes = Vec::new();
    let mut left = gather.left_bytes();
    while let Some(piece) = gather.next(most) {
        left -= piece.len() as u64;
        assert!(piece.len() == most || left == 0, "a piece is short");
        bytes.extend_from_slice(&piece);
    }
    assert_eq!(left, 0);
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
}

fn any_dim() -> impl Strategy<Value = DimIndex> {
    let end = || proptest::option::of(prop_oneof![-9_i64..9, Just(i64::MIN), Just(i64::MAX)]);
    let step = proptest::option::of(prop_oneof![-4_i64..5, Just(i64::MIN), Just(i64::MAX)]);
    prop_oneof![
        Just(DimIndex::default()),
        (end(), end(), step).prop_map(|(start, stop, step)| slice(start, stop, step)),
        (-6_i64..6).prop_map(integer),
    ]
}

/// An index, at times with a list along one axis.
fn any_index() -> impl Strategy<Value = Index> {
    let listed = proptest::option::of((0_usize..4, proptest::collection::vec(-6_i64..6, 0..6)));
    (proptest::collection::vec(any_dim(), 0..4), listed).prop_map(|(mut dims, listed)| {
        if let Some((axis, integers)) = listed
            && let Some(dim) = dims.get_mut(axis)
        {
            *dim = list(integers);
        }
        Index { dims }
    })
}

proptest! {
    #[test]
    fn what_is_picked_is_what_python_picks(
        shape in proptest::collection::vec(0_u64..6, 0..4),
        index in any_index(),
        most in prop_oneof![Just(1_usize), 2_usize..40, Just(1 << 20)],
    ) {
        let picked = Picked::of(&index, &shape, 8);
        let expected = if index.dims.len() > shape.len() { None } else { naive_all(&index, &shape) };
        // A place outside along one axis is told although another axis picks nothing.
        match (picked, expected) {
            (Ok(picked), Some(expected)) => {
                prop_assert_eq!(picked.elements(), expected.len() as u64);
                prop_assert_eq!(gathered(&shape, picked.clone(), most), expected.clone());
                // What is written to the same places is found there.
                let mut target = vec![0; numbers(&shape).len()];
                let values: Vec<u8> = expected.iter().flat_map(|at| (at + 1).to_le_bytes()).collect();
                scatter(&mut target, &shape, 8, &picked, &values);
                for (at, word) in target.chunks_exact(8).enumerate() {
                    let at = at as u64;
                    let written = if expected.contains(&at) { at + 1 } else { 0 };
                    prop_assert_eq!(u64::from_le_bytes(word.try_into().unwrap()), written);
                }
            }
            (Err(_), None) => {}
            (picked, expected) => prop_assert!(false, "{picked:?} and {expected:?}"),
        }
    }
}

#[test]
fn numbers_drop_axes_and_lists_keep_them() {
    let shape = |dims: Vec<DimIndex>| Picked::of(&Index { dims }, &[4, 5, 6], 8).map(|picked| picked.shape);
    assert_eq!(shape(vec![]), Ok(vec![4, 5, 6]));
    assert_eq!(shape(vec![integer(-1)]), Ok(vec![5, 6]));
    assert_eq!(shape(vec![integer(0), integer(0), integer(0)]), Ok(vec![]));
    assert_eq!(shape(vec![list(vec![1, 1, -4])]), Ok(vec![3, 5, 6]));
    assert_eq!(shape(vec![slice(None, None, Some(-2)), slice(Some(9), None, None)]), Ok(vec![2, 0, 6]));
}

#[test]
fn what_is_no_place_is_refused_with_what_it_is() {
    let refused =
        |dims: Vec<DimIndex>| Picked::of(&Index { dims }, &[4, 5], 8).expect_err("refused").to_string();
    assert_eq!(refused(vec![integer(4)]), "4 is no place along axis 0, which has 4");
    assert_eq!(refused(vec![list(vec![0, -5])]), "-5 is no place along axis 0, which has 4");
    assert_eq!(
        refused(vec![integer(i64::MIN)]),
        format!("{} is no place along axis 0, which has 4", i64::MIN)
    );
    assert_eq!(refused(vec![slice(None, None, Some(0))]), "the slice along axis 0 has a step of 0");
    assert_eq!(
        refused(vec![list(vec![]), list(vec![])]),
        "there are lists along several axes, and one is allowed"
    );
    assert_eq!(refused(vec![integer(0); 3]), "3 indexes are too many for 2 axes");
    let long = Picked::of(&Index { dims: vec![list(vec![0; 1 << 20])] }, &[1, 1 << 20], 8);
    assert_eq!(long, Err(OutOfRange::TooLarge));
    let all = Picked::of(&Index::default(), &[u64::MAX, 0], 8);
    assert_eq!(all, Err(OutOfRange::TooLong(0)));
}

#[test]
fn what_follows_each_other_is_not_copied() {
    let source = numbers(&[4, 5]);
    let dims = vec![slice(Some(1), Some(3), None)];
    let picked = Picked::of(&Index { dims }, &[4, 5], 8).unwrap();
    let mut gather = Gather::new(source.clone(), &[4, 5], 8, picked);
    let piece = gather.next(1 << 20).unwrap();
    assert_eq!((piece.as_ptr(), piece.len()), (source[40..].as_ptr(), 80));
}
