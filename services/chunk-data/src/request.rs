//! Calls, compared with bounds before anything is done for them.

use bytes::Bytes;
use tonic::Status;
use tripod_proto::mars::v1::dim_index::Index as Wire;
use tripod_proto::mars::v1::mutable_batch::What;
use tripod_proto::mars::v1::{Compression, GetChunksDataRequest, Index, MutableBatch};

use crate::compression;
use crate::limits::{BATCH_BYTES_MAX, COMPRESSIONS_MAX, DIMS_MAX, KEYS_MAX, LIST_MAX, NAME_BYTES_MAX};
use crate::mutable::{ChunkId, Stored};

/// What is wanted, of which chunks.
#[derive(Debug, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) session: String,
    pub(crate) keys: Vec<String>,
    indexes: Vec<Index>,
    pub(crate) compression: Compression,
}

impl Wanted {
    /// # Errors
    /// `FAILED_PRECONDITION` if another worker is meant, `INVALID_ARGUMENT` for what passes a bound.
    pub(crate) fn of(request: GetChunksDataRequest, here: &str) -> Result<Self, Status> {
        check_worker(&request.worker_id, here)?;
        check_keys(&request.session_id, &request.chunk_keys)?;
        let (indexes, keys) = (request.indexes.len(), request.chunk_keys.len());
        if indexes > 1 && indexes != keys {
            return Err(Status::invalid_argument(format!(
                "{indexes} indexes for {keys} chunks; next: give none, one for all, or one for each"
            )));
        }
        let dims = || request.indexes.iter().map(|index| index.dims.len());
        if dims().any(|dims| dims > DIMS_MAX) {
            return Err(Status::invalid_argument(format!("an index has {DIMS_MAX} axes at most")));
        }
        let lists = request.indexes.iter().flat_map(|index| &index.dims).map(|dim| match &dim.index {
            Some(Wire::List(list)) => list.integers.len(),
            _ => 0,
        });
        if lists.sum::<usize>() > LIST_MAX {
            return Err(Status::invalid_argument(format!(
                "lists of one call have {LIST_MAX} places at most"
            )));
        }
        if request.compression_types.len() > COMPRESSIONS_MAX {
            let text = format!("a client names {COMPRESSIONS_MAX} ways to compress at most");
            return Err(Status::invalid_argument(text));
        }
        Ok(Self {
            session: request.session_id,
            keys: request.chunk_keys,
            indexes: request.indexes,
            compression: compression::first_known(&request.compression_types),
        })
    }

    /// The index of a key, by its place.
    pub(crate) fn index(&self, key: usize) -> Option<&Index> {
        if let [one] = &self.indexes[..] { Some(one) } else { self.indexes.get(key) }
    }
}

/// # Errors
/// `FAILED_PRECONDITION`.
pub(crate) fn check_worker(meant: &str, here: &str) -> Result<(), Status> {
    if meant.is_empty() || meant == here {
        return Ok(());
    }
    let meant: String = meant.chars().take(NAME_BYTES_MAX).collect();
    Err(Status::failed_precondition(format!(
        "this is worker {here}, and the call is for {meant}; next: ask the scheduler where the chunk is"
    )))
}

/// # Errors
/// `INVALID_ARGUMENT`.
pub(crate) fn check_keys(session: &str, keys: &[String]) -> Result<(), Status> {
    if keys.len() > KEYS_MAX {
        return Err(Status::invalid_argument(format!("a call names {KEYS_MAX} chunks at most")));
    }
    let illegal = |name: &str| name.is_empty() || name.len() > NAME_BYTES_MAX;
    if illegal(session) || keys.iter().any(|key| illegal(key)) {
        return Err(Status::invalid_argument(format!(
            "the name of a session and the key of a chunk have between 1 and {NAME_BYTES_MAX} bytes"
        )));
    }
    Ok(())
}

/// One batch, and what it is for.
#[derive(Debug, PartialEq)]
pub(crate) struct Batch {
    pub(crate) id: ChunkId,
    pub(crate) epoch: u64,
    pub(crate) stored: Stored,
}

