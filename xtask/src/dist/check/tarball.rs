//! The tarball, in an empty directory.

use std::process::Command;

use anyhow::Result;

use super::super::tarball::file_name;
use super::{Subject, answer, cluster};

/// # Errors
/// It cannot be unpacked, the shell does not read its completions, or its program is no cluster.
pub(super) fn check(subject: &Subject<'_>) -> Result<String> {
    let file = subject.out.join(file_name(subject.release));
    answer(Command::new("tar").arg("-xzf").arg(file).arg("-C").arg(subject.folder))?;
    let top = subject.folder.join(subject.release.full_name());
    let program = top.join("bin/tripod");
    answer(
        Command::new("sh")
            .args(["-c", "command -v bash > /dev/null || exit 0; exec bash -n \"$0\""])
            .arg(top.join("share/bash-completion/completions/tripod")),
    )?;
    answer(Command::new(&program).args(["config", "check"]).arg(top.join("server.toml")))?;
    cluster::survives(&program, subject.folder)
}
