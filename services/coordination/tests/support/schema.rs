//! Messages as text: `name=value other={name=value}`, by the descriptors of the protocol crate.

use std::collections::BTreeMap;

use bytes::{Buf, Bytes};
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};
use prost_types::field_descriptor_proto::Type;
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorSet};

/// Every service and message of the protocol crate.
pub(crate) struct Schema {
    messages: BTreeMap<String, DescriptorProto>,
    /// `Service/Method` with the names of its request and reply.
    pub(crate) methods: BTreeMap<String, (String, String)>,
}

/// A value in a text.
enum Value {
    Text(String),
    Message(Vec<(String, Value)>),
}

impl Schema {
    pub(crate) fn load() -> Self {
        let files = FileDescriptorSet::decode(tripod_proto::DESCRIPTORS).expect("descriptors").file;
        let mut schema = Self { messages: BTreeMap::new(), methods: BTreeMap::new() };
        for file in files {
            let package = file.package().to_owned();
            for message in &file.message_type {
                schema.messages.insert(format!(".{package}.{}", message.name()), message.clone());
            }
            for service in &file.service {
                for method in &service.method {
                    let path = format!("{package}.{}/{}", service.name(), method.name());
                    let types = (method.input_type().to_owned(), method.output_type().to_owned());
                    schema.methods.insert(path, types);
                }
            }
        }
        schema
    }

    pub(crate) fn has_field(&self, message: &str, field: &str) -> bool {
        self.messages[message].field.iter().any(|known| known.name() == field)
    }

    pub(crate) fn encode(&self, message: &str, text: &str) -> Bytes {
        let mut out = Vec::new();
        self.encode_fields(message, &parse(&mut text.chars().peekable()), &mut out);
        out.into()
    }

    fn encode_fields(&self, message: &str, fields: &[(String, Value)], out: &mut Vec<u8>) {
        for (name, value) in fields {
            let known = self.messages[message].field.iter().find(|known| known.name() == name);
            let field = known.unwrap_or_else(|| panic!("{message} has no {name}"));
            let number = field.number().cast_unsigned();
            match value {
                Value::Message(fields) => {
                    let mut inner = Vec::new();
                    self.encode_fields(field.type_name(), fields, &mut inner);
                    put_bytes(number, &inner, out);
                }
                Value::Text(text) => put_scalar(field.r#type(), number, text, out),
            }
        }
    }

    /// The fields of a message in the order in which they came, empty for none.
    pub(crate) fn print(&self, message: &str, mut data: &[u8]) -> String {
        let mut fields = Vec::new();
        while data.has_remaining() {
            let (number, wire) = decode_key(&mut data).expect("a key");
            let descriptor = &self.messages[message];
            let field = descriptor.field.iter().find(|field| field.number().cast_unsigned() == number);
            let field = field.unwrap_or_else(|| panic!("{message} has no field {number}"));
            fields.push(format!("{}={}", field.name(), self.print_value(field, wire, &mut data)));
        }
        fields.join(" ")
    }

    fn print_value(&self, field: &FieldDescriptorProto, wire: WireType, data: &mut &[u8]) -> String {
        match wire {
            WireType::Varint => decode_varint(data).expect("a varint").cast_signed().to_string(),
            WireType::SixtyFourBit => data.get_u64_le().to_string(),
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(data).expect("a length")).expect("a length");
                let inner = data.copy_to_bytes(length);
                match field.r#type() {
                    Type::Message => format!("{{{}}}", self.print(field.type_name(), &inner)),
                    Type::String | Type::Bytes => format!("{:?}", String::from_utf8_lossy(&inner)),
                    kind => packed(kind, &inner),
                }
            }
            other => panic!("wire type {other:?}"),
        }
    }
}

fn packed(kind: Type, mut inner: &[u8]) -> String {
    let mut values = Vec::new();
    while inner.has_remaining() {
        values.push(match kind {
            Type::Fixed64 => inner.get_u64_le(),
            _ => decode_varint(&mut inner).expect("a varint"),
        });
    }
    format!("{values:?}")
}

fn put_scalar(kind: Type, number: u32, text: &str, out: &mut Vec<u8>) {
    match kind {
        Type::String | Type::Bytes => put_bytes(number, text.as_bytes(), out),
        Type::Fixed64 => {
            encode_key(number, WireType::SixtyFourBit, out);
            out.extend_from_slice(&text.parse::<u64>().expect("a number").to_le_bytes());
        }
        _ => {
            encode_key(number, WireType::Varint, out);
            let value = text.parse::<i64>().unwrap_or_else(|_| i64::from(text == "true"));
            encode_varint(value.cast_unsigned(), out);
        }
    }
}

fn put_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

type Characters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Fields up to the end or the closing brace.
fn parse(characters: &mut Characters<'_>) -> Vec<(String, Value)> {
    let mut fields = Vec::new();
    loop {
        while characters.next_if_eq(&' ').is_some() {}
        if characters.peek().is_none() || characters.next_if_eq(&'}').is_some() {
            return fields;
        }
        let name: String = characters.by_ref().take_while(|character| *character != '=').collect();
        let value = if characters.next_if_eq(&'{').is_some() {
            Value::Message(parse(characters))
        } else if characters.next_if_eq(&'"').is_some() {
            Value::Text(characters.by_ref().take_while(|character| *character != '"').collect())
        } else {
            let mut text = String::new();
            while let Some(character) = characters.next_if(|next| !matches!(next, ' ' | '}')) {
                text.push(character);
            }
            Value::Text(text)
        };
        fields.push((name, value));
    }
}
