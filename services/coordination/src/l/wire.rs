//! Messages field by field, for those whose layout is not known before they are looked at.

use bytes::{Buf, BufMut, Bytes};
use prost::DecodeError;
use prost::encoding::{
    DecodeContext, WireType, decode_key, decode_varint, encode_key, encode_varint, skip_field,
};

/// A field as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) wire: WireType,
    /// Key and value.
    pub(super) raw: Bytes,
    /// Of a varint, the number.
    pub(super) value: u64,
    /// Of what has a length, the content.
    pub(super) content: Bytes,
}

/// The fields of a message in the order in which they came.
///
/// # Errors
/// The bytes are no message.
pub(super) fn fields(mut bytes: Bytes) -> Result<Vec<Field>, DecodeError> {
    let mut fields = Vec::new();
    while bytes.has_remaining() {
        let mut rest = bytes.clone();
        let (number, wire) = decode_key(&mut rest)?;
        let mut value = rest.clone();
        skip_field(wire, number, &mut rest, DecodeContext::default())?;
        let raw = bytes.split_to(bytes.len() - rest.len());
        value.truncate(value.len() - rest.len());
        let (value, content) = match wire {
            WireType::Varint => (decode_varint(&mut value)?, Bytes::new()),
            WireType::LengthDelimited => (decode_varint(&mut value)?, value),
            _ => (0, Bytes::new()),
        };
        fields.push(Field { number, wire, raw, value, content });
    }
    Ok(fields)
}

/// Adds a varint field. Zero is not sent.
pub(super) fn put_number(number: u32, value: u64, out: &mut Vec<u8>) {
    if value != 0 {
        encode_key(number, WireType::Varint, out);
        encode_varint(value, out);
    }
}

/// Adds a field with a length.
pub(super) fn put_content(number: u32, content: &[u8], out: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(content.len() as u64, out);
    out.put_slice(content);
}
