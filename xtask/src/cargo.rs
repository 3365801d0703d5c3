//! Running cargo and other programs, and where things lie.

use std::borrow::BorrowMut;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The password of the key by which a release is signed.
pub(crate) const SIGNING_PASSWORD: &str = "MINISIGN_PASSWORD";
/// Lines of a log that an error quotes.
const LAST_LINES: usize = 40;

/// The root of the workspace.
#[must_use]
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies below the root").to_path_buf()
}

/// A cargo command in the root, by the cargo that runs this program.
#[must_use]
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What builds crates of others has no use for it.
    command.args(arguments).current_dir(root()).env_remove(SIGNING_PASSWORD);
    if std::env::var_os("CI").is_some() {
        // What is built once needs no notes for the next time, which take a tenth of the time and the disk.
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

/// Runs a command to its end with our own output streams.
///
/// # Errors
/// It could not be started, or it did not end with success.
pub(crate) fn run(mut command: impl BorrowMut<Command>) -> Result<()> {
    let command = command.borrow_mut();
    let shown = shown(command);
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    Ok(())
}

/// Runs a command to its end with its output in a file, for those that run beside others.
///
/// # Errors
/// As [`run`]; the text has the last lines of the output.
pub(crate) fn run_logged(mut command: impl BorrowMut<Command>, log: &Path) -> Result<()> {
    let folder = log.parent().expect("a log lies in a folder");
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let other = file.try_clone().context("cannot write a log twice")?;
    let outcome = run(command.borrow_mut().stdin(Stdio::null()).stdout(file).stderr(other));
    outcome.with_context(|| {
        let text = fs::read(log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        format!("{}\n(all of it: {})", last.join("\n"), log.display())
    })
}

/// The same command, which leaves the processors to whoever else wants them.
#[must_use]
pub(crate) fn yielding(command: &Command) -> Command {
    let mut yielding = Command::new("nice");
    yielding.args(["-n", "19"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => yielding.env(name, value),
            None => yielding.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        yielding.current_dir(directory);
    }
    yielding
}

/// A command as one could type it.
#[must_use]
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// `cargo metadata` of the workspace, resolved or not.
///
/// # Errors
/// Cargo failed or printed something else.
pub(crate) fn metadata() -> Result<Value> {
    let mut command = cargo(&["metadata", "--format-version", "1", "--no-deps", "--quiet"]);
    let output = command.output().context("cannot start cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")
}

/// Where cargo puts what it builds; honours `CARGO_TARGET_DIR` and the configuration.
///
/// # Errors
/// As [`metadata`].
pub(crate) fn target_dir() -> Result<PathBuf> {
    let metadata = metadata()?;
    Ok(metadata["target_directory"].as_str().context("cargo metadata names no target directory")?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logged_command_that_fails_is_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("some/log");
        let mut command = Command::new("sh");
        command.args(["-c", "echo seen; echo \"$WORD\" >&2; exit 3"]).env("WORD", "told");
        let error = format!("{:#}", run_logged(yielding(&command), &log).unwrap_err());
        assert!(error.contains("seen\ntold") && error.contains("exit status: 3"), "{error}");
        assert!(fs::read_to_string(log).unwrap().contains("told"));
    }
}
