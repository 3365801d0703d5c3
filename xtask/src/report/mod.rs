//! Where a run's time went and what was flaky: printed at its end, and kept in the build directory.
//!
//! | module | purpose |
//! |---|---|
//! | `tried` | what the runners of tests say of each test |

mod tried;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::cargo::root;
use crate::stage::Ended;

pub(crate) use tried::{Ending, Tried, of_clients, of_nextest};

/// Stages that compile. Their times together are told, too.
const BUILDS: [&str; 3] = ["clippy", "doc", "build"];
/// How many of the slowest tests are told.
const SLOWEST: usize = 50;
/// Lines of a flaky test's log that are printed: often they are all that is kept of the machine that it ran on.
const FLAKY_LINES: usize = 40;
/// More flaky tests in a run than this are no accident.
pub(crate) const FLAKY_MAX: usize = 3;

/// What is told of a run.
pub(crate) struct Report<'a> {
    pub(crate) stages: &'a [Ended],
    pub(crate) tests: Vec<Tried>,
    pub(crate) took: Duration,
}

impl Report<'_> {
    /// Writes the report and the logs of flaky tests below `folder`, prints the report, and adds flaky tests to the
    /// list of those that were ever seen there.
    ///
    /// # Errors
    /// Something cannot be written; more flaky tests than an accident explains.
    pub(crate) fn tell(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let flaky = self.keep_flaky(folder)?;
        let mut text = self.stages_and_tests();
        for (test, log) in &flaky {
            let _ = writeln!(text, "flaky: {} (log: {}), which ends with", test.name, log.display());
            for line in end_of(test.log.as_deref().unwrap_or_default()) {
                let _ = writeln!(text, "    {line}");
            }
        }
        let file = folder.join("report.txt");
        fs::write(&file, &text).with_context(|| format!("cannot write {}", file.display()))?;
        eprintln!("\n{text}this report: {}", file.display());
        if flaky.len() > FLAKY_MAX {
            bail!("{} tests were flaky, more than {FLAKY_MAX}: find the causes", flaky.len());
        }
        Ok(())
    }

    fn stages_and_tests(&self) -> String {
        let mut text = String::from("stage              seconds\n");
        for stage in self.stages {
            let remark = if stage.beside { " (beside others)" } else { "" };
            let seconds = stage.took.as_secs_f64();
            let _ = writeln!(text, "{:16} {seconds:9.1}  {}{remark}", stage.name, stage.outcome.word());
        }
        let builds: Duration =
            self.stages.iter().filter(|stage| BUILDS.contains(&stage.name)).map(|stage| stage.took).sum();
        let _ =
            writeln!(text, "{:16} {:9.1}  {}", "builds together", builds.as_secs_f64(), BUILDS.join(", "));
        let _ = writeln!(text, "{:16} {:9.1}", "everything", self.took.as_secs_f64());
        let seconds: f64 = self.tests.iter().map(|test| test.seconds).sum();
        let count = |ending| self.tests.iter().filter(|test| test.ending == ending).count();
        let _ = writeln!(
            text,
            "\n{} tests: {} failed, {} flaky; {seconds:.1} s together. The slowest:",
            self.tests.len(),
            count(Ending::Failed),
            count(Ending::Flaky),
        );
        let mut slowest: Vec<&Tried> = self.tests.iter().collect();
        slowest.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
        for test in slowest.into_iter().take(SLOWEST) {
            let _ = writeln!(text, "{:9.1}  {}", test.seconds, test.name);
        }
        text
    }

    fn keep_flaky(&self, folder: &Path) -> Result<Vec<(&Tried, PathBuf)>> {
        let flaky: Vec<&Tried> = self.tests.iter().filter(|test| test.ending == Ending::Flaky).collect();
        if flaky.is_empty() {
            return Ok(Vec::new());
        }
        let (moment, commit) = (said("date", &["-u", "+%FT%TZ"]), commit());
        let logs = folder.join("flaky");
        fs::create_dir_all(&logs).with_context(|| format!("cannot make {}", logs.display()))?;
        let list = folder.join("flaky.txt");
        let mut ever = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&list)
            .with_context(|| format!("cannot write {}", list.display()))?;
        let mut kept = Vec::new();
        for test in flaky {
            let name = test.name.replace(|letter: char| !letter.is_alphanumeric(), "_");
            let log = logs.join(format!("{}-{name}.log", moment.replace(':', "")));
            fs::write(&log, test.log.as_deref().unwrap_or_default())
                .with_context(|| format!("cannot write {}", log.display()))?;
            writeln!(ever, "{moment} {commit} {} {}", test.name, log.display())
                .with_context(|| format!("cannot write {}", list.display()))?;
            kept.push((test, log));
        }
        Ok(kept)
    }
}

