//! Which ranks are taken, and by whom.

use imbl::OrdMap;

use crate::memory::of_map;
use crate::mindspore::{Expected, Member, Role};

/// The ranks of the nodes of a cluster, each of which one node of its role has. Derived from the nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Ranks {
    ranks: OrdMap<(Role, u32), Member>,
    taken: Expected,
}

impl Ranks {
    pub(crate) fn insert(&mut self, role: Role, rank: u32, member: Member) {
        if self.ranks.insert((role, rank), member).is_none() {
            *self.taken.count_mut(role) += 1;
        }
    }

    /// Takes a rank from a node; not from another one that has been given it meanwhile.
    pub(crate) fn remove(&mut self, role: Role, rank: u32, member: Member) {
        if self.ranks.get(&(role, rank)) == Some(&member) {
            self.ranks.remove(&(role, rank));
            *self.taken.count_mut(role) -= 1;
        }
    }

    pub(crate) fn get(&self, role: Role, rank: u32) -> Option<Member> {
        self.ranks.get(&(role, rank)).copied()
    }

    /// How many are taken.
    pub(crate) fn taken(&self, role: Role) -> u32 {
        self.taken.count(role)
    }

    /// Those of a role, ascending.
    pub(crate) fn of(&self, role: Role) -> impl DoubleEndedIterator<Item = (u32, Member)> {
        let ranks = self.ranks.range((role, 0)..=(role, u32::MAX));
        ranks.map(|((_, rank), member)| (*rank, *member))
    }

    /// The lowest that nobody has.
    pub(crate) fn free(&self, role: Role) -> u32 {
        let taken = self.taken(role);
        match self.of(role).next_back() {
            Some((last, _)) if last >= taken => {
                let gap = self.of(role).zip(0..).find(|((rank, _), free)| rank != free);
                gap.map_or(taken, |(_, free)| free)
            }
            // There is no gap.
            _ => taken,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        of_map::<(Role, u32), Member>(self.ranks.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_rank_that_nobody_has_is_free() {
        let mut ranks = Ranks::default();
        let free = |ranks: &Ranks| ranks.free(Role::Server);
        assert_eq!(free(&ranks), 0);
        for rank in [0, 2, 1, 3] {
            ranks.insert(Role::Server, rank, Member(u64::from(rank)));
        }
        ranks.insert(Role::Worker, 4, Member(9));
        assert_eq!((free(&ranks), ranks.free(Role::Worker)), (4, 0));
        ranks.remove(Role::Server, 1, Member(7));
        assert_eq!(free(&ranks), 4, "it is another one's");
        ranks.remove(Role::Server, 1, Member(1));
        assert_eq!((free(&ranks), ranks.taken(Role::Server)), (1, 3));
    }
}
