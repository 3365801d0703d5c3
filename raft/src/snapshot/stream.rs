//! A file as something to read, or to write, from its beginning to its end.

use std::io::{self, Read, Write};
use std::sync::Arc;

use crate::disk::Blob;

/// A file, and how far one has come in it.
pub(super) struct BlobStream {
    blob: Arc<dyn Blob>,
    at_bytes: u64,
}

impl BlobStream {
    pub(super) fn new(blob: Arc<dyn Blob>) -> Self {
        Self { blob, at_bytes: 0 }
    }

    pub(super) fn blob(&self) -> &dyn Blob {
        &*self.blob
    }
}

impl Read for BlobStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.blob.read_at(self.at_bytes, buffer)?;
        self.at_bytes += read as u64;
        Ok(read)
    }
}

impl Write for BlobStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.blob.write_at(self.at_bytes, bytes)?;
        self.at_bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
