//! The only place that calls bincode. Everything it writes begins with a version byte, so that a
//! later encoding can be told from this one; everything it reads is bounded and never panics.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The encoding that [`encode`] writes.
const VERSION: u8 = 1;
/// Bytes that one decoded value may claim. The largest message holds one entry with a value of
/// 62 MiB; garbage must not make us allocate more than a small multiple of that.
const DECODE_BYTES_MAX: usize = 128 << 20;

/// Why bytes could not be decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodecError {
    #[error("it is empty")]
    Empty,
    #[error("its encoding has version {0}, this program knows version {VERSION} only")]
    Version(u8),
    #[error("it is malformed: {0}")]
    Malformed(#[from] bincode::error::DecodeError),
    #[error("{0} bytes follow its end")]
    Trailing(usize),
}

impl From<CodecError> for std::io::Error {
    fn from(error: CodecError) -> Self {
        Self::new(std::io::ErrorKind::InvalidData, error)
    }
}

/// Encodes behind the version byte.
pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    encode_sized(value, 128)
}

/// [`encode`] for a caller who knows about how many bytes it will be: growing step by step copies them all again.
pub(crate) fn encode_sized<T: Serialize>(value: &T, bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes);
    encode_onto(&mut out, value);
    out
}

/// [`encode`], appended to `out`.
pub(crate) fn encode_onto<T: Serialize>(out: &mut Vec<u8>, value: &T) {
    out.push(VERSION);
    bincode::serde::encode_into_std_write(value, out, bincode::config::standard())
        .expect("writing to memory cannot fail, and our types have no value that cannot be encoded");
}

/// Decodes what [`encode`] wrote.
///
/// # Errors
/// [`CodecError`]; the bytes may be anything.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let (&version, body) = bytes.split_first().ok_or(CodecError::Empty)?;
    if version != VERSION {
        return Err(CodecError::Version(version));
    }
    let config = bincode::config::standard().with_limit::<DECODE_BYTES_MAX>();
    let (value, used) = bincode::serde::decode_from_slice(body, config)?;
    match body.len() - used {
        0 => Ok(value),
        trailing => Err(CodecError::Trailing(trailing)),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;
    use tripod_state::Envelope;

    use super::*;
    use crate::types::{Entry, LogCommand};

    #[test]
    fn a_value_survives_the_round_trip() {
        let command = LogCommand { now_ms: 7, payload: Bytes::from_static(b"payload") };
        assert_eq!(decode::<LogCommand>(&encode(&command)).unwrap(), command);
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = encode(&1_u64);
        bytes[0] = 9;
        assert!(decode::<u64>(&bytes).unwrap_err().to_string().contains("version 9"));
    }

    #[test]
    fn bytes_after_the_end_are_refused() {
        let mut bytes = encode(&1_u64);
        bytes.push(0);
        assert!(matches!(decode::<u64>(&bytes), Err(CodecError::Trailing(1))));
    }

    #[test]
    fn a_claimed_length_beyond_the_limit_is_refused_without_allocating() {
        // The length of a byte string, as a varint of eight bytes.
        let mut bytes = vec![VERSION, 253];
        bytes.extend_from_slice(&u64::MAX.to_le_bytes());
        assert!(matches!(decode::<Bytes>(&bytes), Err(CodecError::Malformed(_))));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(garbage in proptest::collection::vec(any::<u8>(), 0..256)) {
            let mut versioned = garbage;
            versioned.insert(0, VERSION);
            let _ = decode::<Envelope>(&versioned);
            let _ = decode::<Entry>(&versioned);
        }
    }
}
