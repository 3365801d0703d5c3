//! The only place that calls bincode. Everything it writes begins with a version byte, so that a
//! later encoding can be told from this one; everything it reads is bounded and never panics.

use std::io::Write;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tripod_state::Command;

/// The encoding that [`encode`] writes.
const VERSION: u8 = 1;
/// What a value may claim of memory while it is decoded, for each byte of its encoding: the size of the largest integer,
/// which may be one byte there. So whatever was encoded can be decoded, and a length that garbage claims is refused
/// before more than a small multiple of the garbage is allocated.
const CLAIMED_PER_BYTE_MAX: usize = 16;
/// Values up to this size are decoded with a claim of [`CLAIMED_PER_BYTE_MAX`] times as much at most.
const SMALL_BYTES: usize = 8 << 20;
/// The largest value that anybody encodes is below this: a message of a peer, or a record of a snapshot.
const VALUE_BYTES_MAX: usize = 128 << 20;

/// Why bytes could not be decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodecError {
    #[error("it is empty")]
    Empty,
    #[error("its encoding has version {0}, this program knows version {VERSION} only")]
    Version(u8),
    #[error("it has {0} bytes, more than {VALUE_BYTES_MAX}")]
    TooLarge(usize),
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

/// How many bytes a command has in the log. Its values are not copied for that.
#[must_use]
pub fn command_bytes(command: &Command) -> u64 {
    let mut count = Count(1);
    bincode::serde::encode_into_std_write(command, &mut count, bincode::config::standard())
        .expect("counting cannot fail, and our types have no value that cannot be encoded");
    count.0
}

/// Counts what it is given.
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
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
    let config = bincode::config::standard();
    let (value, used) = if body.len() <= SMALL_BYTES {
        let config = config.with_limit::<{ SMALL_BYTES * CLAIMED_PER_BYTE_MAX }>();
        bincode::serde::decode_from_slice(body, config)?
    } else if body.len() <= VALUE_BYTES_MAX {
        let config = config.with_limit::<{ VALUE_BYTES_MAX * CLAIMED_PER_BYTE_MAX }>();
        bincode::serde::decode_from_slice(body, config)?
    } else {
        return Err(CodecError::TooLarge(body.len()));
    };
    match body.len() - used {
        0 => Ok(value),
        trailing => Err(CodecError::Trailing(trailing)),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;
    use tripod_state::ids::{BarrierCounter, JobId, TaskId};
    use tripod_state::{Envelope, Scope, barrier, kv};

    use super::*;
    use crate::base::types::{Entry, LogCommand};

    #[test]
    fn a_value_survives_the_round_trip() {
        let command = LogCommand { now_ms: 7, payload: Bytes::from_static(b"payload") };
        assert_eq!(decode::<LogCommand>(&encode(&command)).unwrap(), command);
    }

    #[test]
    fn the_bytes_of_a_command_are_counted_as_they_are_encoded() {
        let value = Bytes::from(vec![b'v'; 70_000]);
        let scope = Scope { job: JobId(1), service: None };
        let insert = kv::Command::Insert { scope, key: "key".into(), value, overwrite: false };
        let command = Command::Retried(Box::new(Command::Kv(insert)));
        assert_eq!(command_bytes(&command), encode(&command).len() as u64);
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

    /// The tasks' ids are one byte each in the encoding, and four in memory.
    #[test]
    fn f1_a_list_of_34_million_ids_that_was_committed_is_read_back() {
        const IDS: usize = 34_000_000;
        let arrive = Command::Barrier(barrier::Command::Arrive {
            scope: Scope { job: JobId(1), service: None },
            barrier: "b".into(),
            counter: BarrierCounter(0),
            timeout_ms: 1_000,
            tasks: vec![TaskId(0); IDS],
            task: TaskId(0),
        });
        let envelope = Envelope { stamp: None, command: arrive };
        assert_eq!(decode::<Envelope>(&encode(&envelope)).unwrap(), envelope);
    }

    #[test]
    fn the_claim_of_every_integer_is_within_what_a_byte_may_claim() {
        // At the edge of a small value, where the next byte brings the larger limit.
        for count in [SMALL_BYTES - 8, SMALL_BYTES + 8] {
            let largest = vec![0_u128; count];
            assert_eq!(decode::<Vec<u128>>(&encode(&largest)).unwrap().len(), count);
        }
    }

    #[test]
    fn what_is_larger_than_anything_that_is_written_is_refused() {
        let bytes = vec![VERSION; VALUE_BYTES_MAX + 2];
        assert!(matches!(decode::<Bytes>(&bytes), Err(CodecError::TooLarge(_))));
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
