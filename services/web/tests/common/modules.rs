//! The packages that the page is built and tested with, in a copy of its sources below `target/page`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The page's sources.
pub fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("page")
}

pub fn target() -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"))
}

/// A copy of the sources with the packages of their lock file installed. `None`, with a word: there is no Node, or no registry
/// answers.
pub fn with_modules() -> Option<PathBuf> {
    let copy = target().join("page");
    fs::create_dir_all(&copy).expect("a folder");
    // Tests are processes of their own.
    let lock = File::create(target().join("page.lock")).expect("a file");
    lock.lock().expect("locked");
    let ours = fs::read(page().join("package-lock.json")).expect("readable");
    let is_installed = fs::read(copy.join("installed")).is_ok_and(|installed| installed == ours);
    copy_all(&page(), &copy);
    if is_installed {
        return Some(copy);
    }
    let install = Command::new("npm").args(["ci", "--ignore-scripts"]).current_dir(&copy).output();
    match install {
        Ok(ran) if ran.status.success() => {
            fs::write(copy.join("installed"), ours).expect("written");
            Some(copy)
        }
        Ok(ran) => {
            println!("skipped: npm ci failed: {}", String::from_utf8_lossy(&ran.stderr));
            None
        }
        Err(error) => {
            println!("skipped: there is no npm: {error}");
            None
        }
    }
}

fn copy_all(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("readable") {
        let entry = entry.expect("an entry");
        let (path, name) = (entry.path(), entry.file_name());
        if name == "node_modules" || name == "dist" {
            continue;
        }
        let place = to.join(name);
        if path.is_dir() {
            fs::create_dir_all(&place).expect("a folder");
            copy_all(&path, &place);
        } else {
            fs::copy(&path, &place).expect("copied");
        }
    }
}
