//! The few things that journal, snapshots and notes ask of a file system. Everything that they do to the disk goes
//! through here, so that a test can lose, tear or refuse any of it.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tripod_local::files;

use super::spare_file;

/// One directory of files. A change of names is durable after the next [`Files::sync_dir`].
pub(crate) trait Files: Send + Sync {
    /// Creates an empty file, in place of one of this name.
    fn create(&self, name: &str) -> io::Result<Arc<dyn Blob>>;

    /// Opens a file for reading and writing.
    fn open(&self, name: &str) -> io::Result<Arc<dyn Blob>>;

    /// Gives a file another name, in place of a file that has it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes creations, renames and removals durable.
    fn sync_dir(&self) -> io::Result<()>;

    /// The names of all files, in no order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// The directory, for messages.
    fn place(&self) -> &str;
}

/// An open file. Writes are durable after the next [`Blob::sync_data`].
pub(crate) trait Blob: Send + Sync {
    /// Reads until the buffer or the file ends; gives the number of bytes.
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes all of the bytes; the file grows when they reach beyond its end.
    fn write_at(&self, offset_bytes: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes everything written durable, the file's size included.
    fn sync_data(&self) -> io::Result<()>;

    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// The file's size in bytes.
    fn size(&self) -> io::Result<u64>;
}

/// Files of the operating system.
pub(crate) struct RealFiles {
    directory: PathBuf,
    place: String,
}

impl RealFiles {
    /// The files in `directory`, which is created, and made durable, if it does not exist.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        if !directory.is_dir() {
            files::create_dir(directory)?;
            let parent = directory.parent().expect("the journal lies in the data directory");
            spare_file::wait_for(parent, || fs::File::open(parent))?.sync_all()?;
        }
        Ok(Self { directory: directory.to_owned(), place: directory.display().to_string() })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl Files for RealFiles {
    fn create(&self, name: &str) -> io::Result<Arc<dyn Blob>> {
        let path = self.path(name);
        let mut options = files::options();
        options.read(true).write(true).create(true).truncate(true);
        let file = spare_file::wait_for(&path, || options.open(&path))?;
        Ok(Arc::new(RealBlob { file }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn Blob>> {
        let path = self.path(name);
        let file = spare_file::wait_for(&path, || fs::OpenOptions::new().read(true).write(true).open(&path))?;
        Ok(Arc::new(RealBlob { file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn sync_dir(&self) -> io::Result<()> {
        spare_file::wait_for(&self.directory, || fs::File::open(&self.directory))?.sync_all()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for file in spare_file::wait_for(&self.directory, || fs::read_dir(&self.directory))? {
            // A name that is not text is none of ours.
            names.extend(file?.file_name().into_string());
        }
        Ok(names)
    }

    fn place(&self) -> &str {
        &self.place
    }
}

struct RealBlob {
    file: fs::File,
}

/// Reads until the buffer or the file ends; gives the number of bytes.
pub(crate) fn read_up_to(file: &fs::File, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset_bytes + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

impl Blob for RealBlob {
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<usize> {
        read_up_to(&self.file, offset_bytes, buffer)
    }

    fn write_at(&self, offset_bytes: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset_bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.metadata().map(|metadata| metadata.len())
    }
}
