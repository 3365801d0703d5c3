//! Which ids mean the same object. Each id has a place in a tree of pointers whose end is the object itself; the
//! trees are kept as plain sets, so that no walk depends on how deep they are.

use imbl::{OrdMap, OrdSet};

use crate::memory::{of_entry, of_map, of_set};
use crate::ray::ids::ObjectId;

/// All trees of more than one id. An id that is in none is a tree of its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trees {
    labels: OrdMap<ObjectId, ObjectId>,
    trees: OrdMap<ObjectId, Tree>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Tree {
    /// The id that does not point to another.
    end: ObjectId,
    /// How many of the members have references.
    referenced: u64,
    members: OrdSet<ObjectId>,
}

impl Trees {
    /// What they take, roughly.
    pub(crate) fn bytes(&self) -> u64 {
        let tree = of_entry::<ObjectId, Tree>() + of_set::<ObjectId>(1);
        let member = of_entry::<ObjectId, ()>();
        of_map::<ObjectId, ObjectId>(self.labels.len())
            .saturating_add(tree.saturating_mul(self.trees.len() as u64))
            .saturating_add(member.saturating_mul(self.labels.len() as u64))
    }

    /// What an id means in the end.
    pub(crate) fn end(&self, id: ObjectId) -> ObjectId {
        self.tree(id).map_or(id, |tree| tree.end)
    }

    /// The ids that mean the same, in ascending order.
    pub(crate) fn members(&self, id: ObjectId) -> Vec<ObjectId> {
        self.tree(id).map_or_else(|| vec![id], |tree| tree.members.iter().copied().collect())
    }

    pub(crate) fn same(&self, one: ObjectId, other: ObjectId) -> bool {
        self.end(one) == self.end(other)
    }

    /// Whether an id of the tree has references; `None` if the id stands alone.
    pub(crate) fn referenced(&self, id: ObjectId) -> Option<bool> {
        self.tree(id).map(|tree| tree.referenced > 0)
    }

    /// An id has references now, or has none any more.
    pub(crate) fn note(&mut self, id: ObjectId, has: bool) {
        let Some(label) = self.labels.get(&id) else { return };
        let tree = self.trees.get_mut(label).expect("every label belongs to a tree");
        if has {
            tree.referenced += 1;
        } else {
            tree.referenced -= 1;
        }
    }

    /// Lets the tree that ends with `alias` mean what `target` means. The smaller tree is written anew, so n merges
    /// cost n log n writes in all. `has`: whether an id has references.
    pub(crate) fn merge(&mut self, alias: ObjectId, target: ObjectId, has: impl Fn(ObjectId) -> bool) {
        let end = self.end(target);
        let (one, other) = (self.label(alias, &has), self.label(target, &has));
        let size = |label| self.trees.get(label).map_or(0, |tree: &Tree| tree.members.len());
        let (small, large) = if size(&one) <= size(&other) { (one, other) } else { (other, one) };
        let merged = self.trees.remove(&small).expect("it was just labelled");
        let tree = self.trees.get_mut(&large).expect("it was just labelled");
        for member in merged.members.iter().copied() {
            tree.members.insert(member);
            self.labels.insert(member, large);
        }
        tree.referenced += merged.referenced;
        tree.end = end;
    }

    /// Forgets the whole tree of an id.
    pub(crate) fn remove(&mut self, id: ObjectId) {
        if let Some(label) = self.labels.get(&id).copied() {
            let tree = self.trees.remove(&label).expect("every label belongs to a tree");
            for member in tree.members {
                self.labels.remove(&member);
            }
        }
    }

    fn tree(&self, id: ObjectId) -> Option<&Tree> {
        self.trees.get(self.labels.get(&id)?)
    }

    fn label(&mut self, id: ObjectId, has: impl Fn(ObjectId) -> bool) -> ObjectId {
        if let Some(label) = self.labels.get(&id) {
            return *label;
        }
        self.labels.insert(id, id);
        self.trees.insert(id, Tree { end: id, referenced: u64::from(has(id)), members: OrdSet::unit(id) });
        id
    }

    /// The trees without their labels, which depend on the order of the merges.
    fn plain(&self) -> OrdMap<ObjectId, &Tree> {
        self.trees.values().map(|tree| (tree.end, tree)).collect()
    }
}

impl PartialEq for Trees {
    fn eq(&self, other: &Self) -> bool {
        self.plain() == other.plain()
    }
}

impl Eq for Trees {}
