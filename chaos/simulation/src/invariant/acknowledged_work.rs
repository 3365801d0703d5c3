//! A write that was acknowledged is there for ever.

use std::collections::BTreeMap;

use tripod_state::ids::LogIndex;

/// A key's value at one version. Every write of a run has a value of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) version: u64,
    pub(crate) value: Vec<u8>,
}

/// The writes that were acknowledged, to keys that nobody deletes.
#[derive(Debug, Default)]
pub(crate) struct AcknowledgedWork {
    keys: BTreeMap<String, BTreeMap<u64, Vec<u8>>>,
    highest: LogIndex,
    writes: u64,
}

impl AcknowledgedWork {
    /// A write was acknowledged; `index` is its place in the log.
    pub(crate) fn acknowledge(&mut self, key: &str, written: Written, index: LogIndex) -> Result<(), String> {
        self.highest = self.highest.max(index);
        self.writes += 1;
        let versions = self.keys.entry(key.to_owned()).or_default();
        let Written { version, value } = written;
        match versions.insert(version, value.clone()) {
            Some(other) if other != value => Err(format!(
                "version {version} of key {key} was acknowledged to two writes, {} and {}",
                shown(&other),
                shown(&value)
            )),
            _ => Ok(()),
        }
    }

    /// What a key holds in the end; `None` if there is no such key.
    pub(crate) fn end(&self, key: &str, found: Option<&Written>) -> Result<(), String> {
        let Some((version, value)) = self.keys.get(key).and_then(BTreeMap::last_key_value) else {
            return Ok(());
        };
        let lost = format!("key {key} was acknowledged at version {version} ({})", shown(value));
        match found {
            None => Err(format!("{lost}, and is not there")),
            Some(found) if found.version < *version => {
                Err(format!("{lost}, and is at version {} in the end", found.version))
            }
            Some(found) if found.version == *version && found.value != *value => {
                Err(format!("{lost}, and holds {} instead", shown(&found.value)))
            }
            Some(_) => Ok(()),
        }
    }

    /// What every node has applied in the end.
    pub(crate) fn applied(&self, applied: LogIndex) -> Result<(), String> {
        if applied >= self.highest {
            return Ok(());
        }
        Err(format!("a write at index {} was acknowledged, but the log ends at {applied}", self.highest))
    }

    /// The keys with acknowledged writes.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.keys().map(String::as_str)
    }

    /// How many writes were acknowledged.
    pub(crate) fn writes(&self) -> u64 {
        self.writes
    }
}

fn shown(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(version: u64, value: &str) -> Written {
        Written { version, value: value.as_bytes().to_vec() }
    }

    fn two_writes() -> AcknowledgedWork {
        let mut rule = AcknowledgedWork::default();
        rule.acknowledge("k", written(1, "a"), LogIndex(7)).unwrap();
        rule.acknowledge("k", written(3, "c"), LogIndex(9)).unwrap();
        rule
    }

    #[test]
    fn what_was_acknowledged_or_something_newer_is_in_order() {
        let rule = two_writes();
        assert_eq!(rule.end("k", Some(&written(3, "c"))), Ok(()));
        assert_eq!(rule.end("k", Some(&written(4, "unknown to its writer"))), Ok(()));
        assert_eq!(rule.end("never written", None), Ok(()));
        assert_eq!(rule.applied(LogIndex(9)), Ok(()));
        assert_eq!((rule.keys().count(), rule.writes()), (1, 2));
    }

    #[test]
    fn lost_work_is_noticed() {
        let mut rule = two_writes();
        assert!(rule.end("k", None).unwrap_err().ends_with("and is not there"));
        assert!(rule.end("k", Some(&written(1, "a"))).unwrap_err().ends_with("at version 1 in the end"));
        assert!(rule.end("k", Some(&written(3, "x"))).unwrap_err().ends_with("holds x instead"));
        assert!(rule.applied(LogIndex(8)).unwrap_err().contains("index 9 was acknowledged"));
        let twice = rule.acknowledge("k", written(3, "d"), LogIndex(9)).unwrap_err();
        assert!(twice.contains("acknowledged to two writes, c and d"), "{twice}");
    }
}
