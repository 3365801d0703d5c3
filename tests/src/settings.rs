//! What the driver is told, checked.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;

use crate::table;

/// Real JAX, TensorFlow and MindSpore clients against real clusters.
///
/// Exit status: 0 everything passed, if need be at a later attempt; 1 something failed, or nothing was run; 2 the
/// arguments are wrong; 4 everything that ran passed, and something was missing.
#[derive(Debug, Parser)]
pub(crate) struct Arguments {
    /// An interpreter with that release of jaxlib; several times for several releases. What runs of each is said in
    /// tests/README.md.
    #[arg(long, value_name = "VERSION=PATH")]
    python: Vec<String>,
    /// The same with TensorFlow.
    #[arg(long, value_name = "VERSION=PATH")]
    tensorflow: Vec<String>,
    /// The same with MindSpore.
    #[arg(long, value_name = "VERSION=PATH")]
    mindspore: Vec<String>,
    /// The release of jaxlib whose turn it is, if it is among those given.
    #[arg(long, value_name = "VERSION")]
    rotated: Option<String>,
    /// What cannot be run, and why. It is told at the end, and the run is not green.
    #[arg(long, value_name = "VERSION: WHY")]
    missing: Vec<String>,
    /// Run everything that each release can do.
    #[arg(long)]
    all_clients: bool,
    /// Run only tests whose name contains this text, or that of another filter. Of a release that it names, everything
    /// can be picked.
    #[arg(long, value_name = "TEXT")]
    filter: Vec<String>,
    /// Directory for outcomes and logs, kept. What failed stays there until somebody removes it.
    #[arg(long, value_name = "DIR")]
    results: PathBuf,
    /// File for a line of JSON about each test: name, outcome (passed, flaky, failed), seconds, attempts, log, error.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// How many tests that have a cluster of their own run at the same time [default: as many as processors, at most 4].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    jobs: Option<u8>,
    /// Begin no test later than this. What is left out then is told, and nothing is wrong with the run.
    #[arg(long, value_name = "SECONDS")]
    begin_within: Option<u64>,
    /// List what would run, and run nothing.
    #[arg(long)]
    list: bool,
}

/// Checked arguments.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Releases of jaxlib, the newest first.
    pub(crate) releases: Vec<&'static str>,
    /// Interpreters by release of TensorFlow.
    pub(crate) tensorflow: BTreeMap<&'static str, PathBuf>,
    /// The same of MindSpore.
    pub(crate) mindspore: BTreeMap<&'static str, PathBuf>,
    /// The release of jaxlib whose turn it is.
    pub(crate) rotated: Option<&'static str>,
    pub(crate) missing: Vec<Missing>,
    pub(crate) all_clients: bool,
    pub(crate) filters: Vec<String>,
    pub(crate) results: PathBuf,
    pub(crate) report: Option<PathBuf>,
    pub(crate) jobs: usize,
    /// For how long tests may begin.
    pub(crate) begin_within: Option<Duration>,
    pub(crate) list: bool,
    pythons: BTreeMap<&'static str, PathBuf>,
}

/// What cannot be run here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) version: String,
    pub(crate) why: String,
}

impl Settings {
    /// Checks the arguments.
    ///
    /// # Errors
    /// A release that the table does not know, or a word that is none of those expected.
    pub(crate) fn new(arguments: Arguments) -> Result<Self> {
        let pythons = interpreters(&arguments.python, table::jaxlib, "jaxlib")?;
        let tensorflow = interpreters(&arguments.tensorflow, table::tensorflow, "TensorFlow")?;
        let mindspore = interpreters(&arguments.mindspore, table::mindspore, "MindSpore")?;
        let mut releases: Vec<_> = pythons.keys().copied().collect();
        releases.sort_by_key(|release| table::age(release));
        let rotated = match &arguments.rotated {
            None => None,
            Some(release) => {
                ensure!(table::takes_turns(release), "releases take turns, but not jaxlib {release}");
                table::jaxlib(release)
            }
        };
        let missing = arguments.missing.iter().map(|text| missing(text)).collect::<Result<_>>()?;
        ensure!(
            arguments.filter.iter().all(|filter| !filter.is_empty()),
            "a filter without text picks everything"
        );
        Ok(Self {
            releases,
            tensorflow,
            mindspore,
            rotated,
            missing,
            all_clients: arguments.all_clients,
            begin_within: arguments.begin_within.map(Duration::from_secs),
            filters: arguments.filter,
            results: arguments.results,
            report: arguments.report,
            jobs: arguments.jobs.map_or_else(usual_jobs, usize::from),
            list: arguments.list,
            pythons,
        })
    }

