//! One call to an object store about cells of a mutable tensor.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};
use tripod_load::connect;
use tripod_proto::mars::v1 as pb;
use tripod_proto::mars::v1::mutable_batch::What;
use tripod_proto::mars::v1::worker_client::WorkerClient;

/// Cells of a tensor, and of each of its chunks.
pub(super) const CELLS: u64 = 4;
pub(super) const CHUNK_CELLS: u64 = 2;
/// How long a store may take for one call: it has others write, too.
const LIMIT: Duration = Duration::from_secs(5);
/// A store that passes on that another owner refused has the batch itself, and may count it later.
const OF_A_COPY: &str = "which is to have a copy";

/// What a store made of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Put {
    Done,
    /// The epoch is another one, or is sealed: nothing was written.
    Stale,
    /// Nothing was written.
    Refused(String),
    /// It may be written. The same batch may be sent again.
    Unknown(String),
}

/// Connections to stores, by their addresses.
#[derive(Debug, Default)]
pub(super) struct Stores(BTreeMap<String, Channel>);

impl Stores {
    fn at(&mut self, address: &str) -> Result<WorkerClient<Channel>, String> {
        let channel = match self.0.get(address) {
            Some(channel) => channel.clone(),
            None => {
                let channel = connect::lazy(address).map_err(|error| error.to_string())?;
                self.0.insert(address.to_owned(), channel.clone());
                channel
            }
        };
        Ok(WorkerClient::new(channel))
    }

    /// Sends one batch to the store that is written to.
    pub(super) async fn put(&mut self, address: &str, batch: pb::MutableBatch) -> Put {
        let mut store = match self.at(address) {
            Ok(store) => store,
            Err(why) => return Put::Refused(why),
        };
        let sent = store.put_mutable_chunks_data(futures::stream::iter([batch]));
        match timeout(LIMIT, sent).await {
            Ok(Ok(_)) => Put::Done,
            Ok(Err(status)) => meaning(&status),
            Err(_) => Put::Unknown(format!("no answer within {LIMIT:?}")),
        }
    }

    /// The cells of a chunk as of a time.
    pub(super) async fn get(
        &mut self,
        address: &str,
        request: pb::GetMutableChunksDataRequest,
    ) -> Result<Vec<u64>, Status> {
        let mut store = self.at(address).map_err(Status::unavailable)?;
        let got = async { collect(store.get_mutable_chunks_data(request).await?.into_inner()).await };
        let bytes = timeout(LIMIT, got).await.map_err(|_| Status::deadline_exceeded("no answer"))??;
        elements(&bytes).map_err(Status::internal)
    }
}

fn meaning(status: &Status) -> Put {
    let text = format!("{:?}: {}", status.code(), status.message());
    match status.code() {
        _ if text.contains(OF_A_COPY) => Put::Unknown(text),
        Code::Aborted => Put::Stale,
        Code::FailedPrecondition | Code::NotFound | Code::InvalidArgument | Code::OutOfRange => {
            Put::Refused(text)
        }
        _ => Put::Unknown(text),
    }
}

/// One cell of a batch.
pub(super) fn batch(head: pb::MutableBatch, place: u64, value: u64) -> pb::MutableBatch {
    let values = Bytes::copy_from_slice(&value.to_le_bytes());
    let crc32c = crc32c::crc32c(&values);
    pb::MutableBatch {
        crc32c,
        what: Some(What::Records(pb::MutableRecords { places: vec![place], values })),
        ..head
    }
}

/// The bytes of one chunk.
///
/// # Errors
/// What the store says of the chunk, or of the call; or its messages do not belong together.
pub(super) async fn collect(mut stream: Streaming<pb::ChunkData>) -> Result<Vec<u8>, Status> {
    let mut bytes = Vec::new();
    let mut seq = 0;
    while let Some(message) = stream.message().await? {
        if let Some(error) = message.error {
            let code = i32::try_from(error.code).unwrap_or_default();
            return Err(Status::new(Code::from_i32(code), error.message));
        }
        if message.seq != seq || crc32c::crc32c(&message.bytes) != message.crc32c {
            return Err(Status::data_loss("messages of a chunk are damaged or not in order"));
        }
        bytes.extend_from_slice(&message.bytes);
        seq += 1;
    }
    Ok(bytes)
}

/// The numbers in a file of numpy.
///
/// # Errors
/// It is none with numbers of 8 bytes that are not negative.
pub(super) fn elements(npy: &[u8]) -> Result<Vec<u64>, String> {
    let length = npy.get(8..10).and_then(|length| <[u8; 2]>::try_from(length).ok());
    let head = length.map(|length| 10 + usize::from(u16::from_le_bytes(length)));
    let body = head.and_then(|head| npy.get(head..)).ok_or("it is no file of numpy")?;
    if !body.len().is_multiple_of(8) {
        return Err(format!("{} bytes are no numbers of 8", body.len()));
    }
    let number = |word: &[u8]| <[u8; 8]>::try_from(word).map(u64::from_le_bytes);
    body.chunks_exact(8).map(number).collect::<Result<_, _>>().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_behind_the_head_of_the_file() {
        let mut file = b"\x93NUMPY\x01\x00\x04\x00{  }".to_vec();
        file.extend([7_u64, 9].iter().flat_map(|number| number.to_le_bytes()));
        assert_eq!(elements(&file), Ok(vec![7, 9]));
        file.pop();
        assert!(elements(&file).is_err());
        assert!(elements(b"\x93NUM").is_err());
    }

    #[test]
    fn what_a_copy_refused_may_be_written() {
        let of = |code, text: &str| meaning(&Status::new(code, text));
        assert_eq!(of(Code::Aborted, "the epoch is 2"), Put::Stale);
        let text = "chunk c: worker w, which is to have a copy, has not: sealed";
        assert!(matches!(of(Code::Aborted, text), Put::Unknown(_)));
        assert!(matches!(of(Code::FailedPrecondition, "elsewhere"), Put::Refused(_)));
        assert!(matches!(of(Code::Unavailable, "away"), Put::Unknown(_)));
    }
}
