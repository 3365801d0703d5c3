//! Files of an artefact in memory, in order, and as an archive that is the same whoever makes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};

use super::release::Effort;

/// The mode of a file that is read.
pub(crate) const READ: u32 = 0o644;
/// The mode of a file that is run, and of a folder.
pub(crate) const RUN: u32 = 0o755;
/// Folders and endings of what a Python that ran in a source tree left there.
const LEFT_BY_PYTHON: [&str; 3] = ["__pycache__", ".pyc", ".egg-info"];

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) mode: u32,
    pub(crate) bytes: Vec<u8>,
}

/// Files by their paths, with `/` and without one in front.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tree(BTreeMap<String, Entry>);

impl Tree {
    /// Adds a file, in the place of one of the same path.
    pub(crate) fn add(&mut self, path: impl Into<String>, mode: u32, bytes: impl Into<Vec<u8>>) {
        self.0.insert(path.into(), Entry { mode, bytes: bytes.into() });
    }

    /// Adds a file of the disk that is read.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub(crate) fn add_file(&mut self, path: impl Into<String>, source: &Path) -> Result<()> {
        let bytes = fs::read(source).with_context(|| format!("cannot read {}", source.display()))?;
        self.add(path, READ, bytes);
        Ok(())
    }

    /// Adds what is in a folder of the disk below `prefix`, but for what Python left there.
    ///
    /// # Errors
    /// It is not there, or something in it cannot be read.
    pub(crate) fn add_folder(&mut self, prefix: &str, source: &Path) -> Result<()> {
        for entry in fs::read_dir(source).with_context(|| format!("cannot list {}", source.display()))? {
            let entry = entry.with_context(|| format!("cannot list {}", source.display()))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if LEFT_BY_PYTHON.iter().any(|end| name.ends_with(end)) {
                continue;
            }
            let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            if entry.path().is_dir() {
                self.add_folder(&path, &entry.path())?;
            } else {
                self.add_file(path, &entry.path())?;
            }
        }
        Ok(())
    }

    /// Adds everything of another tree below `prefix`.
    pub(crate) fn add_tree(&mut self, prefix: &str, other: &Self) {
        for (path, entry) in other.iter() {
            self.0.insert(format!("{prefix}/{path}"), entry.clone());
        }
    }

    /// The files, by path.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.0.iter().map(|(path, entry)| (path.as_str(), entry))
    }

    /// The bytes of all files together.
    pub(crate) fn size(&self) -> usize {
        self.0.values().map(|entry| entry.bytes.len()).sum()
    }

    /// The same as a compressed archive of tar: sorted, of user and group 0, all of one time in seconds since 1970.
    /// Folders are in it, each before what it holds. Every path begins with `top`.
    ///
    /// # Errors
    /// A path is too long for an archive.
    pub(crate) fn tar_gz(&self, top: &str, epoch_s: u64, effort: Effort) -> Result<Vec<u8>> {
        let mut builder = tar::Builder::new(Vec::new());
        for folder in self.folders() {
            let mut header = header(tar::EntryType::Directory, RUN, 0, epoch_s);
            let path = format!("{top}{folder}");
            builder.append_data(&mut header, &path, std::io::empty()).with_context(|| path.clone())?;
        }
        for (path, entry) in self.iter() {
            let size = u64::try_from(entry.bytes.len())?;
            let mut header = header(tar::EntryType::Regular, entry.mode, size, epoch_s);
            let path = format!("{top}{path}");
            builder.append_data(&mut header, &path, &entry.bytes[..]).with_context(|| path.clone())?;
        }
        gz(&builder.into_inner()?, effort)
    }

    /// Every folder above a file, with `/` behind it.
    fn folders(&self) -> BTreeSet<String> {
        let mut folders = BTreeSet::new();
        for path in self.0.keys() {
            folders.extend(path.match_indices('/').map(|(at, _)| path[..=at].to_owned()));
        }
        folders
    }
}

fn header(kind: tar::EntryType, mode: u32, size: u64, epoch_s: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(epoch_s);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// Compressed, without a name or a time of its own.
///
/// # Errors
/// Memory is no place where writing fails; the encoder may.
pub(crate) fn gz(bytes: &[u8], effort: Effort) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::new(effort.level().into()));
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

#[cfg(test)]
pub(crate) fn un_tar_gz(bytes: &[u8]) -> Vec<(String, u32, u64, Vec<u8>)> {
    use std::io::Read as _;

    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes));
    let mut found = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
        let header = entry.header();
        assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0), "{path}");
        let (mode, time_s) = (header.mode().unwrap(), header.mtime().unwrap());
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        found.push((path, mode, time_s, bytes));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_sorted_owned_by_nobody_in_particular_and_the_same_each_time() {
        let mut tree = Tree::default();
        tree.add("share/b", READ, "two");
        tree.add("bin/a", RUN, "one");
        let bytes = tree.tar_gz("top/", 17, Effort::Best).unwrap();
        assert_eq!(bytes, tree.tar_gz("top/", 17, Effort::Best).unwrap());
        assert_ne!(bytes, tree.tar_gz("top/", 18, Effort::Best).unwrap());
        let found: Vec<_> = un_tar_gz(&bytes)
            .into_iter()
            .map(|(path, mode, time_s, bytes)| (path, mode, time_s, String::from_utf8(bytes).unwrap()))
            .collect();
        let expected = [
            ("top/bin/", RUN, ""),
            ("top/share/", RUN, ""),
            ("top/bin/a", RUN, "one"),
            ("top/share/b", READ, "two"),
        ];
        assert_eq!(found, expected.map(|(path, mode, text)| (path.to_owned(), mode, 17, text.to_owned())));
    }

    #[test]
    fn what_python_left_in_a_folder_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/__pycache__")).unwrap();
        fs::create_dir_all(folder.path().join("a.egg-info")).unwrap();
        for name in ["a/b.py", "a/__pycache__/b.pyc", "a/c.pyc", "a.egg-info/x"] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        let mut tree = Tree::default();
        tree.add_folder("", folder.path()).unwrap();
        assert_eq!(tree.iter().map(|(path, _)| path).collect::<Vec<_>>(), ["a/b.py"]);
    }
}
