//! What the machine is, told before anything runs on it.

use std::process::Command;

use anyhow::Result;

use crate::cargo::target_dir;
use crate::rust_tests;
use crate::stage::Missing;

/// What builds (6.5 GiB), environments of clients (5 GiB) and clusters of tests take together.
const DISK_GIB: u64 = 14;

/// Says what it is.
///
/// # Errors
/// It lacks something; the rest can run all the same.
pub(crate) fn check() -> Result<()> {
    let built = target_dir()?;
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let free = free_gib(&built);
    let shown = free.map_or_else(|| "an unknown size".to_owned(), |gib| format!("{gib} GiB"));
    eprintln!("  {cores} cores, {shown} free for {}", built.display());
    if free.is_some_and(|gib| gib < DISK_GIB) && !built.join("tests/report.txt").exists() {
        // Whatever does not find room fails and says so; what does is as complete as elsewhere.
        eprintln!("  warning: a run from a fresh clone takes {DISK_GIB} GiB, and may not find room");
    }
    let mut lacks = Vec::new();
    if !rust_tests::has_nextest() {
        lacks.push("cargo-nextest is not installed: cargo install --locked cargo-nextest".to_owned());
    }
    if lacks.is_empty() { Ok(()) } else { Err(Missing(lacks.join("; ")).into()) }
}

/// The free space of the file system that a directory is on, or will be.
fn free_gib(directory: &std::path::Path) -> Option<u64> {
    let place = directory.ancestors().find(|place| place.exists())?;
    let output = Command::new("df").args(["--output=avail", "--block-size=1G"]).arg(place).output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().last()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_not_there_yet_has_the_space_of_its_parent() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(free_gib(&folder.path().join("not/yet")), free_gib(folder.path()));
        assert!(free_gib(folder.path()).is_some());
    }
}