    /// Makes the directory for results.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn make_results(&self) -> Result<()> {
        fs::create_dir_all(&self.results).with_context(|| format!("cannot make {}", self.results.display()))
    }

    /// The interpreter with that release.
    ///
    /// # Errors
    /// None was given.
    pub(crate) fn python(&self, release: &str) -> Result<&PathBuf> {
        self.pythons.get(release).with_context(|| format!("no interpreter was given for jaxlib {release}"))
    }

    /// The interpreter with that release of TensorFlow.
    ///
    /// # Errors
    /// None was given.
    pub(crate) fn tensorflow_python(&self, release: &str) -> Result<&PathBuf> {
        self.tensorflow
            .get(release)
            .with_context(|| format!("no interpreter was given for TensorFlow {release}"))
    }

    /// The interpreter with that release of MindSpore.
    ///
    /// # Errors
    /// None was given.
    pub(crate) fn mindspore_python(&self, release: &str) -> Result<&PathBuf> {
        let python = self.mindspore.get(release);
        python.with_context(|| format!("no interpreter was given for MindSpore {release}"))
    }

    /// Whether a filter names this release: then somebody wants to see it, whosever turn it is.
    pub(crate) fn is_named(&self, release: &str) -> bool {
        self.filters.iter().any(|filter| filter.split(' ').any(|word| word == release))
    }

    /// Whether the filters pick a test of that name.
    pub(crate) fn picks(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(filter.as_str()))
    }

    /// As the command line gives them.
    #[cfg(test)]
    pub(crate) fn of(arguments: &[&str]) -> Self {
        Self::try_of(arguments).unwrap()
    }

    #[cfg(test)]
    fn try_of(arguments: &[&str]) -> Result<Self> {
        let line = ["tripod-clients", "--results", "none"].iter().chain(arguments);
        Self::new(Arguments::try_parse_from(line)?)
    }
}

/// Tests wait more than they compute, but those that share a cluster run beside them.
fn usual_jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(4)
}

fn interpreters(
    given: &[String],
    known: impl Fn(&str) -> Option<&'static str>,
    what: &str,
) -> Result<BTreeMap<&'static str, PathBuf>> {
    let mut interpreters = BTreeMap::new();
    for text in given {
        let Some((release, path)) = text.split_once('=') else { bail!("`{text}` is no VERSION=PATH") };
        let known = known(release);
        let known = known.with_context(|| format!("tests/src/table.rs does not know {what} {release}"))?;
        ensure!(
            interpreters.insert(known, PathBuf::from(path)).is_none(),
            "two interpreters were given for {what} {release}"
        );
    }
    Ok(interpreters)
}

fn missing(text: &str) -> Result<Missing> {
    let Some((version, why)) = text.split_once(':') else { bail!("`{text}` is no VERSION: WHY") };
    Ok(Missing { version: version.trim().to_owned(), why: why.trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_told_apart_and_put_in_order() {
        let settings = Settings::of(&[
            "--python=0.4.13=/old",
            "--python=0.12.0.1=/new",
            "--python=0.9.2=/nine",
            "--tensorflow=2.12.0=/tf",
            "--rotated=0.9.2",
            "--missing=2.21.0: no Python 3.13: none at all",
        ]);
        assert_eq!(settings.releases, ["0.12.0.1", "0.9.2", "0.4.13"]);
        assert_eq!(settings.python("0.4.13").unwrap(), &PathBuf::from("/old"));
        assert!(settings.python("0.4.20").is_err());
        assert_eq!(settings.tensorflow_python("2.12.0").unwrap(), &PathBuf::from("/tf"));
        assert_eq!(settings.rotated, Some("0.9.2"));
        let missing = Missing { version: "2.21.0".to_owned(), why: "no Python 3.13: none at all".to_owned() };
        assert_eq!(settings.missing, [missing]);
        assert!((1..=4).contains(&settings.jobs));
    }

    #[test]
    fn what_is_wrong_is_refused() {
        let refused = |arguments: &[&str]| Settings::try_of(arguments).unwrap_err().to_string();
        assert!(refused(&["--python=0.99=p"]).contains("does not know jaxlib 0.99"));
        assert!(refused(&["--tensorflow=0.12.0.1=p"]).contains("does not know TensorFlow 0.12.0.1"));
        assert!(refused(&["--python=0.9.2"]).contains("VERSION=PATH"));
        assert!(refused(&["--python=0.9.2=a", "--python=0.9.2=b"]).contains("two interpreters"));
        assert!(refused(&["--rotated=0.12.0.1"]).contains("take turns"));
        assert!(refused(&["--missing=nothing"]).contains("VERSION: WHY"));
        assert!(refused(&["--filter="]).contains("filter"));
        assert!(refused(&["--jobs=0"]).contains("--jobs"));
    }

    #[test]
    fn any_filter_picks() {
        let settings = Settings::of(&["--filter=list program", "--filter=agent kill 0.4.20"]);
        assert!(settings.picks("list program 0.9.2") && settings.picks("agent kill 0.4.20"));
        assert!(!settings.picks("xds program 0.9.2"));
        assert!(settings.is_named("0.4.20") && !settings.is_named("0.4.2") && !settings.is_named("0.9.2"));
        assert!(Settings::of(&[]).picks("anything"));
    }
}
