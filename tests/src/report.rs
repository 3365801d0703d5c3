//! How tests ended, for whoever started the driver: a line of JSON each, written when it is known.

use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::settings::Missing;

/// How a test ended at last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// At the first attempt.
    Passed,
    /// At a later attempt.
    Flaky,
    Failed,
    /// It was not begun: there was no time for it.
    LeftOut,
}

/// What is known of a test that was run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) outcome: Outcome,
    /// Of the last attempt.
    pub(crate) seconds: f64,
    pub(crate) attempts: usize,
    /// What the last failed attempt wrote, kept.
    pub(crate) log: Option<PathBuf>,
    /// Why the last failed attempt failed.
    pub(crate) error: Option<String>,
}

/// The file, if somebody wants one.
#[derive(Debug)]
pub(crate) struct Report {
    file: Option<File>,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Flaky => "flaky",
            Self::Failed => "failed",
            Self::LeftOut => "left-out",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Passed => "ok",
            Self::Flaky => "flaky",
            Self::Failed => "FAILED",
            Self::LeftOut => "left out",
        })
    }
}

impl Report {
    /// An empty one, in the place of an older one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn new(file: Option<&Path>) -> Result<Self> {
        let make =
            |path: &Path| File::create(path).with_context(|| format!("cannot write {}", path.display()));
        Ok(Self { file: file.map(make).transpose()? })
    }

    /// Writes down how a test ended.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn note(&mut self, record: &Record) -> Result<()> {
        self.write(&json!({
            "name": record.name,
            "outcome": record.outcome.word(),
            // More digits than anybody measures would only be in the way.
            "seconds": (record.seconds * 10.0).round() / 10.0,
            "attempts": record.attempts,
            "log": record.log,
            "error": record.error,
        }))
    }

    /// Writes down what could not be run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn miss(&mut self, missing: &Missing) -> Result<()> {
        self.write(&json!({ "name": missing.version, "outcome": "missing", "why": missing.why }))
    }

    fn write(&mut self, line: &serde_json::Value) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        // In one piece: whoever reads while we run sees whole lines.
        file.write_all(format!("{line}\n").as_bytes()).context("cannot write the report")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_whole_when_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.jsonl");
        std::fs::write(&path, "old\n").unwrap();
        let mut report = Report::new(Some(&path)).unwrap();
        let record = Record {
            name: "agent kill 0.12.0.1".to_owned(),
            outcome: Outcome::Flaky,
            seconds: 31.4159,
            attempts: 2,
            log: Some("a/b".into()),
            error: Some("no".to_owned()),
        };
        report.note(&record).unwrap();
        let passed = Record { outcome: Outcome::Passed, attempts: 1, log: None, error: None, ..record };
        report.note(&passed).unwrap();
        report.miss(&Missing { version: "2.12.0".to_owned(), why: "no Python".to_owned() }).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let name = "agent kill 0.12.0.1";
        assert_eq!(
            lines,
            [
                json!({
                    "name": name, "outcome": "flaky", "seconds": 31.4, "attempts": 2, "log": "a/b", "error": "no",
                }),
                json!({
                    "name": name, "outcome": "passed", "seconds": 31.4, "attempts": 1, "log": null, "error": null,
                }),
                json!({ "name": "2.12.0", "outcome": "missing", "why": "no Python" }),
            ]
        );
    }

    #[test]
    fn nobody_needs_a_report() {
        let mut report = Report::new(None).unwrap();
        report.miss(&Missing { version: String::new(), why: String::new() }).unwrap();
        assert!(Report::new(Some(Path::new("/dev/null/report"))).is_err());
    }
}
