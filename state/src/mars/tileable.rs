//! What is known of a tileable, and its extents when those of its chunks are known.

use serde::{Deserialize, Serialize};

use crate::mars::command::{Column, TileableKind};
use crate::mars::ids::{Name, Place};
use crate::memory::{Weigh, of_list, of_text};

/// A tileable of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct TileableMeta {
    pub(crate) kind: TileableKind,
    pub(crate) name: Name,
    pub(crate) element_type: u8,
    pub(crate) columns: Vec<Column>,
    /// As the client, or whoever tiled, said.
    pub(crate) nsplits: Vec<Vec<i64>>,
    /// In C order.
    pub(crate) chunks: Vec<Place>,
    /// References of clients: one from the beginning, if it is a target.
    pub(crate) count: u64,
}

impl Weigh for TileableMeta {
    fn outside(&self) -> u64 {
        let columns = self.columns.iter().map(|column| of_text(column.name.len()));
        let splits = self.nsplits.iter().map(|axis| of_list::<i64>(axis.len()));
        let lists = of_list::<Column>(self.columns.len())
            .saturating_add(of_list::<Vec<i64>>(self.nsplits.len()))
            .saturating_add(of_list::<Place>(self.chunks.len()))
            .saturating_add(self.name.outside());
        columns.chain(splits).fold(lists, u64::saturating_add)
    }

    /// Only its count changes.
    fn changing(&self) -> u64 {
        0
    }
}

/// How many cells there are; `None`: too many to be counted.
pub(crate) fn cells(nsplits: &[Vec<i64>]) -> Option<u64> {
    nsplits.iter().try_fold(1_u64, |cells, axis| cells.checked_mul(axis.len() as u64))
}

/// The index of a cell, by its place in C order.
pub(crate) fn index_of(nsplits: &[Vec<i64>], cell: usize) -> Vec<u64> {
    let mut index = vec![0; nsplits.len()];
    let mut rest = cell;
    for (axis, parts) in nsplits.iter().enumerate().rev() {
        let parts = parts.len().max(1);
        index[axis] = (rest % parts) as u64;
        rest /= parts;
    }
    index
}

/// The extents with those that only execution told, which `shapes` gives cell by cell: all of them are known, or it is left as
/// it is.
pub(crate) fn known(nsplits: &[Vec<i64>], shapes: &[Option<Vec<u64>>]) -> Vec<Vec<i64>> {
    if nsplits.iter().flatten().all(|extent| *extent >= 0) {
        return nsplits.to_vec();
    }
    let mut derived = nsplits.to_vec();
    for (cell, shape) in shapes.iter().enumerate() {
        let Some(shape) = shape.as_ref().filter(|shape| shape.len() == nsplits.len()) else {
            return nsplits.to_vec();
        };
        for (axis, (part, extent)) in index_of(nsplits, cell).into_iter().zip(shape).enumerate() {
            let known = i64::try_from(*extent).unwrap_or(i64::MAX);
            let part = usize::try_from(part).unwrap_or(usize::MAX);
            if let Some(slot) =
                derived.get_mut(axis).and_then(|parts| parts.get_mut(part)).filter(|slot| **slot < 0)
            {
                *slot = known;
            }
        }
    }
    derived
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_counted_in_c_order() {
        let nsplits = [vec![2, 1], vec![4, 4, 4]];
        assert_eq!(cells(&nsplits), Some(6));
        assert_eq!(cells(&[]), Some(1));
        let indexes: Vec<Vec<u64>> = (0..6).map(|cell| index_of(&nsplits, cell)).collect();
        assert_eq!(indexes, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
        assert_eq!(index_of(&[], 0), Vec::<u64>::new());
    }

    #[test]
    fn extents_are_derived_when_all_chunks_told_theirs() {
        let nsplits = [vec![-1, -1], vec![3]];
        let first = Some(vec![5, 3]);
        assert_eq!(known(&nsplits, &[first.clone(), None]), nsplits);
        assert_eq!(known(&nsplits, &[first, Some(vec![7, 3])]), [vec![5, 7], vec![3]]);
        assert_eq!(known(&[vec![2]], &[None]), [vec![2]]);
    }
}
