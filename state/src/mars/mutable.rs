//! A tileable that is written in place.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::TimeMs;
use crate::mars::command::{Definition, Scalar};
use crate::mars::ids::{Name, SessionNo};
use crate::memory::{Weigh, of_list, of_shared, of_text};
use crate::ray::ids::ObjectId;

/// How far it is. One that is deleted is not there any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MutableState {
    Open,
    Sealing,
    Sealed,
    /// No store has some of its chunks any more.
    Lost,
}

impl MutableState {
    /// In words.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Sealing => "being sealed",
            Self::Sealed => "sealed",
            Self::Lost => "lost",
        }
    }

    /// What can be done then.
    pub(crate) fn next_step(self) -> &'static str {
        match self {
            Self::Open => "write to it",
            Self::Sealing => "wait until that is over",
            Self::Sealed => "use its tileable, or create another one",
            Self::Lost => "delete it, and create it anew",
        }
    }
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Mutable {
    pub(crate) session: SessionNo,
    pub(crate) name: Name,
    pub(crate) definition: Arc<Definition>,
    pub(crate) state: MutableState,
    /// Rises when sealing has failed: what was written for an earlier one does not count.
    pub(crate) epoch: u64,
    /// The addresses of the stores that have its chunks, in the order of their ids when it was created.
    pub(crate) stores: Arc<Vec<Name>>,
    /// Since when some chunk has no store that lives.
    pub(crate) absent_since: Option<TimeMs>,
    pub(crate) seal: Option<Seal>,
}

/// Sealing, while it goes on and afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Seal {
    pub(crate) timestamp_ns: Option<i64>,
    pub(crate) begun: TimeMs,
    /// The objects of its chunks, in their order, with one reference each until it is sealed.
    pub(crate) objects: Vec<ObjectId>,
    /// The chunks that are made.
    pub(crate) made: Vec<bool>,
    /// Stores that could not make some, ascending.
    pub(crate) failed: Vec<u32>,
}

impl Mutable {
    pub(crate) fn chunks(&self) -> usize {
        self.definition.nsplits.iter().map(Vec::len).product()
    }

    pub(crate) fn replicas(&self) -> usize {
        (self.definition.replicas.max(1) as usize).min(self.stores.len().max(1))
    }

    /// Which stores have a chunk, by their places, the one that seals it first. Chunks are in groups of neighbours, one for
    /// each store; the first ones are larger by one where they cannot be equal.
    pub(crate) fn stores_of(&self, chunk: usize) -> impl Iterator<Item = usize> + use<> {
        let (chunks, stores) = (self.chunks(), self.stores.len().max(1));
        let groups = stores.min(chunks).max(1);
        let (least, larger) = (chunks / groups, chunks % groups);
        let boundary = larger * (least + 1);
        let group =
            if chunk < boundary { chunk / (least + 1) } else { larger + (chunk - boundary) / least.max(1) };
        (0..self.replicas()).map(move |replica| (group + replica) % stores)
    }

    /// The key of the tileable that it is once it is sealed.
    pub(crate) fn tileable_key(&self, number: u64) -> Name {
        Name::from(format!("{}@{number}", self.name).as_str())
    }

    /// That of its graph: no client's graph has such a key.
    pub(crate) fn graph_key(&self, number: u64) -> Name {
        Name::from(format!("@{}", self.tileable_key(number)).as_str())
    }
}

impl Weigh for Mutable {
    fn outside(&self) -> u64 {
        let definition = &self.definition;
        let columns = definition.columns.iter().map(|column| of_text(column.name.len()) + 64);
        let defaults = definition.defaults.iter().map(|default| match default {
            Scalar::Text(text) => of_text(text.len()) + 64,
            Scalar::Boolean(_) | Scalar::Integer(_) | Scalar::Fraction(_) => 64,
        });
        let splits = definition.nsplits.iter().map(|axis| of_list::<u64>(axis.len()) + 64);
        let stores = self.stores.iter().map(|store| store.outside() + 32);
        let seal = self.seal.as_ref().map_or(0, |seal| {
            of_list::<ObjectId>(seal.objects.len())
                + of_list::<bool>(seal.made.len())
                + of_list::<u32>(seal.failed.len())
        });
        let own = self.name.outside() + of_shared::<Definition>() + seal;
        columns.chain(defaults).chain(splits).chain(stores).fold(own, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mars::command::TileableKind;

    fn with(chunks: usize, stores: usize, replicas: u32) -> Mutable {
        let definition = Definition {
            kind: TileableKind::Tensor,
            element_type: 5,
            columns: Vec::new(),
            defaults: vec![Scalar::Integer(0)],
            nsplits: vec![vec![1; chunks]],
            replicas,
        };
        Mutable {
            session: SessionNo(1),
            name: "m".into(),
            definition: Arc::new(definition),
            state: MutableState::Open,
            epoch: 1,
            stores: Arc::new((0..stores).map(|store| Name::from(format!("s{store}").as_str())).collect()),
            absent_since: None,
            seal: None,
        }
    }

    #[test]
    fn chunks_are_in_groups_of_neighbours_and_replicas_at_the_stores_behind() {
        let stores = |mutable: &Mutable| -> Vec<Vec<usize>> {
            (0..mutable.chunks()).map(|chunk| mutable.stores_of(chunk).collect()).collect()
        };
        assert_eq!(stores(&with(5, 2, 1)), [[0], [0], [0], [1], [1]]);
        assert_eq!(stores(&with(7, 3, 2)), [[0, 1], [0, 1], [0, 1], [1, 2], [1, 2], [2, 0], [2, 0]]);
        assert_eq!(stores(&with(2, 3, 0)), [[0], [1]]);
        assert_eq!(stores(&with(1, 1, 3)), [[0]]);
    }
}
