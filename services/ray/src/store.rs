//! `/ObjStore/*` of a node: it holds no objects, and serves what is told in the place of one that failed. A
//! worker of 2016 waits in its own store, to which there is no call that says "it failed"; so the store is told to
//! fetch the object from here.

use bytes::Bytes;
use tokio_stream::Iter;
use tonic::{Request, Response, Status};
use tripod_gateway::Consistency;
use tripod_proto::ray as pb;
use tripod_proto::ray::obj_store_server::ObjStore;
use tripod_state::ids::JobId;
use tripod_state::ray::ids::ObjectId;
use tripod_state::ray::view::{Availability, Failure};

use crate::front::Front;
use crate::{failed, status};

/// Bytes of one chunk, as stores of 2016 send them, unless larger ones are asked for.
const CHUNK_BYTES: usize = 8192;
/// And at most.
const CHUNK_BYTES_MAX: u64 = 1 << 20;

/// Error values of one port.
pub(crate) struct Service {
    front: Front,
}

type Outcome<T> = Result<Response<T>, Status>;

impl Service {
    pub(crate) fn new(front: Front) -> Self {
        Self { front }
    }

    /// Why the object cannot be had. The order to fetch it from here came from a leader, so a node that does
    /// not know of it yet is behind.
    async fn failure(&self, job: JobId, object: ObjectId) -> Result<Failure, Status> {
        for freshness in [Consistency::Local, Consistency::Linearizable] {
            let found = self.front.read(freshness, job, |ray| ray.availability(object)).await?;
            if let Some(Availability::Failed(failure)) = found {
                return Ok(failure);
            }
        }
        let text = format!("object {object} has not failed; a node holds no others, ask its store");
        Err(status::with_reason(Status::failed_precondition(text), "not-failed"))
    }
}

/// A value in chunks, from an offset on. A value without bytes is one empty chunk.
fn chunks(
    value: Vec<u8>,
    asked: &pb::StreamObjToRequest,
) -> Result<Vec<Result<pb::ObjChunk, Status>>, Status> {
    let total_size = value.len() as u64;
    let begin =
        usize::try_from(asked.offset).ok().filter(|begin| *begin <= value.len()).ok_or_else(|| {
            status::invalid(&format!("offset: {}, and the object has {total_size} bytes", asked.offset))
        })?;
    let size = match asked.chunk_bytes {
        0 => CHUNK_BYTES,
        wanted => usize::try_from(wanted.min(CHUNK_BYTES_MAX)).expect("a chunk fits in memory"),
    };
    let checked = asked.chunk_bytes != 0;
    let rest = Bytes::from(value).slice(begin..);
    let pieces = rest.len().div_ceil(size).max(1);
    let piece = |place: usize| {
        let data = rest.slice(place * size..rest.len().min((place + 1) * size));
        let data_crc32c = checked.then(|| crc32c::crc32c(&data));
        Ok(pb::ObjChunk { total_size, metadata_offset: 0, data, data_crc32c, before_crc32c: None })
    };
    Ok((0..pieces).map(piece).collect())
}

fn holds_nothing<T>() -> Outcome<T> {
    Err(Status::unimplemented("a node of the cluster is no object store; it only tells why an object failed"))
}

#[tonic::async_trait]
impl ObjStore for Service {
    type StreamObjToStream = Iter<std::vec::IntoIter<Result<pb::ObjChunk, Status>>>;

    async fn stream_obj_to(
        &self,
        request: Request<pb::StreamObjToRequest>,
    ) -> Outcome<Self::StreamObjToStream> {
        let (metadata, _, asked) = request.into_parts();
        let job = self.front.job(&metadata).await?;
        let failure = self.failure(job, ObjectId(asked.objectid)).await?;
        Ok(Response::new(tokio_stream::iter(chunks(failed::value(&failure), &asked)?)))
    }

    async fn start_delivery(&self, _: Request<pb::StartDeliveryRequest>) -> Outcome<pb::AckReply> {
        holds_nothing()
    }

    async fn notify_alias(&self, _: Request<pb::NotifyAliasRequest>) -> Outcome<pb::AckReply> {
        holds_nothing()
    }

    async fn deallocate_object(&self, _: Request<pb::DeallocateObjectRequest>) -> Outcome<pb::AckReply> {
        holds_nothing()
    }

    async fn obj_store_info(&self, _: Request<pb::ObjStoreInfoRequest>) -> Outcome<pb::ObjStoreInfoReply> {
        holds_nothing()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(bytes: usize, offset: u64, chunk_bytes: u64) -> Vec<usize> {
        let asked = pb::StreamObjToRequest { objectid: 0, offset, chunk_bytes };
        let chunks = chunks(vec![7; bytes], &asked).unwrap();
        chunks.into_iter().map(|chunk| chunk.unwrap().data.len()).collect()
    }

    #[test]
    fn chunks_are_as_large_as_stores_of_2016_expect() {
        assert_eq!(sizes(0, 0, 0), [0]);
        assert_eq!(sizes(1, 0, 0), [1]);
        assert_eq!(sizes(8192, 0, 0), [8192]);
        assert_eq!(sizes(8193, 0, 0), [8192, 1]);
        assert_eq!(sizes(8193, 8000, 100), [100, 93]);
        assert_eq!(sizes(5, 5, 0), [0]);
    }

    #[test]
    fn an_offset_beyond_the_end_is_refused_and_checksums_come_with_larger_chunks() {
        let asked = pb::StreamObjToRequest { objectid: 0, offset: 6, chunk_bytes: 0 };
        assert_eq!(chunks(vec![7; 5], &asked).unwrap_err().code(), tonic::Code::InvalidArgument);
        let asked = pb::StreamObjToRequest { objectid: 0, offset: 0, chunk_bytes: u64::MAX };
        let chunk = chunks(vec![7; 5], &asked).unwrap().remove(0).unwrap();
        assert_eq!(chunk.data_crc32c, Some(crc32c::crc32c(&[7; 5])));
        assert_eq!(chunk.total_size, 5);
    }
}
