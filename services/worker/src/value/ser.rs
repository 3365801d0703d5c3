//! Values as objects.

use bytes::Bytes;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant,
};
use serde::{Serialize, Serializer};
use tripod_proto::ray::{Bool, Dict, DictEntry, Double, Empty, Int, List, Obj, ObjId, String as Text, Tuple};

use super::{DEPTH_MAX, OBJECT_ID, ValueError};

/// A value as an object.
///
/// # Errors
/// A number that does not fit 64 signed bits, a value that is nested too deep, or the value's own refusal.
pub fn to_obj<T: Serialize + ?Sized>(value: &T) -> Result<Obj, ValueError> {
    value.serialize(Writer { depth: 0 })
}

/// Writes one value.
#[derive(Clone, Copy)]
struct Writer {
    /// Values around it.
    depth: usize,
}

/// Writes the parts of a value one by one.
struct Parts {
    writer: Writer,
    shape: Shape,
    /// The name of the variant that has these for its content.
    variant: Option<&'static str>,
}

enum Shape {
    List(Vec<Obj>),
    Tuple(Vec<Obj>),
    Dict { entries: Vec<DictEntry>, key: Option<Box<Obj>> },
}

fn text(text: &str) -> Obj {
    let data = Bytes::copy_from_slice(text.as_bytes());
    Obj { string_data: Some(Text { data }), ..Obj::default() }
}

fn variant(name: &str, content: Obj) -> Obj {
    dict(vec![DictEntry { key: Some(text(name)), value: Some(content) }])
}

fn dict(elem: Vec<DictEntry>) -> Obj {
    Obj { dict_data: Some(Dict { elem }), ..Obj::default() }
}

fn empty() -> Obj {
    Obj { empty_data: Some(Empty {}), ..Obj::default() }
}

impl Writer {
    fn inside(self) -> Result<Self, ValueError> {
        if self.depth >= DEPTH_MAX {
            return Err(ValueError(format!("the value is nested deeper than {DEPTH_MAX} levels")));
        }
        Ok(Self { depth: self.depth + 1 })
    }

    fn parts(self, shape: Shape, variant: Option<&'static str>) -> Result<Parts, ValueError> {
        Ok(Parts { writer: self.inside()?, shape, variant })
    }

    fn int(self, data: i128) -> Result<Obj, ValueError> {
        let data = i64::try_from(data)
            .map_err(|_| ValueError(format!("the number {data} does not fit 64 bits with a sign")))?;
        Ok(Obj { int_data: Some(Int { data }), ..Obj::default() })
    }
}

impl Parts {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ValueError> {
        let value = value.serialize(self.writer)?;
        match &mut self.shape {
            Shape::List(elements) | Shape::Tuple(elements) => elements.push(value),
            Shape::Dict { entries, key } => {
                entries.push(DictEntry { key: key.take().map(|key| *key), value: Some(value) });
            }
        }
        Ok(())
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), ValueError> {
        if let Shape::Dict { key, .. } = &mut self.shape {
            *key = Some(Box::new(text(name)));
        }
        self.push(value)
    }

    fn done(self) -> Obj {
        let whole = match self.shape {
            Shape::List(elem) => Obj { list_data: Some(List { elem }), ..Obj::default() },
            Shape::Tuple(elem) => Obj { tuple_data: Some(Tuple { elem }), ..Obj::default() },
            Shape::Dict { entries, .. } => dict(entries),
        };
        match self.variant {
            Some(name) => variant(name, whole),
            None => whole,
        }
    }
}

const DICT: Shape = Shape::Dict { entries: Vec::new(), key: None };

macro_rules! ints {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, value: $type) -> Result<Obj, ValueError> {
            self.int(i128::from(value))
        })*
    };
}

impl Serializer for Writer {
    type Ok = Obj;
    type Error = ValueError;
    type SerializeSeq = Parts;
    type SerializeTuple = Parts;
    type SerializeTupleStruct = Parts;
    type SerializeTupleVariant = Parts;
    type SerializeMap = Parts;
    type SerializeStruct = Parts;
    type SerializeStructVariant = Parts;

    ints! {
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64
    }

    fn serialize_bool(self, data: bool) -> Result<Obj, ValueError> {
        Ok(Obj { bool_data: Some(Bool { data }), ..Obj::default() })
    }

    fn serialize_f32(self, value: f32) -> Result<Obj, ValueError> {
        self.serialize_f64(f64::from(value))
    }

    fn serialize_f64(self, data: f64) -> Result<Obj, ValueError> {
        Ok(Obj { double_data: Some(Double { data }), ..Obj::default() })
    }

    fn serialize_char(self, value: char) -> Result<Obj, ValueError> {
        Ok(text(value.encode_utf8(&mut [0; 4])))
    }

    fn serialize_str(self, value: &str) -> Result<Obj, ValueError> {
        Ok(text(value))
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<Obj, ValueError> {
        let data = Bytes::copy_from_slice(value);
        Ok(Obj { string_data: Some(Text { data }), ..Obj::default() })
    }

    fn serialize_none(self) -> Result<Obj, ValueError> {
        Ok(empty())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Obj, ValueError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Obj, ValueError> {
        Ok(empty())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Obj, ValueError> {
        Ok(empty())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Result<Obj, ValueError> {
        Ok(text(name))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Obj, ValueError> {
        let inner = value.serialize(self)?;
        match inner.int_data {
            // The 64 bits of an id, which may be any.
            Some(Int { data }) if name == OBJECT_ID => {
                let data = u64::from_ne_bytes(data.to_ne_bytes());
                Ok(Obj { objectid_data: Some(ObjId { data }), ..Obj::default() })
            }
            _ => Ok(inner),
        }
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Result<Obj, ValueError> {
        Ok(variant(name, value.serialize(self.inside()?)?))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts, ValueError> {
        self.parts(Shape::List(Vec::new()), None)
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts, ValueError> {
        self.parts(Shape::Tuple(Vec::new()), None)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts, ValueError> {
        self.parts(Shape::Tuple(Vec::new()), None)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Parts, ValueError> {
        self.inside()?.parts(Shape::Tuple(Vec::new()), Some(name))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts, ValueError> {
        self.parts(DICT, None)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Parts, ValueError> {
        self.parts(DICT, None)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Parts, ValueError> {
        self.inside()?.parts(DICT, Some(name))
    }
}

macro_rules! elements {
    ($($trait:ident: $method:ident),*) => {
        $(impl $trait for Parts {
            type Ok = Obj;
            type Error = ValueError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ValueError> {
                self.push(value)
            }

            fn end(self) -> Result<Obj, ValueError> {
                Ok(self.done())
            }
        })*
    };
}

macro_rules! fields {
    ($($trait:ident),*) => {
        $(impl $trait for Parts {
            type Ok = Obj;
            type Error = ValueError;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), ValueError> {
                self.field(name, value)
            }

            fn end(self) -> Result<Obj, ValueError> {
                Ok(self.done())
            }
        })*
    };
}

elements! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field
}
fields! { SerializeStruct, SerializeStructVariant }

impl SerializeMap for Parts {
    type Ok = Obj;
    type Error = ValueError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ValueError> {
        let written = value.serialize(self.writer)?;
        if let Shape::Dict { key, .. } = &mut self.shape {
            *key = Some(Box::new(written));
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ValueError> {
        self.push(value)
    }

    fn end(self) -> Result<Obj, ValueError> {
        Ok(self.done())
    }
}
