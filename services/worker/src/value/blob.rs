//! Bytes as they are.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

/// Bytes, which are written as they are. A `Vec<u8>` by itself is a list of numbers, which takes many times the room.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Blob(pub Vec<u8>);

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} bytes)", self.0.len())
    }
}

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl Visitor<'_> for Bytes {
            type Value = Blob;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Blob, E> {
                Ok(Blob(bytes.to_vec()))
            }
        }

        deserializer.deserialize_bytes(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{from_obj, to_obj};

    #[test]
    fn bytes_survive_and_take_little_more_room_than_they_are() {
        let blob = Blob((0..=255).collect());
        let object = to_obj(&blob).unwrap();
        assert!(prost::Message::encoded_len(&object) < 270);
        assert_eq!(from_obj::<Blob>(&object).unwrap(), blob);
        assert_eq!(from_obj::<Blob>(&to_obj("text").unwrap()).unwrap(), Blob(b"text".to_vec()));
        assert!(from_obj::<Blob>(&to_obj(&5).unwrap()).is_err());
    }
}
