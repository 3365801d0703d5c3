//! A copy of the working tree, in which mistakes are made one at a time.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The copy.
pub(super) struct Tree {
    root: PathBuf,
}

impl Tree {
    /// Makes `copy` what the working tree at `root` is now: what git tracks, and what it would. Files that are the
    /// same stay as they are, so that cargo builds nothing anew for them; a mistake that an interrupted run left goes.
    ///
    /// # Errors
    /// git cannot list the files, or one of them cannot be copied.
    pub(super) fn synced(root: &Path, copy: &Path) -> Result<Self> {
        let wanted = files(root)?;
        for path in &wanted {
            copy_if_different(&root.join(path), &copy.join(path))?;
        }
        remove_others(copy, copy, &wanted)?;
        Ok(Self { root: copy.to_owned() })
    }

    /// Where it is.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Replaces a file's text.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn write(&self, path: &str, text: &str) -> Result<()> {
        let path = self.root.join(path);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// A file's text.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn read(&self, path: &str) -> Result<String> {
        let path = self.root.join(path);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }
}

/// Tracked files that are there, and those that are new and not ignored: what cargo would build.
fn files(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut command = Command::new("git");
    command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
    let output = command.output().context("cannot start git, which lists the files to copy")?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        bail!("`git ls-files` failed in {}: {}; run this in a checkout", root.display(), told.trim());
    }
    let text = String::from_utf8(output.stdout).context("a file's name is no UTF-8")?;
    let names = text.split('\0').filter(|name| !name.is_empty());
    // One that was deleted and not committed is still listed.
    Ok(names.map(PathBuf::from).filter(|path| root.join(path).is_file()).collect())
}

fn copy_if_different(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if fs::read(to).is_ok_and(|known| known == bytes) {
        return Ok(());
    }
    let folder = to.parent().expect("a file lies in a folder");
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    // With its permissions: some are programs.
    fs::copy(from, to).map(|_| ()).with_context(|| format!("cannot write {}", to.display()))
}

/// Removes what is not wanted: files that were deleted since, and what tests have left.
fn remove_others(copy: &Path, folder: &Path, wanted: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let entry = entry?;
        let path = entry.path();
        let relative = path.strip_prefix(copy).expect("it was found below the copy");
        if entry.file_type()?.is_dir() {
            remove_others(copy, &path, wanted)?;
        } else if !wanted.contains(relative) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(root: &Path, arguments: &[&str]) {
        let output = Command::new("git").args(arguments).current_dir(root).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    #[test]
    fn the_copy_follows_the_working_tree_and_leaves_alone_what_is_the_same() {
        let place = std::env::temp_dir().join(format!("xtask-tree-{}", std::process::id()));
        let (root, copy) = (place.join("root"), place.join("copy"));
        fs::create_dir_all(root.join("src")).unwrap();
        git(&root, &["init", "--quiet"]);
        for (path, text) in [("src/a.rs", "a"), ("b.rs", "b"), (".gitignore", "ignored\n"), ("ignored", "")] {
            fs::write(root.join(path), text).unwrap();
        }
        git(&root, &["add", "src/a.rs", ".gitignore"]);

        let tree = Tree::synced(&root, &copy).unwrap();
        assert_eq!((tree.read("src/a.rs").unwrap(), tree.read("b.rs").unwrap()), ("a".into(), "b".into()));
        assert!(!copy.join("ignored").exists() && !copy.join(".git").exists());

        // A mistake that is left, what a test has made, and a file that goes.
        tree.write("src/a.rs", "mistake").unwrap();
        fs::write(copy.join("src/made"), "").unwrap();
        fs::remove_file(root.join("b.rs")).unwrap();
        let before = fs::metadata(copy.join(".gitignore")).unwrap().modified().unwrap();
        let tree = Tree::synced(&root, &copy).unwrap();
        assert_eq!(tree.read("src/a.rs").unwrap(), "a");
        assert!(!copy.join("src/made").exists() && !copy.join("b.rs").exists());
        assert_eq!(fs::metadata(copy.join(".gitignore")).unwrap().modified().unwrap(), before);
        fs::remove_dir_all(place).unwrap();
    }
}
