//! Writing files of certificates.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use tripod_local::files;
use tripod_proto::code::Code;

use crate::failure::Failure;

/// Writes a file that only its owner reads. A node that looks at the same time finds what was there, or all of this.
pub(crate) fn write(directory: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let (path, new) = (directory.join(name), directory.join(format!(".{name}.new")));
    let written = files::create(&new).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &path)
    });
    written.map_err(|error| {
        let next = "check that the directory may be written";
        Failure::new(Code::PkiFailed, format!("cannot write {}: {error}; next: {next}", path.display()))
    })
}

/// What is in a file.
pub(crate) fn read(directory: &Path, name: &str) -> Result<String, Failure> {
    let path = directory.join(name);
    fs::read_to_string(&path).map_err(|error| {
        let next = format!("make the issuers by `tripod pki init {} --cluster NAME`", directory.display());
        Failure::new(Code::PkiFailed, format!("cannot read {}: {error}; next: {next}", path.display()))
    })
}

/// Makes a directory and those above it, unless they are there.
pub(crate) fn directory(path: &Path) -> Result<(), Failure> {
    files::create_dir_all(path)
        .map_err(|error| Failure::new(Code::PkiFailed, format!("cannot make {}: {error}", path.display())))
}
