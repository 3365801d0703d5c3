//! Writes to keys.

use bytes::Bytes;

use crate::command::{Answer, Effect, Reply};
use crate::fault::Fault;
use crate::ids::{Incarnation, Key};
use crate::job::turn::Turn;
use crate::kv::increments::{Increment, IncrementAnswer};
use crate::kv::{Command, normalize};

/// Characters of a value that an error repeats; values can be very long.
const SHOWN_CHARS_MAX: usize = 256;

impl Turn<'_> {
    pub(crate) fn kv(&mut self, command: Command, retried: bool) -> Reply {
        match command {
            // Most writes: what the key held before does not matter to them, so it is not looked up.
            Command::Insert { scope: _, key, value, overwrite: true } if !retried => {
                self.put(normalize(&key), value, Bytes::new())
            }
            Command::Insert { scope: _, key, value, overwrite } => {
                self.insert(normalize(&key), value, overwrite, retried)
            }
            Command::InsertAs { scope: _, key, value, task, incarnation } => {
                let again = retried || self.came_back(task, incarnation);
                self.insert(normalize(&key), value, false, again)
            }
            Command::CompareAndSet { scope: _, key, value, expected } => {
                let key = normalize(&key);
                let current = self.job.store.get(&key).map_or(0, |entry| entry.version);
                if current != expected {
                    return Err(Fault::VersionMismatch { key, expected, current });
                }
                self.put(key, value, Bytes::new())
            }
            Command::Increment { scope: _, key, by, caller } => {
                self.increment(normalize(&key), by, caller, retried)
            }
            Command::Delete { scope: _, key } => {
                let keys = self.job.store.delete(&normalize(&key));
                Ok(Answer::Deleted { keys })
            }
        }
    }

    /// `again`: the caller may have written it before, and is answered as if it had just now.
    fn insert(&mut self, key: Key, value: Bytes, overwrite: bool, again: bool) -> Reply {
        match self.job.store.get(&key) {
            Some(entry) if again && entry.value == value => {
                let (version, modified) = (entry.version, entry.modified);
                Ok(Answer::Value { key, value: Bytes::new(), version, modified })
            }
            Some(_) if !overwrite => Err(Fault::KeyExists { key }),
            _ => self.put(key, value, Bytes::new()),
        }
    }

    fn increment(&mut self, key: Key, by: i64, caller: Option<Incarnation>, retried: bool) -> Reply {
        let now = self.context.now_ms;
        if retried
            && let Some(caller) = caller
            && let Some(answer) = self.job.increments.lost_answer(caller, &key, by, now)
        {
            return Ok(answer);
        }
        let value = match self.job.store.get(&key) {
            None => 0,
            Some(entry) => integer(&entry.value)?,
        };
        let sum = value.checked_add(by).ok_or(Fault::IncrementOverflow { value, increment: by })?;
        let text = Bytes::from(sum.to_string());
        let reply = self.put(key.clone(), text.clone(), text)?;
        if let Some(caller) = caller
            && let Answer::Value { value, version, modified, .. } = &reply
        {
            let told = IncrementAnswer { value: value.clone(), version: *version, modified: *modified };
            self.job.increments.note(caller, Increment { key, by, at: now, told });
        }
        Ok(reply)
    }

    /// Writes a key as it is, and tells `told`.
    pub(crate) fn put(&mut self, key: Key, value: Bytes, told: Bytes) -> Reply {
        let index = self.context.index;
        let version = self.job.store.put(key.clone(), value, index)?;
        self.effect(Effect::KeyWritten { job: self.job.id, key: key.clone() });
        Ok(Answer::Value { key, value: told, version, modified: index })
    }
}

/// The value as decimal text, blanks around it allowed as upstream allows them.
fn integer(value: &Bytes) -> Result<i64, Fault> {
    std::str::from_utf8(value).ok().and_then(|text| text.trim_ascii().parse().ok()).ok_or_else(|| {
        // Four bytes are the longest character, so this prefix holds everything that is shown.
        let head = &value[..value.len().min(4 * SHOWN_CHARS_MAX)];
        let shown = String::from_utf8_lossy(head).chars().take(SHOWN_CHARS_MAX).collect();
        Fault::NotAnInteger { value: shown }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_decimal_and_64_bits_wide() {
        for (text, value) in [("0", 0), ("-7", -7), ("+7", 7), (" 12\n", 12), ("2999999997", 2_999_999_997)] {
            assert_eq!(integer(&Bytes::from_static(text.as_bytes())), Ok(value));
        }
        for text in ["", "x", "1x", "0x10", "1.0", "9223372036854775808"] {
            let refused = integer(&Bytes::from_static(text.as_bytes()));
            assert_eq!(refused, Err(Fault::NotAnInteger { value: text.to_owned() }));
        }
    }

    #[test]
    fn an_error_repeats_only_the_beginning_of_a_value() {
        let Err(Fault::NotAnInteger { value }) = integer(&Bytes::from(vec![b'x'; 1 << 20])) else {
            panic!("a row of letters is no number");
        };
        assert_eq!(value.len(), SHOWN_CHARS_MAX);
        assert!(integer(&Bytes::from(vec![0xff; 1 << 20])).is_err());
    }
}
