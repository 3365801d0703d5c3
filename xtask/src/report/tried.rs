//! What the runners of tests say of each test.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use roxmltree::{Document, Node};
use serde_json::Value;

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Passed,
    /// It failed, and passed when it was tried again.
    Flaky,
    Failed,
}

/// A test that was run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tried {
    pub(crate) name: String,
    pub(crate) ending: Ending,
    /// Of its last attempt, in seconds.
    pub(crate) seconds: f64,
    /// What a failed attempt wrote, or where that is kept.
    pub(crate) log: Option<String>,
}

/// The tests in the JUnit file that cargo-nextest writes.
///
/// # Errors
/// It cannot be read, or it is no such file.
pub(crate) fn of_nextest(file: &Path) -> Result<Vec<Tried>> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let document = Document::parse(&text).with_context(|| format!("{} is no XML", file.display()))?;
    let cases = document.descendants().filter(|node| node.has_tag_name("testcase"));
    Ok(cases.map(|case| case_of_nextest(&case)).collect())
}

fn case_of_nextest(case: &Node<'_, '_>) -> Tried {
    let attribute = |name| case.attribute(name).unwrap_or_default();
    let has = |names: [&str; 2]| case.children().find(|child| names.contains(&child.tag_name().name()));
    let failed = has(["failure", "error"]);
    let flaky = has(["flakyFailure", "flakyError"]);
    let ending = match (failed, flaky) {
        (Some(_), _) => Ending::Failed,
        (None, Some(_)) => Ending::Flaky,
        (None, None) => Ending::Passed,
    };
    // The output of a failed test stands beside the failure, that of a failed attempt inside it.
    let place = if failed.is_some() { Some(*case) } else { flaky };
    let log = place.map(|place| {
        let texts = place.descendants().filter(Node::is_text).filter_map(|node| node.text());
        texts.collect::<Vec<_>>().join("\n")
    });
    Tried {
        name: format!("{} {}", attribute("classname"), attribute("name")),
        ending,
        seconds: attribute("time").parse().unwrap_or_default(),
        log,
    }
}

/// The cases in the report of `tripod-clients`: a line of JSON each. What could not be run, or
/// was left out, was not tried.
///
/// # Errors
/// It cannot be read, or it is no such file.
pub(crate) fn of_clients(file: &Path) -> Result<Vec<Tried>> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    text.lines().filter_map(|line| case_of_clients(line).transpose()).collect()
}

fn case_of_clients(line: &str) -> Result<Option<Tried>> {
    let value: Value = serde_json::from_str(line).with_context(|| format!("no JSON: {line}"))?;
    let ending = match value["outcome"].as_str() {
        Some("missing" | "left-out") => return Ok(None),
        Some("passed") => Ending::Passed,
        Some("flaky") => Ending::Flaky,
        _ => Ending::Failed,
    };
    Ok(Some(Tried {
        name: format!("clients {}", value["name"].as_str().context("a case without a name")?),
        ending,
        seconds: value["seconds"].as_f64().unwrap_or_default(),
        log: value["log"]
            .as_str()
            .map(|log| format!("{}\nkept in {log}", value["error"].as_str().unwrap_or("without a reason"))),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const JUNIT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="3" failures="1" errors="0" time="1.5">
  <testsuite name="tripod-raft::cluster" tests="3" disabled="0" errors="0" failures="1">
    <testcase name="levels::one" classname="tripod-raft::cluster" time="0.250"/>
    <testcase name="two" classname="tripod-raft::cluster" time="1.000">
      <flakyFailure time="0.5" message="boom" type="test failure">
        <system-out>first try</system-out>
        <system-err>broke &lt;here&gt;</system-err>
      </flakyFailure>
    </testcase>
    <testcase name="three" classname="tripod-raft::cluster" time="0.250">
      <failure message="m" type="test failure">at three.rs</failure>
      <system-out>third</system-out>
    </testcase>
  </testsuite>
</testsuites>"#;

    #[test]
    fn the_runners_words_are_understood() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("junit.xml");
        fs::write(&file, JUNIT).unwrap();
        let tried = of_nextest(&file).unwrap();
        let brief: Vec<_> =
            tried.iter().map(|test| (test.name.as_str(), test.ending, test.seconds)).collect();
        assert_eq!(
            brief,
            [
                ("tripod-raft::cluster levels::one", Ending::Passed, 0.25),
                ("tripod-raft::cluster two", Ending::Flaky, 1.0),
                ("tripod-raft::cluster three", Ending::Failed, 0.25),
            ]
        );
        let logs: Vec<_> = tried.iter().map(|test| test.log.clone().unwrap_or_default()).collect();
        assert!(logs[1].contains("first try") && logs[1].contains("broke <here>"), "{logs:?}");
        assert!(logs[2].contains("at three.rs") && logs[2].contains("third"), "{logs:?}");
    }

    #[test]
    fn what_the_driver_did_not_run_was_not_tried() {
        for outcome in ["missing", "left-out"] {
            let line = format!(r#"{{"name":"program 0.12.0.1","outcome":"{outcome}","why":"no time"}}"#);
            assert_eq!(case_of_clients(&line).unwrap(), None);
        }
    }

    #[test]
    fn the_drivers_words_are_understood() {
        let case = case_of_clients(
            r#"{"name":"program 0.12.0.1","outcome":"flaky","seconds":31.5,"attempts":2,"log":"a/b","error":"no"}"#,
        );
        let wanted = Tried {
            name: "clients program 0.12.0.1".to_owned(),
            ending: Ending::Flaky,
            seconds: 31.5,
            log: Some("no\nkept in a/b".to_owned()),
        };
        assert_eq!(case.unwrap(), Some(wanted));
        assert_eq!(case_of_clients(r#"{"outcome":"missing","why":"no Python"}"#).unwrap(), None);
        assert!(case_of_clients("{}").is_err() && case_of_clients("nonsense").is_err());
    }
}
