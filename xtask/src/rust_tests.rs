//! The tests that cargo builds.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::cargo::{self, cargo};
use crate::stage::Missing;

/// Tests that start processes, wait for real elections or need minutes: everything else is quick.
const QUICK: &str = "not (group(processes) | group(disks))";

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    /// Without those that start processes.
    Quick,
}

/// Where cargo-nextest leaves its report.
pub(crate) fn junit(built: &Path) -> PathBuf {
    built.join("nextest/default/junit.xml")
}

/// Runs them, with more arguments for cargo-nextest.
///
/// # Errors
/// One failed. Without cargo-nextest the same tests are run another way, and what that cannot do is missing.
pub(crate) fn run(which: Which, more: &[&str]) -> Result<()> {
    if has_nextest() {
        let mut command = cargo(&["nextest", "run", "--workspace"]);
        if which == Which::Quick {
            command.args(["-E", QUICK]);
        }
        return cargo::run(command.args(more));
    }
    eprintln!("  cargo-nextest is not installed: running the same tests by cargo test, one binary at a time");
    cargo::run(&mut cargo(&["test", "--workspace", "--all-targets", "--no-fail-fast"]))?;
    let advice = "cargo install --locked cargo-nextest";
    Err(Missing(format!("without cargo-nextest no test is tried again, and none has a time; {advice}"))
        .into())
}

/// Whether it can be run.
pub(crate) fn has_nextest() -> bool {
    cargo(&["nextest", "--version"]).output().is_ok_and(|output| output.status.success())
}
