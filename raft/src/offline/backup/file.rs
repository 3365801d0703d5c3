//! A file that is read and never written, wherever it lies. Only the right to read it is needed.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::pace::{Pace, Walk};
use crate::disk::{Blob, read_up_to};

/// An open one. Whoever reads it is held to a pace.
pub(crate) struct ReadOnlyFile<S> {
    source: S,
    walk: Mutex<Walk>,
}

/// Whence its bytes come.
trait Source: Send + Sync {
    /// Reads until the buffer or the source ends; gives the number of bytes.
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<usize>;

    fn size(&self) -> io::Result<u64>;
}

impl ReadOnlyFile<File> {
    /// One that lies there as it is.
    pub(crate) fn open(path: &Path, pace: Pace) -> io::Result<Arc<dyn Blob>> {
        Ok(paced(File::open(path)?, pace))
    }
}

impl ReadOnlyFile<OpenedContent> {
    /// Such a content as a file. Looks how long it is.
    pub(crate) fn of(mut content: Box<dyn Content>, pace: Pace) -> io::Result<Arc<dyn Blob>> {
        let size_bytes = content.seek(SeekFrom::End(0))?;
        let reader = Mutex::new(Reader { content, at_bytes: None });
        Ok(paced(OpenedContent { reader, size_bytes }, pace))
    }
}

fn paced<S: Source + 'static>(source: S, pace: Pace) -> Arc<dyn Blob> {
    Arc::new(ReadOnlyFile { source, walk: Mutex::new(pace.walk()) })
}

fn refused() -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, "this file is only read")
}

impl<S: Source> Blob for ReadOnlyFile<S> {
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read_at(offset_bytes, buffer)?;
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
        self.source.size()
    }
}

impl Source for File {
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<usize> {
        read_up_to(self, offset_bytes, buffer)
    }

    fn size(&self) -> io::Result<u64> {
        self.metadata().map(|metadata| metadata.len())
    }
}

/// What a backup's content is read from, when it does not lie in a file as it is: whoever knows how it was sealed
/// has opened it.
pub trait Content: Read + Seek + Send {}

impl<T: Read + Seek + Send> Content for T {}

/// Such a content, and how long it is.
pub(crate) struct OpenedContent {
    reader: Mutex<Reader>,
    size_bytes: u64,
}

struct Reader {
    content: Box<dyn Content>,
    /// Where it goes on; nobody knows after an error.
    at_bytes: Option<u64>,
}

impl Reader {
    /// Reads until the buffer or the content ends.
    fn read_at(&mut self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at_bytes.take() != Some(offset_bytes) {
            self.content.seek(SeekFrom::Start(offset_bytes))?;
        }
        let mut read = 0;
        while read < buffer.len() {
            match self.content.read(&mut buffer[read..]) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.at_bytes = Some(offset_bytes + read as u64);
        Ok(read)
    }
}

impl Source for OpenedContent {
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if offset_bytes >= self.size_bytes {
            // As of a file. What a content does that is asked for something behind its end is its own affair.
            return Ok(0);
        }
        self.reader.lock().read_at(offset_bytes, buffer)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.size_bytes)
    }
}
