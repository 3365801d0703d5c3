//! Whose a chunk of a mutable is, by its key.
//!
//! Keys are hashes of a session, a mutable's number and a place, so whose one is can only be found out by making those of all
//! mutables of the session. They are made once for each mutable and kept, sorted, for as long as there is room: a number means
//! the same mutable for ever, so what is kept never becomes wrong.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tripod_state::ids::JobId;

use crate::domain::{MutableEntry, MutableNo, mutable_chunk_numbers};
use crate::limits::CHUNK_KEYS_KEPT;

/// The keys that a node has made. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct ChunkKeys(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    /// The lower halves of keys, ascending.
    tables: HashMap<(JobId, MutableNo), Arc<[u64]>>,
    /// The oldest is given up first.
    order: VecDeque<(JobId, MutableNo)>,
    keys: usize,
}

impl ChunkKeys {
    /// Those of a session's mutables that may have a chunk of this key: of most keys the one that has it, or none. Takes as
    /// long as a hash for each of their chunks takes, unless they are kept.
    pub(crate) fn candidates<'e>(
        &self,
        job: JobId,
        session: &str,
        entries: &'e [MutableEntry],
        key: &str,
    ) -> Vec<&'e MutableEntry> {
        let Some(number) = number(key) else { return Vec::new() };
        let half = lower(number);
        let may_have = |entry: &&MutableEntry| self.of(job, session, entry).binary_search(&half).is_ok();
        entries.iter().filter(may_have).collect()
    }

    /// The keys of one mutable.
    fn of(&self, job: JobId, session: &str, entry: &MutableEntry) -> Arc<[u64]> {
        let name = (job, entry.mutable);
        if let Some(kept) = self.0.lock().tables.get(&name) {
            return Arc::clone(kept);
        }
        let numbers = mutable_chunk_numbers(session, entry.mutable, entry.chunks);
        let mut keys: Vec<u64> = numbers.map(lower).collect();
        keys.sort_unstable();
        let keys: Arc<[u64]> = keys.into();
        self.0.lock().keep(name, Arc::clone(&keys), CHUNK_KEYS_KEPT);
        keys
    }
}

impl Kept {
    fn keep(&mut self, name: (JobId, MutableNo), keys: Arc<[u64]>, most: usize) {
        // Each counts for one more, so that many small ones have a bound, too.
        let room = |keys: &[u64]| keys.len() + 1;
        let new = room(&keys);
        if self.tables.contains_key(&name) || new > most {
            return;
        }
        while self.keys + new > most {
            let Some(oldest) = self.order.pop_front() else { break };
            let given_up = self.tables.remove(&oldest);
            self.keys -= given_up.map_or(0, |keys| room(&keys));
        }
        self.keys += new;
        self.order.push_back(name);
        self.tables.insert(name, keys);
    }
}

/// The number that a key writes; of what is no key of a mutable's chunk: none.
fn number(key: &str) -> Option<u128> {
    let is_key = key.len() == 32 && key.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_key { u128::from_str_radix(key, 16).ok() } else { None }
}

fn lower(number: u128) -> u64 {
    u64::try_from(number & u128::from(u64::MAX)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tripod_state::mars::mutable_chunk_key;

    use super::*;

    fn entry(number: u64, chunks: u64) -> MutableEntry {
        MutableEntry { mutable: MutableNo(number), name: format!("m{number}"), chunks }
    }

    #[test]
    fn a_key_is_that_of_the_one_mutable_that_has_such_a_chunk() {
        let keys = ChunkKeys::default();
        let entries = [entry(7, 3), entry(9, 1), entry(12, 0)];
        let found = |session: &str, key: &str| -> Vec<u64> {
            let found = keys.candidates(JobId(1), session, &entries, key);
            found.into_iter().map(|entry| entry.mutable.0).collect()
        };
        // The second time they are kept.
        for _ in 0..2 {
            assert_eq!(found("s", &mutable_chunk_key("s", MutableNo(7), 2)), [7]);
            assert_eq!(found("s", &mutable_chunk_key("s", MutableNo(9), 0)), [9]);
            assert!(found("s", &mutable_chunk_key("s", MutableNo(7), 3)).is_empty());
            assert!(found("s", &mutable_chunk_key("t", MutableNo(7), 2)).is_empty());
            for wrong in ["", "m7", &"A".repeat(32), &"+".repeat(32), &"0".repeat(33)] {
                assert!(found("s", wrong).is_empty(), "{wrong}");
            }
        }
        assert_eq!(keys.0.lock().tables.len(), 3);
    }

    #[test]
    fn the_oldest_are_given_up_where_there_is_no_room() {
        let mut kept = Kept::default();
        let name = |number| (JobId(1), MutableNo(number));
        let table = |keys: u64| (0..keys).collect::<Arc<[u64]>>();
        for number in 1..=3 {
            kept.keep(name(number), table(4), 10);
            kept.keep(name(number), table(4), 10);
        }
        assert_eq!((kept.keys, kept.order.make_contiguous()), (10, &mut [name(2), name(3)][..]));
        kept.keep(name(4), table(10), 10);
        assert!(kept.tables.contains_key(&name(2)), "what has no place is not kept, and drives nothing out");
        kept.keep(name(5), table(9), 10);
        assert_eq!((kept.keys, kept.tables.len()), (10, 1));
    }
}
