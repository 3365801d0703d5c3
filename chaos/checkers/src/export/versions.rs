//! Which value a version of a register stands for: others compare values, and not versions.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{Call, Found, Key, Operation, Reply, Value, Version};

/// What is known of the versions of all registers.
#[derive(Debug, Default)]
pub(super) struct Versions {
    values: BTreeMap<(Key, Version), BTreeSet<Value>>,
    /// Registers whose versions begin anew, since they were deleted.
    deleted: BTreeSet<Key>,
}

/// What a register with a version holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// It does not exist.
    Nothing,
    Value(Value),
    /// Nobody saw it, or there may have been more than one.
    NotKnown,
}

impl Versions {
    pub(super) fn of(operations: &[Operation]) -> Self {
        let mut versions = Self::default();
        for operation in operations {
            match (&operation.call, operation.reply()) {
                (Call::Read { key }, Some(Reply::Value(Some(found)))) => {
                    let Found { value, version, .. } = found;
                    versions.saw(key, *version, *value);
                }
                (
                    Call::Write { key, value }
                    | Call::Insert { key, value }
                    | Call::CompareAndSet { key, value, .. },
                    Some(Reply::Written { version, .. }),
                ) => versions.saw(key, *version, *value),
                (Call::Delete { key }, _) if operation.outcome.may_have_effect() => {
                    versions.deleted.insert(key.clone());
                }
                _ => {}
            }
        }
        versions
    }

    fn saw(&mut self, key: &Key, version: Option<Version>, value: Value) {
        if let Some(version) = version {
            self.values.entry((key.clone(), version)).or_default().insert(value);
        }
    }

    /// Whether the register may have been deleted.
    pub(super) fn was_deleted(&self, key: &Key) -> bool {
        self.deleted.contains(key)
    }

    /// What the register holds at a version.
    pub(super) fn held(&self, key: &Key, version: Version) -> Held {
        if version == Version(0) {
            return Held::Nothing;
        }
        let values = self.values.get(&(key.clone(), version)).filter(|_| !self.was_deleted(key));
        match values.map(|values| (values.len(), values.first())) {
            Some((1, Some(value))) => Held::Value(*value),
            _ => Held::NotKnown,
        }
    }
}
