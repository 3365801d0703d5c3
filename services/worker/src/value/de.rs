//! Objects as values.

use serde::Deserialize;
use serde::de::{
    Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess, Unexpected, VariantAccess,
    Visitor, value::StrDeserializer,
};
use tripod_proto::ray::{DictEntry, Obj};

use super::ValueError;

/// An object as a value.
///
/// # Errors
/// It is another kind of value, or larger than the type that was asked for.
pub fn from_obj<'a, T: Deserialize<'a>>(object: &'a Obj) -> Result<T, ValueError> {
    T::deserialize(Reader(object))
}

/// Reads one value.
#[derive(Clone, Copy)]
struct Reader<'a>(&'a Obj);

/// Reads elements or entries one by one.
struct Elements<'a>(std::slice::Iter<'a, Obj>);
struct Entries<'a> {
    left: std::slice::Iter<'a, DictEntry>,
    value: Option<&'a Obj>,
}

/// A variant with its content.
struct Variant<'a> {
    name: &'a str,
    content: Option<&'a Obj>,
}

fn utf8(bytes: &[u8]) -> Result<&str, ValueError> {
    std::str::from_utf8(bytes)
        .map_err(|_| ValueError::invalid_value(Unexpected::Bytes(bytes), &"text in UTF-8"))
}

fn part(part: &Option<Obj>) -> Result<&Obj, ValueError> {
    part.as_ref().ok_or_else(|| ValueError("an entry of a dictionary lacks its key or its value".to_owned()))
}

impl<'a> Reader<'a> {
    fn variant(self) -> Result<Variant<'a>, ValueError> {
        if let Some(text) = &self.0.string_data {
            return Ok(Variant { name: utf8(&text.data)?, content: None });
        }
        match self.0.dict_data.as_ref().map(|dict| &dict.elem[..]) {
            Some([DictEntry { key: Some(Obj { string_data: Some(name), .. }), value: Some(content) }]) => {
                Ok(Variant { name: utf8(&name.data)?, content: Some(content) })
            }
            _ => Err(ValueError("not a variant: neither a name nor a dictionary of one name".to_owned())),
        }
    }
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        let object = self.0;
        if let Some(text) = &object.string_data {
            return match std::str::from_utf8(&text.data) {
                Ok(text) => visitor.visit_borrowed_str(text),
                Err(_) => visitor.visit_borrowed_bytes(&text.data),
            };
        }
        if let Some(elements) = elements(object) {
            return visitor.visit_seq(Elements(elements.iter()));
        }
        if let Some(dict) = &object.dict_data {
            return visitor.visit_map(Entries { left: dict.elem.iter(), value: None });
        }
        match object {
            Obj { int_data: Some(int), .. } => visitor.visit_i64(int.data),
            Obj { long_data: Some(long), .. } => visitor.visit_i64(long.data),
            Obj { double_data: Some(double), .. } => visitor.visit_f64(double.data),
            Obj { bool_data: Some(flag), .. } => visitor.visit_bool(flag.data),
            Obj { objectid_data: Some(id), .. } => visitor.visit_u64(id.data),
            Obj { empty_data: Some(_), .. } => visitor.visit_unit(),
            Obj { array_data: Some(_), .. } => {
                Err(ValueError("the object is an array, which only Python reads".to_owned()))
            }
            Obj { pyobj_data: Some(_), .. } => {
                Err(ValueError("the object is pickled, which only Python reads".to_owned()))
            }
            _ => Err(ValueError("the object has no value".to_owned())),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.0.empty_data {
            Some(_) => visitor.visit_none(),
            None => visitor.visit_some(self),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match &self.0.string_data {
            Some(text) => visitor.visit_borrowed_bytes(&text.data),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        visitor.visit_enum(self.variant()?)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// The elements of a list or a tuple.
fn elements(object: &Obj) -> Option<&[Obj]> {
    let list = object.list_data.as_ref().map(|list| &list.elem[..]);
    list.or_else(|| object.tuple_data.as_ref().map(|tuple| &tuple.elem[..]))
}

impl<'de> SeqAccess<'de> for Elements<'de> {
    type Error = ValueError;

    fn next_element_seed<T: serde::de::DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ValueError> {
        self.0.next().map(|object| seed.deserialize(Reader(object))).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = ValueError;

    fn next_key_seed<K: serde::de::DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ValueError> {
        let Some(entry) = self.left.next() else { return Ok(None) };
        self.value = Some(part(&entry.value)?);
        seed.deserialize(Reader(part(&entry.key)?)).map(Some)
    }

    fn next_value_seed<T: serde::de::DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<T::Value, ValueError> {
        let value =
            self.value.take().ok_or_else(|| ValueError("a value was asked for before its key".into()))?;
        seed.deserialize(Reader(value))
    }
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = ValueError;
    type Variant = Self;

    fn variant_seed<T: serde::de::DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<(T::Value, Self), ValueError> {
        let name: StrDeserializer<'_, ValueError> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> Variant<'de> {
    fn content(&self) -> Result<Reader<'de>, ValueError> {
        self.content
            .map(Reader)
            .ok_or_else(|| ValueError(format!("variant `{}` lacks its content", self.name)))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = ValueError;

    fn unit_variant(self) -> Result<(), ValueError> {
        match self.content {
            None => Ok(()),
            Some(_) => Err(ValueError(format!("variant `{}` has a content", self.name))),
        }
    }

    fn newtype_variant_seed<T: serde::de::DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, ValueError> {
        seed.deserialize(self.content()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ValueError> {
        self.content()?.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        self.content()?.deserialize_any(visitor)
    }
}
