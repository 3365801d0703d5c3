//! One attempt to fetch an object, or the rest of one, from another store.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tonic::{Code, Streaming};
use tripod_proto::ray::{ObjChunk, StreamObjToRequest};

use crate::chunks::CHUNK_BYTES_MAX;
use crate::ids::ObjectId;
use crate::made::Made;
use crate::peers::Peers;
use crate::shelf::{ReserveError, Shelf, WriteError, Writer};
use crate::table::Life;

/// How long a source may take to say that it has the object: it may have to read it from disk first.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Why an attempt did not bring the whole object.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// The source cannot be reached, or broke off: another attempt goes on where this one ended.
    #[error("{0}")]
    Broke(String),
    /// The source has no copy.
    #[error("the source does not have it: {0}")]
    Absent(String),
    /// The source has another object than the one whose beginning is here: it was made twice. What was here is
    /// dropped, so that the same source can be asked for the whole at once.
    #[error("it has another object than the source before it")]
    Differs,
    /// What came is not the object.
    #[error("the source sent something wrong: {0}")]
    Wrong(String),
    #[error(transparent)]
    Reserve(ReserveError),
    /// It has so many bytes that this store can never hold it.
    #[error("its {0} bytes are more than this store holds")]
    TooLarge(u64),
    /// Nobody wants the object any more, or a process here writes it.
    #[error("it is not wanted any more")]
    Unwanted,
}

/// What has come of an object so far, checked.
#[derive(Debug)]
pub(crate) struct Partial {
    writer: Writer,
    metadata_offset: u64,
    verified_bytes: u64,
    /// Of the bytes so far.
    crc32c: u32,
}

/// The object to be fetched.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) id: ObjectId,
    pub(crate) life: Life,
    /// How long a source may send nothing.
    pub(crate) stall: Duration,
}

impl Wanted {
    /// Fetches from one source, on from what earlier attempts brought, and finishes the object.
    ///
    /// # Errors
    /// [`FetchError`]; `partial` keeps what can be gone on from.
    pub(crate) async fn fetch(
        &self,
        peers: &Peers,
        address: &str,
        partial: &mut Option<Partial>,
    ) -> Result<(), FetchError> {
        let result = self.attempt(peers, address, partial).await;
        match &result {
            Err(FetchError::Broke(_)) => peers.forget(address),
            // Not to be mixed with what another source sends.
            Err(FetchError::Wrong(_) | FetchError::Differs) => *partial = None,
            _ => {}
        }
        result
    }

    async fn attempt(
        &self,
        peers: &Peers,
        address: &str,
        partial: &mut Option<Partial>,
    ) -> Result<(), FetchError> {
        let offset = partial.as_ref().map_or(0, |partial| partial.verified_bytes);
        let mut client = peers.client(address).await.map_err(FetchError::Broke)?;
        let request = StreamObjToRequest { objectid: self.id.0, offset, chunk_bytes: CHUNK_BYTES_MAX };
        let answer = timeout(ANSWER_TIMEOUT, client.stream_obj_to(request)).await;
        let mut stream =
            answer.map_err(|_| silent(ANSWER_TIMEOUT))?.map_err(|status| of_status(&status))?.into_inner();
        let mut first = true;
        loop {
            let chunk = match self.next(&mut stream).await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                // Everything has come; how the stream ends does not matter.
                Err(_) if !first && partial.as_ref().is_some_and(Partial::is_whole) => break,
                Err(error) => return Err(error),
            };
            if first {
                self.begin(partial, &chunk, offset).await?;
                first = false;
            }
            let Some(partial) = partial.as_mut() else { return Err(FetchError::Unwanted) };
            partial.add(&chunk)?;
        }
        let Some(whole) = partial.as_mut() else { return Err(FetchError::Wrong("no chunk came".into())) };
        let (have, total) = (whole.verified_bytes, whole.writer.size_bytes());
        if first || have != total {
            return Err(FetchError::Broke(format!("the stream ended after {have} of {total} bytes")));
        }
        whole.writer.seal_soon(whole.metadata_offset, Made::default()).await.map_err(|error| {
            tracing::debug!(object = %self.id, %error, "a fetched object could not be finished");
            FetchError::Unwanted
        })
    }

    async fn next(&self, stream: &mut Streaming<ObjChunk>) -> Result<Option<ObjChunk>, FetchError> {
        match timeout(self.stall, stream.message()).await {
            Ok(Ok(chunk)) => Ok(chunk),
            Ok(Err(status)) => Err(of_status(&status)),
            Err(_) => Err(silent(self.stall)),
        }
    }

    /// Looks whether the first chunk goes on from what is there; if not, begins the object anew.
    async fn begin(
        &self,
        partial: &mut Option<Partial>,
        chunk: &ObjChunk,
        offset: u64,
    ) -> Result<(), FetchError> {
        if let Some(kept) = partial {
            if kept.goes_on_with(chunk) {
                return Ok(());
            }
            *partial = None;
            if chunk.before_crc32c.is_some() || chunk.data_crc32c.is_some() && offset > 0 {
                // It would send the rest of another object than the one whose beginning we have.
                return Err(FetchError::Differs);
            }
        }
        let writer =
            self.shelf.fill(self.id, self.life, chunk.total_size).await.map_err(|error| match error {
                WriteError::Refused(_) => FetchError::Unwanted,
                WriteError::Reserve(ReserveError::LargerThanStore { .. }) => {
                    FetchError::TooLarge(chunk.total_size)
                }
                WriteError::Reserve(error) => FetchError::Reserve(error),
            })?;
        let metadata_offset = chunk.metadata_offset;
        *partial = Some(Partial { writer, metadata_offset, verified_bytes: 0, crc32c: 0 });
        Ok(())
    }
}

