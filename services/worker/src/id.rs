//! Ids as they travel inside values.

use serde::{Deserialize, Serialize};

use crate::value::OBJECT_ID;

/// The id of an object, which may stand inside of a value. It refers to the object and does not keep it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u64);

impl Serialize for ObjectId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The writer of objects takes numbers with a sign, and an id has all 64 bits.
        serializer.serialize_newtype_struct(OBJECT_ID, &i64::from_ne_bytes(self.0.to_ne_bytes()))
    }
}

impl<'de> Deserialize<'de> for ObjectId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Self)
    }
}
