//! Values of whatever can be read by serde, drawn instead of read: the types of the log, of peers and of files are private to
//! their crates, and this needs to know none of them.

use std::fmt;

use serde::de::{self, DeserializeSeed, IntoDeserializer as _, Visitor};

use crate::source::Source;
use crate::words;

/// Values within each other: deeper ones end with what is empty.
const DEPTH_MAX: usize = 24;

/// Draws values. The last name of a field or a type that was met says what they mean.
pub(crate) struct Drawn<'a> {
    source: &'a mut Source,
    name: &'static str,
    depth: usize,
}

/// What was drawn is no such value: texts with a form, numbers with bounds.
#[derive(Debug)]
pub(crate) struct Unfit(String);

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unfit {}

impl de::Error for Unfit {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl<'a> Drawn<'a> {
    /// Values of a source's choices.
    pub(crate) fn new(source: &'a mut Source) -> Self {
        Self { source, name: "", depth: 0 }
    }

    fn number(&mut self) -> u64 {
        words::number(self.source, self.name).unwrap_or_else(|| self.source.number())
    }

    fn text(&mut self) -> String {
        words::text(self.source, self.name).map_or_else(|| self.source.text(), str::to_owned)
    }

    fn length(&mut self) -> usize {
        if self.depth > DEPTH_MAX { 0 } else { self.source.length() }
    }

    /// The same source one level deeper.
    fn inner(&mut self) -> Drawn<'_> {
        Drawn { source: self.source, name: self.name, depth: self.depth + 1 }
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $kind:ty;)*) => {$(
        fn $method<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Unfit> {
            let number = self.number();
            visitor.$visit(number as $kind)
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Drawn<'_> {
    type Error = Unfit;

    numbers! {
        deserialize_i8 visit_i8 i8;
        deserialize_i16 visit_i16 i16;
        deserialize_i32 visit_i32 i32;
        deserialize_u8 visit_u8 u8;
        deserialize_u16 visit_u16 u16;
        deserialize_u32 visit_u32 u32;
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Unfit> {
        Err(de::Error::custom("a value that does not say what it is"))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_bool(self.source.one_in(2))
    }

    fn deserialize_i64<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Unfit> {
        let number = self.number();
        visitor.visit_i64(number.cast_signed())
    }

    fn deserialize_u64<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Unfit> {
        let number = self.number();
        visitor.visit_u64(number)
    }

    fn deserialize_u128<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Unfit> {
        let high = if self.source.one_in(8) { u128::from(self.source.bits()) << 64 } else { 0 };
        let low = self.number();
        visitor.visit_u128(high | u128::from(low))
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_f32(f32::from_bits(u32::try_from(self.source.bits() >> 32).expect("32 bits")))
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_f64(f64::from_bits(self.source.bits()))
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_char(*self.source.pick(&['a', '\0', '\u{1f980}']))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.deserialize_string(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Unfit> {
        let text = self.text();
        visitor.visit_string(text)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.deserialize_byte_buf(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        let about = if self.source.one_in(30) { 2_000 } else { 6 };
        visitor.visit_byte_buf(self.source.bytes(about))
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Unfit> {
        if self.depth > DEPTH_MAX || self.source.one_in(3) {
            return visitor.visit_none();
        }
        visitor.visit_some(self.inner())
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        visitor.visit_newtype_struct(Drawn { name, ..self.inner() })
    }

    fn deserialize_seq<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Unfit> {
        let left = self.length();
        visitor.visit_seq(Elements { of: self, left, fields: None })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, left: usize, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_seq(Elements { of: self, left, fields: None })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        left: usize,
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        visitor.visit_seq(Elements { of: Drawn { name, ..self }, left, fields: None })
    }

    fn deserialize_map<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Unfit> {
        let left = self.length();
        visitor.visit_map(Elements { of: self, left, fields: None })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        visitor.visit_seq(Elements { of: self, left: fields.len(), fields: Some(fields) })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        visitor.visit_enum(Variant { variants, of: self.inner() })
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_u64(self.source.bits() % 4)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_unit()
    }

    fn deserialize_i128<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Unfit> {
        let number = self.number();
        visitor.visit_i128(i128::from(number.cast_signed()))
    }
}

/// Of a list, a map, or a struct, whose fields have names.
struct Elements<'a> {
    of: Drawn<'a>,
    left: usize,
    fields: Option<&'static [&'static str]>,
}

impl Elements<'_> {
    fn draw<'de, T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Unfit> {
        let name = self.fields.map_or(self.of.name, |fields| fields[fields.len() - self.left]);
        seed.deserialize(Drawn { name, ..self.of.inner() })
    }
}

impl<'de> de::SeqAccess<'de> for Elements<'_> {
    type Error = Unfit;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Unfit> {
        if self.left == 0 {
            return Ok(None);
        }
        let value = self.draw(seed)?;
        self.left -= 1;
        Ok(Some(value))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> de::MapAccess<'de> for Elements<'_> {
    type Error = Unfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Unfit> {
        if self.left == 0 {
            return Ok(None);
        }
        let key = self.draw(seed)?;
        self.left -= 1;
        Ok(Some(key))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Unfit> {
        seed.deserialize(self.of.inner())
    }
}

struct Variant<'a> {
    variants: &'static [&'static str],
    of: Drawn<'a>,
}

impl<'de, 'a> de::EnumAccess<'de> for Variant<'a> {
    type Error = Unfit;
    type Variant = Drawn<'a>;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Drawn<'a>), Unfit> {
        // Those that hold a value of their own kind are drawn by depth no more often than others, so nests end.
        let at = self.of.source.below(self.variants.len());
        let at = if self.of.depth > DEPTH_MAX { 0 } else { at };
        let index = u32::try_from(at).expect("few variants");
        Ok((seed.deserialize(index.into_deserializer())?, self.of))
    }
}

impl<'de> de::VariantAccess<'de> for Drawn<'_> {
    type Error = Unfit;

    fn unit_variant(self) -> Result<(), Unfit> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Unfit> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, left: usize, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_seq(Elements { of: self, left, fields: None })
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        visitor.visit_seq(Elements { of: self, left: fields.len(), fields: Some(fields) })
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use std::collections::BTreeSet;
    use tripod_state::{Command, Envelope};

    use super::*;

    #[test]
    fn commands_of_every_kind_are_drawn() {
        let mut source = Source::new(3);
        let drawn = (0..400).filter_map(|_| Envelope::deserialize(Drawn::new(&mut source)).ok());
        let kinds: BTreeSet<&str> = drawn
            .map(|envelope| match envelope.command {
                Command::Job(_) => "job",
                Command::Task(_) => "task",
                Command::Kv(_) => "kv",
                Command::Barrier(_) => "barrier",
                Command::Session(_) => "session",
                Command::Member(_) => "member",
                Command::Runtime(_) => "runtime",
                Command::Retried(_) => "retried",
                Command::Level(_) => "level",
                Command::Ray(_) => "ray",
                Command::Mindspore(_) => "mindspore",
                Command::Mars(_) => "mars",
                Command::Token(_) => "token",
                Command::By(_) => "by",
                Command::Identity(_) => "identity",
            })
            .collect();
        assert_eq!(kinds.len(), 15, "{kinds:?}");
    }
}
