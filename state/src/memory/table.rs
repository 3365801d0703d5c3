//! A table that knows what it takes.

use std::hash::{Hash, Hasher};
use std::ops::Deref;

use imbl::OrdMap;

use crate::memory::{Edit, Weigh, of_entry};

/// A table and the bytes of its elements. It looks like its map to whoever reads it, and hashes as it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Weighed<K: Ord + Clone, V: Clone> {
    map: OrdMap<K, V>,
    /// Of all elements. Derived.
    bytes: u64,
}

impl<K: Ord + Clone, V: Clone> Default for Weighed<K, V> {
    fn default() -> Self {
        Self { map: OrdMap::new(), bytes: 0 }
    }
}

impl<K: Ord + Clone + Hash, V: Clone + Hash> Hash for Weighed<K, V> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.map.hash(hasher);
    }
}

impl<K: Ord + Clone, V: Clone> Deref for Weighed<K, V> {
    type Target = OrdMap<K, V>;

    fn deref(&self) -> &OrdMap<K, V> {
        &self.map
    }
}

impl<'a, K: Ord + Clone, V: Clone> IntoIterator for &'a Weighed<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = <&'a OrdMap<K, V> as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        self.map.iter()
    }
}

impl<K: Ord + Clone + Weigh, V: Clone + Weigh> Weighed<K, V> {
    /// What its elements take, roughly.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let of_key = key.outside();
        self.bytes = self.bytes.saturating_add(Self::of(of_key, &value));
        let before = self.map.insert(key, value);
        if let Some(before) = &before {
            self.bytes = self.bytes.saturating_sub(Self::of(of_key, before));
        }
        before
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let removed = self.map.remove(key)?;
        self.bytes = self.bytes.saturating_sub(Self::of(key.outside(), &removed));
        Some(removed)
    }

    /// An element, to be changed.
    pub(crate) fn edit(&mut self, key: &K) -> Option<Edit<'_, V>> {
        let value = self.map.get_mut(key)?;
        Some(Edit::new(value, &mut self.bytes))
    }

    /// An element, and the count that it is in, for whoever changes a part of it: see [`Edit`].
    pub(crate) fn slot(&mut self, key: &K) -> Option<(&mut V, &mut u64)> {
        Some((self.map.get_mut(key)?, &mut self.bytes))
    }

    /// The same from all elements.
    pub(crate) fn recounted(&self) -> u64 {
        self.map.iter().fold(0, |sum: u64, (key, value)| sum.saturating_add(Self::of(key.outside(), value)))
    }

    /// An element whose key holds `of_key` outside of itself.
    fn of(of_key: u64, value: &V) -> u64 {
        of_entry::<K, V>().saturating_add(of_key).saturating_add(value.outside())
    }
}
