//! The text files of the project.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// A file that people write.
pub(super) struct File {
    /// Relative to the root, with `/`.
    pub(super) path: String,
    pub(super) text: String,
}

impl File {
    /// Whether it is Rust source.
    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

/// Endings of files that people write. Recorded data (goldens, transcripts) follows its source.
const WRITTEN: &[&str] = &[".rs", ".toml", ".md", ".py", ".proto", ".yml", ".yaml", ".sh", ".ci/run"];

/// Every written file below `root`, sorted; build directories and version control are left out.
pub(super) fn text_files(root: &Path) -> Result<Vec<File>> {
    let mut files = Vec::new();
    descend(root, "", &mut files)?;
    files.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(files)
}

fn descend(directory: &Path, prefix: &str, files: &mut Vec<File>) -> Result<()> {
    // Cargo marks its build directories, whatever they are called.
    if directory.join("CACHEDIR.TAG").exists() {
        return Ok(());
    }
    let entries = fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if name != ".git" && name != "target" && name != "__pycache__" {
                descend(&entry.path(), &format!("{path}/"), files)?;
            }
        } else if kind.is_file() && WRITTEN.iter().any(|ending| path.ends_with(ending)) {
            let text =
                fs::read_to_string(entry.path()).with_context(|| format!("{path} is no UTF-8 text"))?;
            files.push(File { path, text });
        }
    }
    Ok(())
}

#[cfg(test)]
pub(super) fn sample(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_directories_and_data_are_left_out() {
        let directory = std::env::temp_dir().join(format!("xtask-walk-{}", std::process::id()));
        for folder in ["src", "out", ".git"] {
            fs::create_dir_all(directory.join(folder)).unwrap();
            fs::write(directory.join(folder).join("a.rs"), "").unwrap();
        }
        fs::write(directory.join("out/CACHEDIR.TAG"), "").unwrap();
        fs::write(directory.join("golden.json"), "").unwrap();
        let found: Vec<String> = text_files(&directory).unwrap().into_iter().map(|file| file.path).collect();
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(found, ["src/a.rs"]);
    }
}
