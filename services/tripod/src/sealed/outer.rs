//! A file as it lies there, whatever is in it.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

/// Read at a time.
const PART_BYTES: usize = 64 << 10;

/// Length and hash (xxh3) of a sealed file: what a bad disk or a bad copy changed is seen by it, and what somebody
/// changed who meant it is not; that takes an identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outer {
    pub(crate) bytes: u64,
    pub(crate) hash: u64,
}

impl Outer {
    /// Reads a file from its beginning to its end. Blocks.
    pub(crate) fn of(file: &Path) -> io::Result<Self> {
        let mut file = File::open(file)?;
        let mut part = vec![0; PART_BYTES];
        let (mut bytes, mut hash) = (0, Xxh3::new());
        loop {
            match file.read(&mut part) {
                Ok(0) => return Ok(Self { bytes, hash: hash.digest() }),
                Ok(read) => {
                    bytes += read as u64;
                    hash.update(&part[..read]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
