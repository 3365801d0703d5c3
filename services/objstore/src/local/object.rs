//! An object as a process has it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;
use tonic::Code;
use tripod_proto::tripod::v1::local_request::Ask;
use tripod_proto::tripod::v1::{LocalAbort, LocalRelease, LocalSeal};

use super::connection::{Sender, run_of};
use crate::ids::ObjectId;
use crate::made::{Made, Teller};
use crate::mapping;

/// Why the store did not do what a process asked.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The store said no.
    #[error("the object store refuses: {text} ({code:?})")]
    Refused {
        /// What kind of refusal: `NotFound` of a deallocated object, `AlreadyExists`, `DeadlineExceeded`,
        /// `ResourceExhausted`, `FailedPrecondition` of a mapping that is left, `DataLoss` of a damaged one.
        code: Code,
        text: String,
    },
    /// The connection ended. The store may have registered anew: then its objects are gone, and workers register
    /// anew too.
    #[error("the connection to the object store ended: {0}; next: look whether `tripod objstore` runs here")]
    Disconnected(String),
    #[error("the object's memory cannot be used: {0}")]
    Memory(#[from] io::Error),
    /// The store does not speak the protocol.
    #[error("the object store answered something else than was asked; next: run the same version of both")]
    Unexpected,
}

/// An object that was got. The store keeps it in memory until the last clone of this and of its bytes is gone.
#[derive(Debug, Clone)]
pub struct Object {
    id: ObjectId,
    size_bytes: u64,
    metadata_offset: u64,
    body: Body,
}

#[derive(Debug, Clone)]
enum Body {
    Inline(Bytes),
    Held(Arc<MappedMemory>),
}

/// The memory of an object, released when nobody reads it any more.
#[derive(Debug)]
struct MappedMemory {
    file: File,
    id: ObjectId,
    sender: Sender,
}

impl Drop for MappedMemory {
    fn drop(&mut self) {
        self.sender.tell(Ask::Release(LocalRelease { objectid: self.id.0 }));
    }
}

impl Object {
    pub(super) fn inline(id: ObjectId, bytes: Bytes, metadata_offset: u64) -> Self {
        Self { id, size_bytes: bytes.len() as u64, metadata_offset, body: Body::Inline(bytes) }
    }

    pub(super) fn held(
        id: ObjectId,
        file: File,
        size_bytes: u64,
        metadata_offset: u64,
        sender: Sender,
    ) -> Self {
        Self {
            id,
            size_bytes,
            metadata_offset,
            body: Body::Held(Arc::new(MappedMemory { file, id, sender })),
        }
    }

    #[must_use]
    pub fn id(&self) -> ObjectId {
        self.id
    }

    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Place of the metadata in an Arrow layout; 0: the bytes are an encoded `Obj`.
    #[must_use]
    pub fn metadata_offset(&self) -> u64 {
        self.metadata_offset
    }

    /// The bytes, without a copy: those of large objects are the store's own memory.
    ///
    /// # Errors
    /// [`LocalError::Memory`], also if the store passed memory that could still be changed.
    pub fn bytes(&self) -> Result<Bytes, LocalError> {
        match &self.body {
            Body::Inline(bytes) => Ok(bytes.clone()),
            Body::Held(held) => {
                let len = usize::try_from(self.size_bytes).map_err(io::Error::other)?;
                Ok(mapping::map(&held.file, len, Arc::clone(held))?)
            }
        }
    }
}

/// Memory for an object that this process writes. The object is given up if this is dropped before it is sealed.
#[derive(Debug)]
pub struct Draft {
    id: ObjectId,
    size_bytes: u64,
    file: File,
    sender: Sender,
    sealed: bool,
}

impl Draft {
    pub(super) fn new(id: ObjectId, size_bytes: u64, file: File, sender: Sender) -> Self {
        Self { id, size_bytes, file, sender, sealed: false }
    }

    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// The memory, to be written to. A mapping for writing must be gone before [`Draft::seal`].
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Writes a part.
    ///
    /// # Errors
    /// [`LocalError::Memory`], if it ends behind the object's end too.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), LocalError> {
        Ok(self.file.write_all_at(bytes, offset)?)
    }

    /// The object is written: it can be got from now on, and nobody can change it.
    ///
    /// # Errors
    /// [`LocalError`]. After `FailedPrecondition` for a mapping that is left, sealing can be tried again.
    pub async fn seal(&mut self, metadata_offset: u64, made: impl Into<Made>) -> Result<(), LocalError> {
        let made = made.into();
        let seal = LocalSeal {
            objectid: self.id.0,
            metadata_offset,
            run: run_of(made.run),
            told_by_maker: made.teller == Teller::Maker,
        };
        self.sender.ask(Ask::Seal(seal)).await?;
        self.sealed = true;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.sealed {
            self.sender.tell(Ask::Abort(LocalAbort { objectid: self.id.0 }));
        }
    }
}
