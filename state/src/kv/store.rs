//! A job's keys, in byte order, with their size.

use std::ops::Bound;

use bytes::Bytes;
use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::ids::{Key, LogIndex};
use crate::limits::{JOB_BYTES_MAX, JOB_KEYS_MAX, KEY_BYTES_MAX, VALUE_BYTES_MAX, within};
use crate::memory::{of_entry, of_text};

/// A value and its history in short.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) value: Bytes,
    /// Writes since the key was created, from 1.
    pub(crate) version: u64,
    /// The last write.
    pub(crate) modified: LogIndex,
}

/// The keys of one job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Store {
    entries: OrdMap<Key, Entry>,
    /// Bytes of all keys and values.
    bytes: u64,
}

impl Store {
    pub(crate) fn keys(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What they take of memory, roughly: more than [`Self::bytes`], by which limits are decided.
    pub(crate) fn held(&self) -> u64 {
        // A key and a value are a piece of memory each.
        self.bytes.saturating_add(self.keys().saturating_mul(2 * of_text(1) + of_entry::<Key, Entry>()))
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Entry> {
        self.entries.get(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Entry)> {
        self.entries.iter()
    }

    /// Every key from `from` on, in byte order.
    pub(crate) fn range(&self, from: Bound<&str>) -> impl Iterator<Item = (&Key, &Entry)> {
        self.entries.range::<_, str>((from, Bound::Unbounded))
    }

    /// Every key under `directory/`.
    pub(crate) fn under(&self, directory: &Key) -> impl Iterator<Item = (&Key, &Entry)> {
        let (first, end) = children(directory);
        self.entries.range::<_, str>((Bound::Included(first.as_str()), Bound::Excluded(end.as_str())))
    }

    /// Writes a value and tells its version.
    pub(crate) fn put(&mut self, key: Key, value: Bytes, index: LogIndex) -> Result<u64, Fault> {
        let size = value.len() as u64;
        if let Some(entry) = self.entries.get_mut(&key) {
            let bytes = self.bytes - entry.value.len() as u64 + size;
            within("value bytes", size, VALUE_BYTES_MAX as u64)?;
            within("bytes of the job's keys and values", bytes, JOB_BYTES_MAX)?;
            entry.value = value;
            entry.version += 1;
            entry.modified = index;
            self.bytes = bytes;
            return Ok(entry.version);
        }
        let bytes = self.bytes + key.as_str().len() as u64 + size;
        within("key bytes", key.as_str().len() as u64, KEY_BYTES_MAX as u64)?;
        within("value bytes", size, VALUE_BYTES_MAX as u64)?;
        within("bytes of the job's keys and values", bytes, JOB_BYTES_MAX)?;
        within("keys of the job", self.keys() + 1, JOB_KEYS_MAX)?;
        self.entries.insert(key, Entry { value, version: 1, modified: index });
        self.bytes = bytes;
        Ok(1)
    }

    /// Removes the key and everything under `key/`, and tells how many keys that were.
    pub(crate) fn delete(&mut self, key: &Key) -> u64 {
        let mut doomed: Vec<Key> = self.under(key).map(|(key, _)| key.clone()).collect();
        doomed.push(key.clone());
        let before = self.keys();
        for key in &doomed {
            if let Some(entry) = self.entries.remove(key) {
                self.bytes -= key.as_str().len() as u64 + entry.value.len() as u64;
            }
        }
        before - self.keys()
    }

    /// Puts back an entry of a snapshot; `false` unless it comes after all others.
    pub(crate) fn restore(&mut self, key: Key, entry: Entry) -> bool {
        let ascending = self.entries.get_max().is_none_or(|(last, _)| *last < key);
        self.bytes += key.as_str().len() as u64 + entry.value.len() as u64;
        self.entries.insert(key, entry);
        ascending
    }
}

/// The half-open range of the keys below `directory`: `0` is the character after `/`.
fn children(directory: &Key) -> (String, String) {
    (format!("{directory}/"), format!("{directory}0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(keys: &[&str]) -> Store {
        let mut store = Store::default();
        for key in keys {
            store.put(Key::from(*key), Bytes::from_static(b"12"), LogIndex(1)).unwrap();
        }
        store
    }

    fn under(store: &Store, directory: &str) -> Vec<String> {
        store.under(&Key::from(directory)).map(|(key, _)| key.to_string()).collect()
    }

    #[test]
    fn a_directory_holds_only_what_is_below_its_slash() {
        let store = store(&["a", "a/b", "a/b/c", "a-b", "a0", "ab", "b/a"]);
        assert_eq!(under(&store, "a"), ["a/b", "a/b/c"]);
        assert_eq!(under(&store, "a/b"), ["a/b/c"]);
        assert_eq!(under(&store, "a/b/c"), Vec::<String>::new());
        assert_eq!(under(&store, ""), Vec::<String>::new());
    }

    #[test]
    fn bytes_are_those_of_the_keys_that_are_there() {
        let mut store = store(&["a", "a/b", "ab"]);
        assert_eq!((store.keys(), store.bytes()), (3, 12));
        assert_eq!(store.put(Key::from("a"), Bytes::from_static(b"12345"), LogIndex(2)), Ok(2));
        assert_eq!(store.bytes(), 15);
        assert_eq!(store.delete(&Key::from("a")), 2);
        assert_eq!((store.keys(), store.bytes()), (1, 4));
        assert_eq!(store.delete(&Key::from("a")), 0);
        assert_eq!(store.delete(&Key::from("ab")), 1);
        assert_eq!(store, Store::default());
    }

    #[test]
    fn what_is_too_large_changes_nothing() {
        let mut store = store(&["a"]);
        let before = store.clone();
        let long = Key("k".repeat(KEY_BYTES_MAX + 1).into());
        assert!(matches!(store.put(long, Bytes::new(), LogIndex(2)), Err(Fault::LimitExceeded { .. })));
        let large = Bytes::from(vec![0; VALUE_BYTES_MAX + 1]);
        for key in ["a", "b"] {
            let refused = store.put(Key::from(key), large.clone(), LogIndex(2));
            assert!(matches!(refused, Err(Fault::LimitExceeded { .. })));
        }
        assert_eq!(store, before);
    }

    #[test]
    fn the_sum_of_values_is_bounded() {
        let mut store = Store::default();
        // The values share one buffer, so the test itself stays small.
        let large = Bytes::from(vec![0; VALUE_BYTES_MAX]);
        let refused =
            (0..1000).find(|i| store.put(Key(i.to_string().into()), large.clone(), LogIndex(1)).is_err());
        assert_eq!(refused, Some(JOB_BYTES_MAX / VALUE_BYTES_MAX as u64));
        assert!(store.bytes() <= JOB_BYTES_MAX);
    }
}
