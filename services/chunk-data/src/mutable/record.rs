//! What stands in a chunk's file: messages, each in a frame.

use bytes::Bytes;
use prost::{Message, Oneof};
use tripod_proto::mars::v1::Index;

/// One frame's content.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Record {
    #[prost(oneof = "Entry", tags = "1, 2, 3, 4")]
    pub(super) entry: Option<Entry>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Entry {
    /// The first of a file, and only that.
    #[prost(message, tag = "1")]
    Begin(Begin),
    #[prost(message, tag = "2")]
    Batches(Batches),
    #[prost(message, tag = "3")]
    Seal(Seal),
    /// Another epoch: what was sealed is open again.
    #[prost(message, tag = "4")]
    Epoch(Epoch),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Begin {
    #[prost(string, tag = "1")]
    pub(super) session: String,
    #[prost(string, tag = "2")]
    pub(super) key: String,
    #[prost(uint64, tag = "3")]
    pub(super) tileable: u64,
    #[prost(uint64, tag = "4")]
    pub(super) epoch: u64,
    /// `mars.v1.ElementType`.
    #[prost(int32, tag = "5")]
    pub(super) element: i32,
    #[prost(uint64, repeated, tag = "6")]
    pub(super) shape: Vec<u64>,
    #[prost(bytes = "vec", tag = "7")]
    pub(super) default: Vec<u8>,
    /// Of a frame.
    #[prost(message, repeated, tag = "8")]
    pub(super) columns: Vec<BeginColumn>,
}

/// A column of a frame.
#[derive(Clone, PartialEq, Message)]
pub(super) struct BeginColumn {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    /// `mars.v1.ElementType`.
    #[prost(int32, tag = "2")]
    pub(super) element: i32,
    #[prost(bytes = "vec", tag = "3")]
    pub(super) default: Vec<u8>,
}

/// Batches that became durable together.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Batches {
    /// How many were on all owners before.
    #[prost(uint64, tag = "1")]
    pub(super) confirmed: u64,
    #[prost(message, repeated, tag = "2")]
    pub(super) batches: Vec<Stored>,
}

/// One batch.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Stored {
    /// Its place among those of its chunk, from 0.
    #[prost(uint64, tag = "1")]
    pub(crate) seq: u64,
    #[prost(string, tag = "2")]
    pub(crate) client_id: String,
    #[prost(uint64, tag = "3")]
    pub(crate) batch_no: u64,
    #[prost(sint64, tag = "4")]
    pub(crate) timestamp_ns: i64,
    /// Single cells, unless there is an index.
    #[prost(uint64, repeated, tag = "5")]
    pub(crate) places: Vec<u64>,
    #[prost(message, optional, tag = "6")]
    pub(crate) index: Option<Index>,
    #[prost(bytes = "bytes", tag = "7")]
    pub(crate) values: Bytes,
}

impl Stored {
    /// Tells it from another batch with the same number.
    pub(super) fn checksum(&self) -> u32 {
        let same = Self { seq: 0, ..self.clone() };
        crc32c::crc32c(&same.encode_to_vec())
    }

    /// What it takes in memory and on disk, about.
    pub(super) fn taken_bytes(&self) -> u64 {
        const AROUND_BYTES: usize = 256;
        (AROUND_BYTES + self.client_id.len() + 8 * self.places.len() + self.values.len()) as u64
            + self.index.as_ref().map_or(0, |index| 4 * index.encoded_len() as u64)
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Seal {
    #[prost(uint64, tag = "1")]
    pub(super) epoch: u64,
    /// As of when; `None`: everything.
    #[prost(sint64, optional, tag = "2")]
    pub(super) timestamp_ns: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Epoch {
    #[prost(uint64, tag = "1")]
    pub(super) epoch: u64,
}