/// The last lines of a log.
fn end_of(log: &str) -> impl Iterator<Item = &str> {
    log.lines().skip(log.lines().count().saturating_sub(FLAKY_LINES))
}

/// The commit that is checked out, in brief; empty where there is none.
pub(crate) fn commit() -> String {
    said("git", &["rev-parse", "--short=8", "HEAD"])
}

/// Whether the files are those of that commit.
pub(crate) fn is_clean() -> bool {
    said("git", &["status", "--porcelain"]).is_empty()
}

/// What a command answers, if it does.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(root()).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Outcome;

    fn test(name: &str, ending: Ending, seconds: f64) -> Tried {
        Tried { name: name.to_owned(), ending, seconds, log: Some("broke here".to_owned()) }
    }

    fn report(stages: &[Ended], tests: Vec<Tried>) -> Report<'_> {
        Report { stages, tests, took: Duration::from_secs(9) }
    }

    #[test]
    fn builds_are_added_up_and_the_slowest_tests_come_first() {
        let stage = |name, seconds| Ended {
            name,
            took: Duration::from_secs(seconds),
            beside: false,
            outcome: Outcome::Ok,
        };
        let stages = [stage("clippy", 5), stage("build", 7), stage("rust", 9)];
        let tests = vec![test("quick", Ending::Passed, 0.5), test("slow", Ending::Passed, 2.0)];
        let text = report(&stages, tests).stages_and_tests();
        assert!(text.contains("builds together       12.0"), "{text}");
        assert!(text.find("slow\n") < text.find("quick\n"), "{text}");
    }

    #[test]
    fn a_few_flaky_tests_are_kept_and_listed_and_many_fail_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let flaky = |count: usize| {
            (0..count).map(|number| test(&format!("a::b{number}"), Ending::Flaky, 1.0)).collect::<Vec<_>>()
        };
        report(&[], flaky(FLAKY_MAX)).tell(folder.path()).unwrap();
        let error = report(&[], flaky(FLAKY_MAX + 1)).tell(folder.path()).unwrap_err();
        assert!(error.to_string().contains("4 tests were flaky"), "{error}");
        let list = fs::read_to_string(folder.path().join("flaky.txt")).unwrap();
        assert_eq!(list.lines().count(), 2 * FLAKY_MAX + 1, "{list}");
        let log = list.lines().next().unwrap().rsplit(' ').next().unwrap();
        assert_eq!(fs::read_to_string(log).unwrap(), "broke here");
        let told = fs::read_to_string(folder.path().join("report.txt")).unwrap();
        assert!(told.contains("    broke here\n"), "{told}");
    }

    #[test]
    fn a_long_log_is_told_from_its_end() {
        let log: String = (0..FLAKY_LINES + 5).map(|line| format!("line {line}\n")).collect();
        let told: Vec<&str> = end_of(&log).collect();
        assert_eq!((told.len(), told[0]), (FLAKY_LINES, "line 5"));
        assert_eq!(end_of("one").collect::<Vec<_>>(), ["one"]);
    }
}
