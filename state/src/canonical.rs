//! What a value says, as bytes that are the same in every build: for decisions of apply that rest on a whole value.
//!
//! `Hash` does not do for that: what it feeds a hasher is the compiler's and the library's affair, and two builds that
//! apply one log may differ in it. What is fed here is what serde is told, whose order and numbers the frozen files of
//! journals hold still.

use std::fmt::Display;
use std::hash::Hasher;

use serde::ser::{
    Error, Impossible, Serialize, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// Feeds what `value` says to a hasher, through `write` alone: integers as 16 bytes, lengths and numbers of variants as 8,
/// texts and bytes as they are behind their length.
pub(crate) fn feed<H: Hasher>(value: &impl Serialize, hasher: &mut H) {
    value
        .serialize(Feeder(hasher))
        .expect("our values hold neither maps nor fractions, and know their lengths");
}

/// How many bytes [`feed`] feeds of `value`.
pub(crate) fn bytes_of(value: &impl Serialize) -> u64 {
    let mut counter = Counter(0);
    feed(value, &mut counter);
    counter.0
}

/// Counts what it is given.
struct Counter(u64);

impl Hasher for Counter {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = self.0.saturating_add(bytes.len() as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

struct Feeder<'a, H>(&'a mut H);

/// A value of a kind that has no canonical bytes here.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unfit(String);

impl Error for Unfit {
    fn custom<T: Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

type Fed = Result<(), Unfit>;

impl<H: Hasher> Feeder<'_, H> {
    fn count(&mut self, number: u64) {
        self.0.write(&number.to_le_bytes());
    }

    fn integer(self, value: u128) -> Fed {
        self.0.write(&value.to_le_bytes());
        Ok(())
    }

    /// Negative ones as what is behind the largest.
    fn signed(self, value: i128) -> Fed {
        self.0.write(&value.to_le_bytes());
        Ok(())
    }

    fn part<T: Serialize + ?Sized>(&mut self, value: &T) -> Fed {
        value.serialize(Feeder(&mut *self.0))
    }
}

impl<H: Hasher> Serializer for Feeder<'_, H> {
    type Ok = ();
    type Error = Unfit;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Impossible<(), Unfit>;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bool(self, value: bool) -> Fed {
        self.integer(value.into())
    }

    fn serialize_i8(self, value: i8) -> Fed {
        self.signed(value.into())
    }

    fn serialize_i16(self, value: i16) -> Fed {
        self.signed(value.into())
    }

    fn serialize_i32(self, value: i32) -> Fed {
        self.signed(value.into())
    }

    fn serialize_i64(self, value: i64) -> Fed {
        self.signed(value.into())
    }

    fn serialize_u8(self, value: u8) -> Fed {
        self.integer(value.into())
    }

    fn serialize_u16(self, value: u16) -> Fed {
        self.integer(value.into())
    }

    fn serialize_u32(self, value: u32) -> Fed {
        self.integer(value.into())
    }

    fn serialize_u64(self, value: u64) -> Fed {
        self.integer(value.into())
    }

    fn serialize_u128(self, value: u128) -> Fed {
        self.integer(value)
    }

    fn serialize_f32(self, _: f32) -> Fed {
        Err(Unfit::custom("a fraction"))
    }

    fn serialize_f64(self, _: f64) -> Fed {
        Err(Unfit::custom("a fraction"))
    }

    fn serialize_char(self, value: char) -> Fed {
        self.integer(u32::from(value).into())
    }

    fn serialize_str(self, value: &str) -> Fed {
        self.serialize_bytes(value.as_bytes())
    }

    fn serialize_bytes(mut self, value: &[u8]) -> Fed {
        self.count(value.len() as u64);
        self.0.write(value);
        Ok(())
    }

    fn serialize_none(mut self) -> Fed {
        self.count(0);
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(mut self, value: &T) -> Fed {
        self.count(1);
        self.part(value)
    }

    fn serialize_unit(self) -> Fed {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Fed {
        Ok(())
    }

    fn serialize_unit_variant(mut self, _: &'static str, variant: u32, _: &'static str) -> Fed {
        self.count(variant.into());
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(mut self, _: &'static str, value: &T) -> Fed {
        self.part(value)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        value: &T,
    ) -> Fed {
        self.count(variant.into());
        self.part(value)
    }

    fn serialize_seq(mut self, length: Option<usize>) -> Result<Self, Unfit> {
        let length = length.ok_or_else(|| Unfit::custom("a sequence of unknown length"))?;
        self.count(length as u64);
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Unfit> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Unfit> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        mut self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Unfit> {
        self.count(variant.into());
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Unfit> {
        Err(Unfit::custom("a map"))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Unfit> {
        Ok(self)
    }

    fn serialize_struct_variant(
        mut self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Unfit> {
        self.count(variant.into());
        Ok(self)
    }
}

macro_rules! parts {
    ($($kind:ident::$method:ident($($name:ident: $text:ty)?)),+ $(,)?) => {$(
        impl<H: Hasher> $kind for Feeder<'_, H> {
            type Ok = ();
            type Error = Unfit;

            fn $method<T: Serialize + ?Sized>(&mut self, $($name: $text,)? value: &T) -> Fed {
                self.part(value)
            }

            fn end(self) -> Fed {
                Ok(())
            }
        }
    )+};
}

parts!(
    SerializeSeq::serialize_element(),
    SerializeTuple::serialize_element(),
    SerializeTupleStruct::serialize_field(),
    SerializeTupleVariant::serialize_field(),
    SerializeStruct::serialize_field(_name: &'static str),
    SerializeStructVariant::serialize_field(_name: &'static str),
);

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use xxhash_rust::xxh3::Xxh3;

    use super::*;
    use crate::command::{Command, Scope};
    use crate::ids::{JobId, ServiceIncarnation, TaskId};
    use crate::{barrier, kv};

    fn digest(value: &impl Serialize) -> u64 {
        let mut hasher = Xxh3::new();
        feed(value, &mut hasher);
        hasher.finish()
    }

    /// Frozen: sessions remember such digests, and nodes of two builds must come to the same.
    #[test]
    fn the_bytes_of_a_value_never_change() {
        let scope = Scope { job: JobId(3), service: Some(ServiceIncarnation(9)) };
        let insert =
            kv::Command::Insert { scope, key: "k".into(), value: Bytes::from_static(b"v"), overwrite: true };
        let tasks = vec![TaskId(-1), TaskId(7)];
        let (barrier, counter) = ("start".to_owned(), crate::ids::BarrierCounter(2));
        let arrive =
            barrier::Command::Arrive { scope, barrier, counter, timeout_ms: -5, tasks, task: TaskId(0) };
        let both = [Command::Kv(insert), Command::Retried(Box::new(Command::Barrier(arrive)))];
        assert_eq!(both.each_ref().map(digest), [17_208_659_822_294_722_336, 18_251_630_612_466_629_936]);
    }

    #[test]
    fn what_is_put_together_otherwise_is_another_value() {
        assert_ne!(digest(&("ab", "c")), digest(&("a", "bc")));
        assert_ne!(digest(&vec![vec![1_u8], vec![]]), digest(&vec![vec![], vec![1_u8]]));
        assert_ne!(digest(&None::<u8>), digest(&Some(0_u8)));
        assert_ne!(digest(&-1_i64), digest(&u64::MAX));
    }
}
