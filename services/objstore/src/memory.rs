//! Shared memory: a file without a name and without a disk, which processes are handed.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

/// The unit in which the system gives memory, in bytes.
const PAGE_BYTES: u64 = 4096;

/// What an object of that size takes, in bytes.
pub(crate) fn taken_bytes(size_bytes: u64) -> u64 {
    size_bytes.div_ceil(PAGE_BYTES).saturating_mul(PAGE_BYTES)
}

/// Memory of exactly that size, that can be written but neither grown nor shrunk.
///
/// # Errors
/// What the system says: mostly that this process has too many descriptors open.
pub(crate) fn create(size_bytes: u64) -> io::Result<File> {
    let file = File::from(memfd_create("tripod-object", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.set_len(size_bytes)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
    Ok(file)
}

/// Why memory could not be sealed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SealError {
    /// Somebody can still write to it: unmap it and seal again.
    #[error("a writable mapping of the object is left")]
    MappingLeft,
    /// Whoever wrote it has put a seal on it that keeps ours off: it can never be trusted.
    #[error("the object's memory was sealed by its writer, so that it could still be changed")]
    SealedByOther,
    #[error(transparent)]
    System(#[from] io::Error),
}

/// From now on nobody can change the memory. Answers it opened for reading, which is what may be handed out: systems
/// before Linux 6.7 refuse even readers a shared mapping of sealed memory that was opened for writing.
///
/// # Errors
/// [`SealError`].
pub(crate) fn seal(file: &File) -> Result<File, SealError> {
    match fcntl_add_seals(file, SealFlags::WRITE | SealFlags::SEAL) {
        Ok(()) => {}
        Err(rustix::io::Errno::BUSY) => return Err(SealError::MappingLeft),
        Err(rustix::io::Errno::PERM) => return Err(SealError::SealedByOther),
        Err(other) => return Err(SealError::System(other.into())),
    }
    match OpenOptions::new().read(true).open(format!("/proc/self/fd/{}", file.as_raw_fd())) {
        Ok(reader) => Ok(reader),
        // Without /proc the seals alone must do.
        Err(_) => Ok(file.try_clone()?),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    fn sealed_memory_cannot_be_changed_through_any_descriptor() {
        let writer = create(10).expect("created");
        writer.write_all_at(b"0123456789", 0).expect("not sealed yet");
        let reader = seal(&writer).expect("no mapping is left");
        assert!(writer.write_all_at(b"x", 0).is_err());
        assert!(reader.write_all_at(b"x", 0).is_err());
        assert!(writer.set_len(5).is_err() && writer.set_len(20).is_err());
        let mut read = [0; 10];
        reader.read_exact_at(&mut read, 0).expect("read");
        assert_eq!(&read, b"0123456789");
    }

    #[test]
    fn memory_has_its_size_from_the_beginning() {
        let file = create(5000).expect("created");
        assert!(file.set_len(4999).is_err() && file.set_len(5001).is_err());
        assert_eq!(
            (taken_bytes(0), taken_bytes(1), taken_bytes(4096), taken_bytes(4097)),
            (0, 4096, 4096, 8192)
        );
    }

    #[test]
    fn a_writer_that_seals_against_sealing_is_found_out() {
        let file = create(10).expect("created");
        fcntl_add_seals(&file, SealFlags::SEAL).expect("sealed");
        assert!(matches!(seal(&file), Err(SealError::SealedByOther)));
    }
}
