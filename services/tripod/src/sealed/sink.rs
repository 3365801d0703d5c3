//! A backup while it is written.

use std::io::{self, Write};
use std::iter;
use std::path::{Path, PathBuf};

use age::stream::StreamWriter;
use age::x25519::Identity;
use tripod_proto::code::Code;
use tripod_raft::backup::{self, Contents, Pace};
use xxhash_rust::xxh3::Xxh3;

use super::{Outer, Recipient, opened};
use crate::cmd::snapshot::{Target, cannot_write};
use crate::failure::Failure;

/// Where the bytes of a backup go.
pub(crate) enum Sink {
    Plain(Target),
    Sealed(Box<Sealing>),
}

/// A file that is being sealed.
pub(crate) struct Sealing {
    file: PathBuf,
    writer: StreamWriter<Hashed>,
    /// Opens it until it was verified; goes with this process.
    check: Identity,
}

impl Sink {
    /// Begins the file, sealed if there are recipients.
    ///
    /// # Errors
    /// As [`Target::open`].
    pub(crate) fn open(file: &Path, replace: bool, recipients: &[Recipient]) -> Result<Self, Failure> {
        let target = Target::open(file, replace)?;
        if recipients.is_empty() {
            return Ok(Self::Plain(target));
        }
        let check = Identity::generate();
        let for_check = check.to_public();
        let last: &dyn age::Recipient = &for_check;
        let all = recipients.iter().map(Recipient::of_age).chain(iter::once(last));
        let encryptor = age::Encryptor::with_recipients(all).map_err(|error| cannot_seal(file, &error))?;
        let hashed = Hashed { target, bytes: 0, hash: Xxh3::new() };
        let writer = encryptor.wrap_output(hashed).map_err(|error| cannot_write(file, &error))?;
        Ok(Self::Sealed(Box::new(Sealing { file: file.to_owned(), writer, check })))
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Plain(target) => target.write(bytes),
            Self::Sealed(sealing) => {
                let Sealing { file, writer, .. } = &mut **sealing;
                writer.write_all(bytes).map_err(|error| cannot_write(file, &error))
            }
        }
    }

    /// Makes the content durable.
    pub(crate) fn finish(self) -> Result<Written, Failure> {
        match self {
            Self::Plain(target) => Ok(Written { target: target.finish()?, seal: None }),
            Self::Sealed(sealing) => {
                let Sealing { file, writer, check } = *sealing;
                let hashed = writer.finish().map_err(|error| cannot_write(&file, &error))?;
                let outer = Outer { bytes: hashed.bytes, hash: hashed.hash.digest() };
                Ok(Written { target: hashed.target.finish()?, seal: Some(Seal { outer, check }) })
            }
        }
    }
}

/// Counts and hashes what is written to a file.
struct Hashed {
    target: Target,
    bytes: u64,
    hash: Xxh3,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.target.put(bytes)?;
        self.bytes += bytes.len() as u64;
        self.hash.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A backup that is durable and has no name yet.
pub(crate) struct Written {
    target: Target,
    seal: Option<Seal>,
}

struct Seal {
    outer: Outer,
    check: Identity,
}

impl Written {
    /// Reads it again from its beginning to its end. Blocks.
    ///
    /// # Errors
    /// It is not what was written, or cannot be read.
    pub(crate) fn verify(&self, pace: Pace) -> Result<Contents, Failure> {
        let path = self.target.path();
        let contents = match &self.seal {
            None => backup::verify_at(&path, pace),
            Some(seal) => {
                let identity: &dyn age::Identity = &seal.check;
                let content = opened::open_by(&path, iter::once(identity), "this process")?;
                backup::verify_content(&path, content, pace)
            }
        };
        contents.map_err(|error| Failure::told(Code::BackupIo, error.to_string()))
    }

    /// Of a sealed one: what it is to those who cannot open it.
    pub(crate) fn outer(&self) -> Option<Outer> {
        self.seal.as_ref().map(|seal| seal.outer)
    }

    /// Gives the file its name, durably.
    pub(crate) fn put_in_place(self) -> Result<(), Failure> {
        self.target.put_in_place()
    }
}

fn cannot_seal(file: &Path, error: &age::EncryptError) -> Failure {
    Failure::new(Code::Defect, format!("{} cannot be sealed: {error}", file.display()))
}
