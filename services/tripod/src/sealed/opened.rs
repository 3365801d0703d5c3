//! The content of a sealed backup.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read as _};
use std::path::Path;

use age::DecryptError;
use tripod_proto::code::Code;
use tripod_raft::backup::Content;

use super::Identities;
use crate::failure::Failure;

/// How a file of age begins.
const MAGIC: &[u8] = b"age-encryption.org/v1\n";
/// How the last line of its head begins.
const LAST_LINE: &[u8] = b"\n--- ";
/// A head that is longer is refused before anything is made of it: sixteen recipients need 2 KiB.
const HEAD_BYTES_MAX: u64 = 64 << 10;

/// Whether a file is sealed. One that cannot be read is not: whoever reads it next says why.
pub(crate) fn is_sealed(file: &Path) -> bool {
    head(file, MAGIC.len() as u64).is_ok_and(|head| head == MAGIC)
}

/// Opens a sealed file.
///
/// # Errors
/// No identity opens it, its head is damaged, or it cannot be read. What stands behind the head is judged as it is
/// read.
pub(crate) fn open(file: &Path, identities: &Identities) -> Result<Box<dyn Content>, Failure> {
    let named = identities.path().display().to_string();
    open_by(file, identities.iter(), &named)
}

/// The same by identities that `named` stands for.
pub(super) fn open_by<'a>(
    file: &Path,
    identities: impl Iterator<Item = &'a dyn age::Identity>,
    named: &str,
) -> Result<Box<dyn Content>, Failure> {
    let head = head(file, HEAD_BYTES_MAX).map_err(|error| unreadable(file, &error))?;
    if !is_ended(&head) {
        return Err(damaged(file, "its head has no end"));
    }
    let input = File::open(file).map_err(|error| unreadable(file, &error))?;
    let opened = age::Decryptor::new_buffered(BufReader::new(input));
    let content = opened.and_then(|opened| opened.decrypt(identities));
    match content {
        Ok(content) => Ok(Box::new(content)),
        Err(error) => Err(refused(file, &error, named)),
    }
}

/// The first bytes of a file.
fn head(file: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(file)?.take(most_bytes).read_to_end(&mut head)?;
    Ok(head)
}

/// Whether the last line of the head is there, as a whole.
fn is_ended(head: &[u8]) -> bool {
    let last = head.windows(LAST_LINE.len()).position(|bytes| bytes == LAST_LINE);
    last.is_some_and(|last| head[last + 1..].contains(&b'\n'))
}

fn refused(file: &Path, error: &DecryptError, named: &str) -> Failure {
    match error {
        DecryptError::NoMatchingKeys => Failure::new(
            Code::BackupIdentity,
            format!(
                "{} was sealed for others: no identity in {named} opens it; give --identity the file whose recipient was \
                 named when it was saved (`age-keygen -y FILE` prints the recipients of a file)",
                file.display()
            ),
        ),
        DecryptError::Io(error)
            if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) =>
        {
            damaged(file, "it ends inside its head")
        }
        DecryptError::Io(error) => unreadable(file, error),
        _ => damaged(file, "its head was changed"),
    }
}

fn damaged(file: &Path, what: &str) -> Failure {
    Failure::new(
        Code::BackupDamaged,
        format!(
            "{} is not what was saved: {what}. Do not use it: take another copy of it, or an older snapshot",
            file.display()
        ),
    )
}

/// The file cannot be read.
pub(crate) fn unreadable(file: &Path, error: &io::Error) -> Failure {
    Failure::new(
        Code::BackupIo,
        format!("cannot read {}: {error}; check the path, its permissions and the disk", file.display()),
    )
}
