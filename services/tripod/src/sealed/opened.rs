//! The content of a sealed backup.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read as _, Seek as _};
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
/// What follows in that line, a MAC in base64, and then its end.
const MAC_LETTERS: usize = 43;
/// A head that is longer is refused before anything is made of it: sixteen recipients need 2 KiB.
const HEAD_BYTES_MAX: u64 = 16 << 10;

/// Whether a file is sealed. One that cannot be read is not: whoever reads it next says why.
pub(crate) fn is_sealed(file: &Path) -> bool {
    let begin = File::open(file).and_then(|file| head(&file, MAGIC.len() as u64));
    begin.is_ok_and(|begin| begin == MAGIC)
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
    // It is opened once: what was looked at is what is read, whatever has its name by then.
    let mut input = File::open(file).map_err(|error| unreadable(file, &error))?;
    let head = head(&input, HEAD_BYTES_MAX).map_err(|error| unreadable(file, &error))?;
    if !is_ended(&head) {
        return Err(damaged(file, "its head has no end"));
    }
    input.rewind().map_err(|error| unreadable(file, &error))?;
    let opened = age::Decryptor::new_buffered(BufReader::new(input));
    let content = opened.and_then(|opened| opened.decrypt(identities));
    match content {
        Ok(content) => Ok(Box::new(content)),
        Err(error) => Err(refused(file, &error, named)),
    }
}

/// The first bytes of a file.
fn head(file: &File, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    file.take(most_bytes).read_to_end(&mut head)?;
    Ok(head)
}

/// Whether the last line of the head is there, as a whole. Of one that is too short the library takes the rest from what
/// follows, up to the next end of a line, and that may be the end of the file.
fn is_ended(head: &[u8]) -> bool {
    let last = head.windows(LAST_LINE.len()).position(|bytes| bytes == LAST_LINE);
    last.is_some_and(|last| {
        let mac = &head[last + LAST_LINE.len()..];
        mac.iter().position(|byte| *byte == b'\n') == Some(MAC_LETTERS)
    })
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