impl Batch {
    /// # Errors
    /// `INVALID_ARGUMENT`, or `DATA_LOSS` if its bytes are not those that were sent.
    pub(crate) fn of(message: MutableBatch) -> Result<Self, Status> {
        check_keys(&message.session_id, std::slice::from_ref(&message.chunk_key))?;
        if message.client_id.is_empty() || message.client_id.len() > NAME_BYTES_MAX {
            let text = format!("a client's id has between 1 and {NAME_BYTES_MAX} bytes");
            return Err(Status::invalid_argument(text));
        }
        let (places, index, values) = match message.what {
            Some(What::Records(records)) => (records.places, None, records.values),
            Some(What::Slab(slab)) => (Vec::new(), Some(slab.index.unwrap_or_default()), slab.values),
            None => return Err(Status::invalid_argument("a batch has records or a slab")),
        };
        let lists = index.iter().flat_map(|index| &index.dims).map(|dim| match &dim.index {
            Some(Wire::List(list)) => list.integers.len(),
            _ => 0,
        });
        let listed = lists.sum::<usize>() + places.len();
        if listed > LIST_MAX || index.as_ref().is_some_and(|index| index.dims.len() > DIMS_MAX) {
            return Err(Status::invalid_argument(format!(
                "a batch names {LIST_MAX} places and {DIMS_MAX} axes at most"
            )));
        }
        if crc32c::crc32c(&values) != message.crc32c {
            return Err(Status::data_loss(format!(
                "batch {} came with other values than were sent; next: send it again",
                message.batch_no
            )));
        }
        let values = decompressed(values, message.compression)?;
        let stored = Stored {
            seq: 0,
            client_id: message.client_id,
            batch_no: message.batch_no,
            timestamp_ns: message.timestamp_ns,
            places,
            index,
            values,
        };
        let id = ChunkId { session: message.session_id, key: message.chunk_key };
        Ok(Self { id, epoch: message.epoch, stored })
    }

    /// As it is sent to another owner.
    pub(crate) fn message(id: &ChunkId, epoch: u64, stored: Stored) -> MutableBatch {
        use tripod_proto::mars::v1::{MutableRecords, MutableSlab};
        let crc32c = crc32c::crc32c(&stored.values);
        let what = match stored.index {
            Some(index) => What::Slab(MutableSlab { index: Some(index), values: stored.values }),
            None => What::Records(MutableRecords { places: stored.places, values: stored.values }),
        };
        MutableBatch {
            session_id: id.session.clone(),
            chunk_key: id.key.clone(),
            epoch,
            client_id: stored.client_id,
            batch_no: stored.batch_no,
            timestamp_ns: stored.timestamp_ns,
            what: Some(what),
            compression: Compression::None.into(),
            crc32c,
        }
    }
}

fn decompressed(values: Bytes, how: i32) -> Result<Bytes, Status> {
    let how = Compression::try_from(how)
        .map_err(|_| Status::invalid_argument(format!("{how} is no way to compress that is known here")))?;
    compression::decompress(values, how, BATCH_BYTES_MAX).map_err(|error| {
        Status::invalid_argument(format!(
            "the values of a batch cannot be used: {error}; next: send {BATCH_BYTES_MAX} bytes at most in one"
        ))
    })
}

#[cfg(test)]
mod tests {
    use tripod_proto::mars::v1::{DimIndex, IntegerList, MutableRecords};

    use super::*;

    fn request() -> GetChunksDataRequest {
        GetChunksDataRequest {
            session_id: "s".to_owned(),
            worker_id: String::new(),
            chunk_keys: vec!["a".to_owned(), "b".to_owned()],
            indexes: Vec::new(),
            compression_types: Vec::new(),
        }
    }

    fn refused(change: impl FnOnce(&mut GetChunksDataRequest)) -> String {
        let mut request = request();
        change(&mut request);
        let status = Wanted::of(request, "10.0.0.1:7").expect_err("refused");
        format!("{:?}: {}", status.code(), status.message())
    }

