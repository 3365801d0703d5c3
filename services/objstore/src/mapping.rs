//! Sealed memory as bytes, without a copy. The one place of this crate with `unsafe`: docs/decisions/022.

use std::fs::File;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use memmap2::{Mmap, MmapOptions};
use rustix::fs::{SealFlags, fcntl_get_seals};

/// What memory must be protected against before it may be mapped.
const NEEDED: SealFlags = SealFlags::WRITE.union(SealFlags::SHRINK);

/// The first `len` bytes of sealed memory. They are read when they are first used, from what other mappings of the
/// same memory share. `keep` lives as long as any part of the answer.
///
/// # Errors
/// `InvalidInput` if the memory can still be changed or is shorter, or what the system says.
pub(crate) fn map<K: Send + Sync + 'static>(file: &File, len: usize, keep: Arc<K>) -> io::Result<Bytes> {
    if len == 0 {
        return Ok(Bytes::new());
    }
    let mapping = map_sealed(file, len)?;
    Ok(Bytes::from_owner(Mapped { mapping, _keep: keep }))
}

struct Mapped<K> {
    mapping: Mmap,
    _keep: Arc<K>,
}

impl<K> AsRef<[u8]> for Mapped<K> {
    fn as_ref(&self) -> &[u8] {
        &self.mapping
    }
}

#[allow(unsafe_code, reason = "docs/decisions/022-sealed-mappings.md")]
fn map_sealed(file: &File, len: usize) -> io::Result<Mmap> {
    if !fcntl_get_seals(file)?.contains(NEEDED) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "memory that can still be changed is not mapped",
        ));
    }
    if file.metadata()?.len() < len as u64 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the memory is shorter than the object"));
    }
    // SAFETY: a mapping is unsound if its bytes can change or its file can become shorter while it lives. The system
    // refuses both for memory with the seals checked above, to every process and for ever: seals cannot be taken off,
    // and F_SEAL_WRITE is given only while no writable mapping exists. The length was checked after the seals.
    unsafe { MmapOptions::new().len(len).map(file) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use rustix::fs::{MemfdFlags, fcntl_add_seals, memfd_create};

    use super::*;

    fn memory(text: &[u8]) -> File {
        let file = File::from(memfd_create("test", MemfdFlags::ALLOW_SEALING).expect("a memfd"));
        file.write_all_at(text, 0).expect("written");
        file
    }

    #[test]
    fn memory_that_could_change_or_is_too_short_is_refused() {
        let open = memory(b"abc");
        assert!(map(&open, 3, Arc::new(())).is_err());
        fcntl_add_seals(&open, SealFlags::SHRINK).expect("sealed");
        assert!(map(&open, 3, Arc::new(())).is_err());
        fcntl_add_seals(&open, SealFlags::WRITE).expect("sealed");
        assert!(map(&open, 4, Arc::new(())).is_err());
        assert_eq!(map(&open, 3, Arc::new(())).expect("sealed"), &b"abc"[..]);
    }

    #[test]
    fn the_keeper_lives_as_long_as_any_slice() {
        let file = memory(b"abc");
        fcntl_add_seals(&file, NEEDED).expect("sealed");
        let keep = Arc::new(());
        let all = map(&file, 3, Arc::clone(&keep)).expect("sealed");
        let slice = all.slice(1..2);
        drop(all);
        assert_eq!(Arc::strong_count(&keep), 2);
        drop(slice);
        assert_eq!(Arc::strong_count(&keep), 1);
    }
}
