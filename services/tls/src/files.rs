//! Reading the files of a directory.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::fault::Fault;
use crate::limits::FILE_BYTES_MAX;

/// The own certificate, and those between it and its root.
pub const CERTIFICATE_FILE: &str = "tls.crt";
/// Its key.
pub const KEY_FILE: &str = "tls.key";
/// The roots by which nodes are believed.
pub const ROOTS_FILE: &str = "ca.crt";
/// The roots by which clients are believed, on nodes; where it is missing those of nodes count for clients, too.
pub const CLIENT_ROOTS_FILE: &str = "client-ca.crt";
/// Lists of revoked certificates; it may be missing.
pub const REVOKED_FILE: &str = "crl.pem";

/// What a key's mode must not have: rights of others. A group may read it, as mounted secrets are given to groups.
const OTHERS_MODE: u32 = 0o037;

/// The contents of the files.
pub(crate) struct Files {
    pub(crate) directory: PathBuf,
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
    pub(crate) roots: Vec<u8>,
    pub(crate) client_roots: Option<Vec<u8>>,
    pub(crate) revoked: Option<Vec<u8>>,
}

impl Files {
    /// Reads a directory.
    ///
    /// # Errors
    /// A file is missing, cannot be read, is too long, or is a key that others may read.
    pub(crate) fn read(directory: &Path) -> Result<Self, Fault> {
        let needed = |name| {
            read(&directory.join(name)).and_then(|found| found.ok_or_else(|| missing(directory, name)))
        };
        let may = |name| read(&directory.join(name));
        let (certificate, roots) = (needed(CERTIFICATE_FILE)?, needed(ROOTS_FILE)?);
        let key = needed(KEY_FILE)?;
        check_mode(&directory.join(KEY_FILE))?;
        Ok(Self {
            directory: directory.to_owned(),
            certificate,
            key,
            roots,
            client_roots: may(CLIENT_ROOTS_FILE)?,
            revoked: may(REVOKED_FILE)?,
        })
    }

    /// A hash by which other contents are told from these.
    pub(crate) fn digest(&self) -> u128 {
        let none = Vec::new();
        let parts = [
            &self.certificate,
            &self.key,
            &self.roots,
            self.client_roots.as_ref().unwrap_or(&none),
            self.revoked.as_ref().unwrap_or(&none),
        ];
        let mut hash = xxhash_rust::xxh3::Xxh3::new();
        for part in parts {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.digest128()
    }
}

/// The contents of those that say who is believed.
pub(crate) struct RootFiles {
    pub(crate) roots: Vec<u8>,
    /// Nothing if there are no lists.
    pub(crate) revoked: Vec<u8>,
}

impl RootFiles {
    /// Reads them from a directory.
    ///
    /// # Errors
    /// The roots are missing, or a file cannot be read or is too long.
    pub(crate) fn read(directory: &Path) -> Result<Self, Fault> {
        let roots = read(&directory.join(ROOTS_FILE))?.ok_or_else(|| missing(directory, ROOTS_FILE))?;
        Ok(Self { roots, revoked: read(&directory.join(REVOKED_FILE))?.unwrap_or_default() })
    }
}

fn missing(directory: &Path, name: &str) -> Fault {
    let next = format!("make it by `tripod pki --help`, or copy it to {}", directory.display());
    Fault::file(&directory.join(name), "is missing", next)
}

/// What is in a file; `None` if there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>, Fault> {
    let unreadable = |error: std::io::Error| {
        Fault::file(
            path,
            format_args!("cannot be read: {error}"),
            format!("check it by `ls -l {}`", path.display()),
        )
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let mut bytes = Vec::new();
    // One more than may be: what is longer is not read to its end.
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let why = format!("has more than {FILE_BYTES_MAX} bytes");
        return Err(Fault::file(path, why, "leave in it only what this cluster needs"));
    }
    Ok(Some(bytes))
}

/// Whether only its owner, and at most its group, may read a key.
fn check_mode(path: &Path) -> Result<(), Fault> {
    let meta = std::fs::metadata(path).map_err(|error| {
        Fault::file(path, format_args!("cannot be looked at: {error}"), "check its directory")
    })?;
    let mode = meta.permissions().mode() & 0o777;
    let group_may = mode & 0o040 != 0 && meta.uid() != 0;
    if mode & OTHERS_MODE != 0 || group_may {
        let next = format!("chmod 600 {}", path.display());
        return Err(Fault::file(path, format_args!("has mode {mode:04o}: others may read the key"), next));
    }
    Ok(())
}
