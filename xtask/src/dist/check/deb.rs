//! The Debian package, in a system that has never seen Tripod.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::super::deb::file_name;
use super::{Subject, answer, cluster};
use crate::cargo::run_logged;
use crate::clean_root::{CleanRoot, HERE, Network};

/// What is typed there.
const TYPED: &str = include_str!("deb.sh");
/// What it needs besides `dpkg`.
const NEEDS: &str = "command -v dpkg && command -v ip && command -v setpriv && command -v systemd-sysusers && \
                     command -v systemd-tmpfiles";

/// Where this machine has no `dpkg`, or does not let us make a system, it is unpacked and its program used.
///
/// # Errors
/// It cannot be installed or removed, or its nodes do not serve.
pub(super) fn check(subject: &Subject<'_>) -> Result<String> {
    let name = file_name(subject.release);
    let package = subject.out.join(&name);
    let root = CleanRoot::new(Path::new("/"), subject.folder)?;
    let has_all = root.command(Network::Own, &[], &["sh", "-c", NEEDS]).output();
    if !has_all.is_ok_and(|output| output.status.success()) {
        let place = subject.folder.join("unpacked");
        if Command::new("dpkg-deb").arg("--version").output().is_err() {
            return Ok("NOT looked at: no dpkg here".to_owned());
        }
        answer(Command::new("dpkg-deb").arg("-x").arg(package).arg(&place))?;
        let told = cluster::survives(&place.join("usr/bin/tripod"), subject.folder)?;
        return Ok(format!("{told}; NOT installed, which needs root, Debian and systemd's programs"));
    }
    fs::copy(&package, subject.folder.join(&name)).with_context(|| format!("cannot copy {name}"))?;
    let package = format!("{HERE}/{name}");
    let typed = root.command(Network::Own, &[], &["sh", "-c", TYPED, "deb", &package]);
    run_logged(typed, &subject.folder.join("deb.log"))?;
    Ok("installed, three nodes by its service's command, leader killed, removed, purged".to_owned())
}
