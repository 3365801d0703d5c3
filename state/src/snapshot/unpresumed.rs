//! Reads maps and sets without room for as many elements as they say that they have: that is the word of whoever wrote
//! them, and the collections themselves take it.

use std::collections::{BTreeMap, BTreeSet};

use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Deserializer};

/// For `#[serde(deserialize_with)]`.
///
/// # Errors
/// The deserializer's.
pub(crate) fn map<'de, D, K, V>(deserializer: D) -> Result<OrdMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord + Clone,
    V: Deserialize<'de> + Clone,
{
    Ok(BTreeMap::deserialize(deserializer)?.into_iter().collect())
}

/// The same for sets.
///
/// # Errors
/// The deserializer's.
pub(crate) fn set<'de, D, A>(deserializer: D) -> Result<OrdSet<A>, D::Error>
where
    D: Deserializer<'de>,
    A: Deserialize<'de> + Ord + Clone,
{
    Ok(BTreeSet::deserialize(deserializer)?.into_iter().collect())
}