impl Partial {
    pub(crate) fn verified_bytes(&self) -> u64 {
        self.verified_bytes
    }

    fn is_whole(&self) -> bool {
        self.verified_bytes == self.writer.size_bytes()
    }

    /// Whether the sender has the same beginning: the same sizes, and the same bytes as far as its checksum tells.
    fn goes_on_with(&self, chunk: &ObjChunk) -> bool {
        let same_bytes = self.verified_bytes == 0 || chunk.before_crc32c == Some(self.crc32c);
        chunk.total_size == self.writer.size_bytes()
            && chunk.metadata_offset == self.metadata_offset
            && same_bytes
    }

    fn add(&mut self, chunk: &ObjChunk) -> Result<(), FetchError> {
        let wrong = |text: &str| Err(FetchError::Wrong(text.to_owned()));
        let total = self.writer.size_bytes();
        if (chunk.total_size, chunk.metadata_offset) != (total, self.metadata_offset) {
            return wrong("the object's size changed between chunks");
        }
        if chunk.data.len() as u64 > total - self.verified_bytes {
            return wrong("more bytes than the object has");
        }
        if chunk.data_crc32c.is_some_and(|told| told != crc32c::crc32c(&chunk.data)) {
            return wrong("a chunk with a wrong checksum");
        }
        self.writer.append(self.verified_bytes, &chunk.data).map_err(|error| {
            tracing::debug!(%error, "a chunk could not be kept");
            FetchError::Unwanted
        })?;
        self.crc32c = match chunk.data_crc32c {
            Some(crc) => crc32c::crc32c_combine(self.crc32c, crc, chunk.data.len()),
            None => crc32c::crc32c_append(self.crc32c, &chunk.data),
        };
        self.verified_bytes += chunk.data.len() as u64;
        Ok(())
    }
}

fn silent(limit: Duration) -> FetchError {
    FetchError::Broke(format!("nothing came for {} s", limit.as_secs_f64()))
}

fn of_status(status: &tonic::Status) -> FetchError {
    let text = match std::error::Error::source(status) {
        Some(cause) => crate::peers::root_cause(cause),
        None => status.message().to_owned(),
    };
    match status.code() {
        Code::NotFound
        | Code::DataLoss
        | Code::FailedPrecondition
        | Code::Unimplemented
        | Code::InvalidArgument => FetchError::Absent(text),
        // It is shorter than what is here already.
        Code::OutOfRange => FetchError::Differs,
        _ => FetchError::Broke(text),
    }
}
