//! A file that is read and never written, wherever it lies. Only the right to read it is needed.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::pace::{Pace, Walk};
use crate::disk::{Blob, read_up_to};

/// An open file.
pub(crate) struct ReadOnlyFile {
    file: File,
    walk: Mutex<Walk>,
}

impl ReadOnlyFile {
    /// Whoever reads is held to a pace.
    pub(crate) fn open(path: &Path, pace: Pace) -> io::Result<Arc<dyn Blob>> {
        Ok(Arc::new(Self { file: File::open(path)?, walk: Mutex::new(pace.walk()) }))
    }
}

fn refused() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "this file is only read")
}

impl Blob for ReadOnlyFile {
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = read_up_to(&self.file, offset_bytes, buffer)?;
        let rest = self.walk.lock().step(read);
        std::thread::sleep(rest);
        Ok(read)
    }

    fn write_at(&self, _offset_bytes: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(refused())
    }

    fn sync_data(&self) -> io::Result<()> {
        Err(refused())
    }

    fn set_len(&self, _bytes: u64) -> io::Result<()> {
        Err(refused())
    }

    fn size(&self) -> io::Result<u64> {
        self.file.metadata().map(|metadata| metadata.len())
    }
}
