//! The identities that open sealed backups.

use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};

use tripod_proto::code::Code;

use crate::failure::Failure;
use crate::secret_file;

/// Bytes of such a file: thousands of identities.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What a file of identities holds.
pub(crate) struct Identities {
    path: PathBuf,
    all: Vec<Box<dyn age::Identity + Send + Sync>>,
}

impl Identities {
    /// Reads such a file, as `age-keygen` writes it.
    ///
    /// # Errors
    /// The file cannot be read, others may read it, or it holds something else. What it holds is never told.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let file = secret_file::open(path).map_err(|why| refused(path, &why))?;
        let length = file.metadata().map_err(|error| refused(path, &error.to_string()))?.len();
        if length > FILE_BYTES_MAX {
            // Or those at its end would be left out without a word.
            return Err(refused(path, &format!("it has {length} bytes, and {FILE_BYTES_MAX} is the most")));
        }
        let parsed = age::IdentityFile::from_buffer(BufReader::new(file.take(FILE_BYTES_MAX)));
        let all = parsed.map_err(|error| refused(path, &error.to_string()))?;
        let all = all.into_identities().map_err(|error| refused(path, &error.to_string()))?;
        if all.is_empty() {
            return Err(refused(path, "it holds no identity"));
        }
        Ok(Self { path: path.to_owned(), all })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &dyn age::Identity> {
        self.all.iter().map(|identity| &**identity as &dyn age::Identity)
    }
}

fn refused(path: &Path, why: &str) -> Failure {
    Failure::new(
        Code::BackupIdentity,
        format!(
            "--identity {} cannot be used: {why}; give a file of lines `AGE-SECRET-KEY-1...`, as `age-keygen` writes it",
            path.display()
        ),
    )
}
