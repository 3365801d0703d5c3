//! Whoever is given a part of the project is told what it is and under which licence it may be used: every package
//! says so, and `NOTICE` names whose message definitions are in `proto/`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::walk::File;

const WORKSPACE: &str = "Cargo.toml";
const PYTHON: &[&str] = &["services/python/pyproject.toml", "services/python-tripod/pyproject.toml"];
const LICENCE: &str = "license = \"Apache-2.0\"";
/// What stands first in the text of the licence, but for blanks.
const FIRST_LINE: &str = "Apache License";
/// Folders of `proto/` whose messages are our own, or which have none.
const OWN: &[&str] = &["mars", "peer", "src", "tests", "tripod"];

/// Complaints about a manifest.
pub(super) fn check_manifest(file: &File) -> Vec<String> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    if name != "Cargo.toml" && name != "pyproject.toml" {
        return Vec::new();
    }
    let own = file.path == WORKSPACE || PYTHON.contains(&file.path.as_str());
    let licence = if own { LICENCE } else { "license.workspace = true" };
    let has = |begin: &str| file.text.lines().any(|line| line.starts_with(begin));
    let mut complaints = Vec::new();
    if !has(licence) {
        complaints.push(format!("1: no line `{licence}`"));
    }
    if !has("description = \"") {
        complaints.push("1: no `description`".to_owned());
    }
    complaints
}

/// Complaints about the texts that go with every copy. A project without messages of others needs no notice.
pub(super) fn check_texts(root: &Path) -> Result<Vec<String>> {
    let proto = root.join("proto");
    if !proto.is_dir() {
        return Ok(Vec::new());
    }
    let mut folders = Vec::new();
    for entry in fs::read_dir(&proto).context("cannot list proto")? {
        let entry = entry?;
        if entry.path().is_dir() {
            folders.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    folders.sort();
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
    Ok(missing(&read("LICENSE"), &read("NOTICE"), &folders))
}

fn missing(licence: &str, notice: &str, folders: &[String]) -> Vec<String> {
    let mut complaints = Vec::new();
    if !licence.trim_start().starts_with(FIRST_LINE) {
        complaints.push(format!("LICENSE does not begin with `{FIRST_LINE}`"));
    }
    let foreign = folders.iter().filter(|folder| !OWN.contains(&folder.as_str()));
    let unnamed = foreign.filter(|folder| !notice.lines().any(|line| line == format!("proto/{folder}")));
    complaints.extend(
        unnamed.map(|folder| format!("NOTICE has no line `proto/{folder}`: say whose messages they are")),
    );
    complaints
}

#[cfg(test)]
mod tests {
    use super::super::walk::sample;
    use super::*;

    #[test]
    fn a_package_says_what_it_is_and_under_which_licence() {
        let told = |path: &str, text: &str| check_manifest(&sample(path, text)).len();
        assert_eq!(told("raft/Cargo.toml", "description = \"x\"\nlicense.workspace = true\n"), 0);
        assert_eq!(told("raft/Cargo.toml", "[package]\nname = \"x\"\n"), 2);
        assert_eq!(told("raft/Cargo.toml", "description = \"x\"\nlicense = \"MIT\"\n"), 1);
        assert_eq!(told(WORKSPACE, "description = \"x\"\nlicense.workspace = true\n"), 1);
        for &path in PYTHON {
            assert_eq!(told(path, "description = \"x\"\nlicense = \"Apache-2.0\"\n"), 0);
        }
        assert_eq!(told("clippy.toml", ""), 0);
    }

    #[test]
    fn messages_of_others_are_named_in_the_notice() {
        let folders = ["peer", "xla"].map(str::to_owned);
        assert!(missing("\n  Apache License\n", "proto/xla\n    XLA", &folders).is_empty());
        assert_eq!(missing("", "", &folders).len(), 2);
    }
}
