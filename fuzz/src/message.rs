//! Messages of protobuf as bytes, made from their descriptions: every field that a message has, with values that mean
//! something, and here and there one that it cannot have.

use std::collections::HashMap;
use std::sync::LazyLock;

use prost::Message as _;
use prost::encoding::encode_varint;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorSet};

use crate::source::Source;
use crate::words;

/// How deep messages of fields stand within each other as a rule.
const DEPTH: usize = 6;
/// And how deep now and then: beyond what decoders read.
const DEPTH_BEYOND: usize = 120;
/// Fields of one message altogether, so that what branches at every level ends.
const FIELDS_MAX: usize = 4_000;

/// One call of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Method {
    /// `package.Service/Method`.
    pub(crate) path: String,
    /// The full name of its message.
    pub(crate) input: String,
    /// The client sends a stream of them.
    pub(crate) streams: bool,
}

struct Known {
    messages: HashMap<String, DescriptorProto>,
    methods: Vec<Method>,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let set = FileDescriptorSet::decode(tripod_proto::DESCRIPTORS).expect("the build wrote it");
    let mut known = Known { messages: HashMap::new(), methods: Vec::new() };
    for file in set.file {
        let package = file.package().to_owned();
        for message in &file.message_type {
            note(&mut known.messages, &package, message);
        }
        for service in &file.service {
            let service_path = join(&package, service.name());
            known.methods.extend(service.method.iter().map(|method| Method {
                path: format!("{service_path}/{}", method.name()),
                input: method.input_type().trim_start_matches('.').to_owned(),
                streams: method.client_streaming(),
            }));
        }
    }
    known
});

fn note(messages: &mut HashMap<String, DescriptorProto>, package: &str, message: &DescriptorProto) {
    let name = join(package, message.name());
    for nested in &message.nested_type {
        note(messages, &name, nested);
    }
    messages.insert(name, message.clone());
}

fn join(package: &str, name: &str) -> String {
    if package.is_empty() { name.to_owned() } else { format!("{package}.{name}") }
}

/// The calls of services, in the order of their descriptions.
///
/// # Panics
/// One of the services has no call: its name is wrong.
#[must_use]
pub(crate) fn methods(services: &[&str]) -> Vec<Method> {
    let mut found = Vec::new();
    for service in services {
        let before = found.len();
        let of_it = |method: &&Method| method.path.split('/').next() == Some(service);
        found.extend(KNOWN.methods.iter().filter(of_it).cloned());
        assert!(found.len() > before, "there is no service {service}");
    }
    found
}

/// A message of that full name, encoded.
///
/// # Panics
/// There is no such message.
#[must_use]
pub(crate) fn message(source: &mut Source, name: &str) -> Vec<u8> {
    let depth = if source.one_in(200) { DEPTH_BEYOND } else { DEPTH };
    Maker { source, left: FIELDS_MAX }.message(name, depth)
}

struct Maker<'a> {
    source: &'a mut Source,
    left: usize,
}

impl Maker<'_> {
    fn message(&mut self, name: &str, depth: usize) -> Vec<u8> {
        let known = KNOWN.messages.get(name).unwrap_or_else(|| panic!("there is no message {name}"));
        let mut bytes = Vec::new();
        let mut chosen = HashMap::new();
        for (at, field) in known.field.iter().enumerate() {
            if let Some(oneof) = field.oneof_index.filter(|_| !field.proto3_optional()) {
                let choice = chosen.entry(oneof).or_insert_with(|| {
                    let among: Vec<usize> = known
                        .field
                        .iter()
                        .enumerate()
                        .filter(|(_, other)| other.oneof_index == Some(oneof))
                        .map(|(at, _)| at)
                        .collect();
                    *self.source.pick(&among)
                });
                if *choice != at {
                    continue;
                }
            } else if self.source.one_in(6) {
                continue;
            }
            let many = if field.label() == Label::Repeated { self.source.length() } else { 1 };
            for _ in 0..many {
                self.field(field, depth, &mut bytes);
            }
        }
        bytes
    }

    fn field(&mut self, field: &FieldDescriptorProto, depth: usize, out: &mut Vec<u8>) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let number = u64::try_from(field.number()).expect("numbers of fields are positive");
        let mut head = |wire: u64| encode_varint(number << 3 | wire, out);
        match field.r#type() {
            Type::Double | Type::Fixed64 | Type::Sfixed64 => {
                head(1);
                out.extend_from_slice(&self.number(field.name()).to_le_bytes());
            }
            Type::Float | Type::Fixed32 | Type::Sfixed32 => {
                head(5);
                out.extend_from_slice(&self.number(field.name()).to_le_bytes()[..4]);
            }
            Type::Message | Type::Group => {
                if depth == 0 {
                    return;
                }
                head(2);
                let name = field.type_name().trim_start_matches('.').to_owned();
                put(&self.message(&name, depth - 1), out);
            }
            Type::String => {
                head(2);
                let text = self.text(field.name());
                put(text.as_bytes(), out);
            }
            Type::Bytes if field.name() == "message" && self.source.one_in(2) => {
                // A message that is passed on.
                head(2);
                put(&self.message("xla.coordination.HeartbeatRequest", depth.min(2)), out);
            }
            Type::Bytes => {
                head(2);
                let bytes = if self.source.one_in(30) { 3_000 } else { 6 };
                put(&self.source.bytes(bytes), out);
            }
            _ => {
                head(0);
                encode_varint(self.number(field.name()), out);
            }
        }
    }

    fn number(&mut self, name: &str) -> u64 {
        words::number(self.source, name).unwrap_or_else(|| self.source.number())
    }

    fn text(&mut self, name: &str) -> String {
        words::text(self.source, name).map_or_else(|| self.source.text(), str::to_owned)
    }
}

fn put(bytes: &[u8], out: &mut Vec<u8>) {
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_of_a_description_is_read_as_that_message() {
        let mut source = Source::new(1);
        let mut read = 0;
        for _ in 0..200 {
            let made = message(&mut source, "xla.coordination.BarrierRequest");
            read += usize::from(tripod_proto::xla::coordination::BarrierRequest::decode(&made[..]).is_ok());
        }
        // Texts are always legal, and only what is nested too deep is not.
        assert_eq!(read, 200);
    }

    #[test]
    fn every_message_of_every_call_can_be_made() {
        let mut source = Source::new(2);
        for method in &KNOWN.methods {
            let bytes: usize = (0..8).map(|_| message(&mut source, &method.input).len()).sum();
            let fields = KNOWN.messages[&method.input].field.len();
            assert!(fields == 0 || bytes > 0, "{}", method.path);
        }
    }
}
