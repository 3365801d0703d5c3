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
}

impl Program {
    /// The program in a file. Its hash is what `sha256sum` says, so that anybody can compare it with a file of theirs.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let told = Command::new("sha256sum").arg("--").arg(path).output().ok();
        let told = told.filter(|told| told.status.success()).map(|told| told.stdout).unwrap_or_default();
        let text = String::from_utf8_lossy(&told);
        // With a backslash in front if the name of the file has one.
        let sha256 = text.split_whitespace().next().unwrap_or_default().trim_start_matches('\\').to_owned();
        Self { path: path.display().to_string(), sha256 }
    }
}
