//! The C helpers, compiled when they are first needed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::mounts::Skip;

const FAULTS: &str = include_str!("../../../preload/faults.c");
const UNFLUSHED: &str = include_str!("../../../preload/unflushed.c");
const UNFLUSHED_HEADER: &str = include_str!("../../../preload/unflushed.h");
const CUT: &str = include_str!("../../../preload/cut.c");

/// Compiles the shared library into `directory`.
///
/// # Errors
/// [`Skip`] where there is no C compiler; else the compiler's words.
pub(super) fn build_faults(directory: &Path) -> anyhow::Result<PathBuf> {
    write(directory, "unflushed.h", UNFLUSHED_HEADER)?;
    let sources = [("faults.c", FAULTS), ("unflushed.c", UNFLUSHED)];
    build(directory, "faults", &sources, &["-shared", "-fPIC", "-pthread", "-ldl"])
}

/// Compiles the program that cuts the power into `directory`.
///
/// # Errors
/// As for [`build_faults`].
pub(super) fn build_cut(directory: &Path) -> anyhow::Result<PathBuf> {
    build(directory, "cut", &[("cut.c", CUT)], &[])
}

fn build(directory: &Path, name: &str, sources: &[(&str, &str)], flags: &[&str]) -> anyhow::Result<PathBuf> {
    let output = directory.join(name);
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-o"]).arg(&output);
    for (file, source) in sources {
        compiler.arg(write(directory, file, source)?);
    }
    // Libraries come last: the linker looks only for what was missing before.
    let done = match compiler.args(flags).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Skip::new(
                "no C compiler (`cc`), which the faults inside of processes are built with",
            )
            .into());
        }
        other => other.context("cannot run cc")?,
    };
    anyhow::ensure!(done.status.success(), "cc failed on {name}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(output)
}

fn write(directory: &Path, name: &str, text: &str) -> anyhow::Result<PathBuf> {
    let path = directory.join(name);
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
