//! Which program was judged.

use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// The program whose nodes a run started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Where it lay.
    pub path: String,
    /// Of its bytes, in hexadecimal digits; empty if nobody knows.
    pub sha256: String,
    /// The commit of the checkout that it lies in, with `, changed` behind it if files of the checkout were not as in
    /// that commit; empty if it lies in none. A program may be older than its checkout: its hash says what it is.
    #[serde(default)]
    pub commit: String,
}

impl Program {
    /// The program in a file. Its hash is what `sha256sum` says, so that anybody can compare it with a file of theirs.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let text = said(Command::new("sha256sum").arg("--").arg(path)).unwrap_or_default();
        // With a backslash in front if the name of the file has one.
        let sha256 = text.split_whitespace().next().unwrap_or_default().trim_start_matches('\\').to_owned();
        let commit = path.parent().and_then(commit_of).unwrap_or_default();
        Self { path: path.display().to_string(), sha256, commit }
    }

    /// Whichever program runs this: of a simulation, which is made of nodes, the one that is judged.
    #[must_use]
    pub fn this() -> Self {
        std::env::current_exe().map_or_else(|_| Self::default(), |path| Self::of(&path))
    }

    /// In a sentence without an end, for people.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { path, sha256, commit } = self;
        if path.is_empty() {
            return "not known".to_owned();
        }
        let known = |text: &str| if text.is_empty() { "unknown".to_owned() } else { text.to_owned() };
        format!("{path}, SHA-256 {}, commit {}", known(sha256), known(commit))
    }
}

/// The commit of the checkout that a directory lies in.
fn commit_of(directory: &Path) -> Option<String> {
    // A file without a directory in front lies in the one that this program runs in.
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let git = |arguments: &[&str]| said(Command::new("git").arg("-C").arg(directory).args(arguments));
    let commit = git(&["rev-parse", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    let commit = commit.trim();
    Some(if changed.trim().is_empty() { commit.to_owned() } else { format!("{commit}, changed") })
}

/// What a command wrote, if it succeeded.
fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}