    #[test]
    fn what_passes_a_bound_is_refused_by_its_name() {
        assert!(Wanted::of(request(), "10.0.0.1:7").is_ok());
        assert!(
            refused(|r| r.worker_id = "other:1".into())
                .starts_with("FailedPrecondition: this is worker 10.0.0.1:7")
        );
        assert!(refused(|r| r.chunk_keys = vec!["k".into(); 4097]).contains("4096 chunks at most"));
        assert!(refused(|r| r.chunk_keys[1].clear()).contains("between 1 and 1024 bytes"));
        assert!(refused(|r| r.session_id = "s".repeat(1025)).contains("between 1 and 1024 bytes"));
        assert!(refused(|r| r.indexes = vec![Index::default(); 3]).contains("3 indexes for 2 chunks"));
        let deep = Index { dims: vec![DimIndex::default(); 33] };
        assert!(refused(|r| r.indexes = vec![deep]).contains("32 axes at most"));
        let list = |count| DimIndex { index: Some(Wire::List(IntegerList { integers: vec![0; count] })) };
        let long = Index { dims: vec![list(LIST_MAX), list(1)] };
        assert!(refused(|r| r.indexes = vec![long]).contains("1048576 places at most"));
        assert!(refused(|r| r.compression_types = vec![0; 17]).contains("16 ways to compress"));
    }

    #[test]
    fn one_index_is_for_all_keys_and_several_for_each() {
        let index = |dims| Index { dims: vec![DimIndex::default(); dims] };
        let wanted = |indexes| Wanted::of(GetChunksDataRequest { indexes, ..request() }, "").unwrap();
        assert_eq!(wanted(vec![]).index(1), None);
        assert_eq!(wanted(vec![index(1)]).index(1), Some(&index(1)));
        assert_eq!(wanted(vec![index(1), index(2)]).index(1), Some(&index(2)));
    }

    fn batch(values: Bytes, how: Compression) -> MutableBatch {
        let crc32c = crc32c::crc32c(&values);
        MutableBatch {
            session_id: "s".to_owned(),
            chunk_key: "k".to_owned(),
            epoch: 1,
            client_id: "c".to_owned(),
            batch_no: 1,
            timestamp_ns: 5,
            what: Some(What::Records(MutableRecords { places: vec![1], values })),
            compression: how.into(),
            crc32c,
        }
    }

    #[test]
    fn batches_are_checked_and_read_as_they_were_before_they_were_compressed() {
        let values = Bytes::from(vec![7; 1000]);
        for how in [Compression::None, Compression::Lz4Frame, Compression::Zstd, Compression::Gzip] {
            let small = compression::compress(values.clone(), how).unwrap();
            let read = Batch::of(batch(small, how)).expect("whole");
            assert_eq!(read.stored.values, values);
            let again = Batch::of(Batch::message(&read.id, read.epoch, read.stored.clone())).expect("whole");
            assert_eq!(again, read);
        }
        let code = |message| Batch::of(message).expect_err("refused").code();
        assert_eq!(
            code(MutableBatch { crc32c: 1, ..batch(values.clone(), Compression::None) }),
            tonic::Code::DataLoss
        );
        assert_eq!(code(batch(values.clone(), Compression::Gzip)), tonic::Code::InvalidArgument);
        assert_eq!(
            code(MutableBatch { compression: 9, ..batch(values.clone(), Compression::None) }),
            tonic::Code::InvalidArgument
        );
        let bomb = compression::compress(vec![0; BATCH_BYTES_MAX + 1].into(), Compression::Zstd).unwrap();
        assert_eq!(code(batch(bomb, Compression::Zstd)), tonic::Code::InvalidArgument);
        assert_eq!(
            code(MutableBatch { what: None, ..batch(values, Compression::None) }),
            tonic::Code::InvalidArgument
        );
    }
}
