//! Builds and runs the tests that should notice a mutant, in the copy of the tree and with a build directory of its
//! own: nobody else's build is disturbed, and what does not change is built once for all mutants.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

use super::failing;
use crate::cargo::{cargo, shown};
use crate::rust_tests::has_nextest;

/// How long the tests of one mutant may take, in seconds. One that waits for ever is noticed, too.
const TESTS_SECONDS_MAX: &str = "900";
/// What `timeout` ends with then.
const TIMED_OUT: i32 = 124;
/// What cargo-nextest ends with when a test has failed.
const NEXTEST_FAILED: i32 = 100;
/// What cargo ends with when anything has, the build too, which is why that is made apart.
const CARGO_FAILED: i32 = 101;
/// Lines of a failed build that are shown.
const LINES_SHOWN: usize = 15;

/// Runs tests.
pub(super) struct Runner {
    tree: PathBuf,
    build: PathBuf,
    nextest: bool,
    /// Whether to go on behind the first test that fails.
    every: bool,
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The tests passed.
    Unnoticed,
    /// These failed.
    Noticed(Vec<String>),
}

impl Runner {
    pub(super) fn new(tree: &Path, build: &Path, every: bool) -> Self {
        let nextest = has_nextest();
        if !nextest {
            eprintln!("  cargo-nextest is not installed: running the same tests by cargo test");
        }
        Self { tree: tree.to_owned(), build: build.to_owned(), nextest, every }
    }

    /// Builds the tests.
    ///
    /// # Errors
    /// They do not compile.
    pub(super) fn build(&self, tests: &str) -> Result<()> {
        let verb: &[&str] =
            if self.nextest { &["nextest", "run", "--no-run"] } else { &["test", "--no-run"] };
        let mut command = self.command(cargo(verb));
        command.args(tests.split_whitespace());
        let output = ended(&mut command)?;
        if !output.status.success() {
            bail!("`{}` failed:\n{}", shown(&command), last_lines(&output.stderr));
        }
        Ok(())
    }

    /// Runs the tests that [`Self::build`] has built.
    ///
    /// # Errors
    /// The words pick no test, or the tests cannot be run.
    pub(super) fn run(&self, tests: &str) -> Result<Outcome> {
        let mut command = self.command(self.tests());
        command.args(tests.split_whitespace());
        let output = ended(&mut command)?;
        let told = [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat();
        let names = if self.nextest { failing::of_nextest(&told) } else { failing::of_cargo_test(&told) };
        let failed = if self.nextest { NEXTEST_FAILED } else { CARGO_FAILED };
        match output.status.code() {
            Some(0) if self.nextest || failing::some_ran(&told) => Ok(Outcome::Unnoticed),
            Some(TIMED_OUT) => Ok(Outcome::Noticed(vec![format!(
                "no end within {TESTS_SECONDS_MAX} s; {}",
                names.join(", ")
            )])),
            Some(code) if code == failed && !names.is_empty() => Ok(Outcome::Noticed(names)),
            Some(code) if code == failed => {
                Ok(Outcome::Noticed(vec!["a test program that ended before its end".to_owned()]))
            }
            _ => bail!(
                "`{}` ended with {}, and not because a test failed:\n{}",
                shown(&command),
                output.status,
                last_lines(told.as_bytes())
            ),
        }
    }

    fn tests(&self) -> Command {
        let mut words = vec!["--kill-after", "5", TESTS_SECONDS_MAX];
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        words.push(&cargo);
        if self.nextest {
            let most: &[&str] = if self.every { &["--no-fail-fast"] } else { &["--max-fail", "1:immediate"] };
            words.extend(["nextest", "run", "--color", "never", "--retries", "0"]);
            words.extend(["--status-level", "fail", "--final-status-level", "fail"]);
            words.extend(most);
        } else {
            words.push("test");
            words.extend(self.every.then_some("--no-fail-fast"));
        }
        let mut command = Command::new("timeout");
        command.args(words);
        command
    }

    fn command(&self, mut command: Command) -> Command {
        command.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.build).env("CARGO_TERM_COLOR", "never");
        command
    }
}

fn ended(command: &mut Command) -> Result<Output> {
    command.output().with_context(|| format!("cannot start `{}`", shown(command)))
}

fn last_lines(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
}
