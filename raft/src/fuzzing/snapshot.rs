//! Snapshots and backups.

use std::io;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer};
use tripod_state::State;
use tripod_state::snapshot::Record;

use crate::base::codec;
use crate::disk::Blob;
use crate::snapshot::{self, Form, Header};

/// A state is what is read when it was written as a snapshot.
///
/// # Panics
/// It is not.
pub fn check_snapshot(state: &State) {
    let written: Vec<Vec<u8>> = state.records().map(|record| codec::encode(&record)).collect();
    let records = written.iter().map(|record| {
        codec::decode::<Record>(record)
            .unwrap_or_else(|error| panic!("a record of a snapshot is not read: {error}"))
    });
    match State::from_records(records) {
        Ok(again) => assert!(again.digest() == state.digest(), "a snapshot is another state"),
        Err(error) => panic!("a snapshot is refused: {error}"),
    }
}

/// The records of a state, encoded, each a body of a frame.
#[must_use]
pub fn record_frames(state: &State) -> Vec<Vec<u8>> {
    state.records().map(|record| sized(&codec::encode(&record))).collect()
}

/// A drawn record, encoded as a frame's body.
pub fn snapshot_record<'de, D: Deserializer<'de>>(drawn: D) -> Option<Vec<u8>> {
    Record::deserialize(drawn).ok().map(|record| sized(&codec::encode(&record)))
}

fn sized(record: &[u8]) -> Vec<u8> {
    let length = u32::try_from(record.len()).expect("a record is below 4 GiB");
    [&length.to_le_bytes()[..], record].concat()
}

/// Reads a whole file whose frames of records, with right checksums, have these bodies, and whose header is that of an empty
/// state. Gives the state, if the records are one.
#[must_use]
pub fn read_snapshot(bodies: &[&[u8]]) -> bool {
    let header = header(&State::default());
    let file = snapshot::write_bodies(Vec::new(), &header, bodies).expect("memory takes everything");
    snapshot::examine(Arc::new(Memory(file)), &mut |_| {}).is_ok()
}

/// A backup of a state whose header says of the log what is drawn.
pub fn backup<'de, D: Deserializer<'de>>(drawn: D, state: &State) -> Option<Vec<u8>> {
    let (last_log_id, membership) = Deserialize::deserialize(drawn).ok()?;
    let header = Header { last_log_id, membership, ..header(state) };
    Some(snapshot::write_to(Vec::new(), &header, state).expect("memory takes everything"))
}

fn header(state: &State) -> Header {
    Header {
        cluster_id: "fuzz".to_owned(),
        last_log_id: None,
        membership: crate::base::types::Membership::default(),
        digest: state.digest(),
        form: Form::of(state),
    }
}

/// A file in memory that is only read.
struct Memory(Vec<u8>);

impl Blob for Memory {
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset_bytes).map_or(self.0.len(), |from| from.min(self.0.len()));
        let read = buffer.len().min(self.0.len() - from);
        buffer[..read].copy_from_slice(&self.0[from..from + read]);
        Ok(read)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}
