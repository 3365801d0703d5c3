//! The Python environments that the real-client tests need, kept in the build directory, and which of them a run uses.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, bail};

use crate::venv::Recipe;

/// A release of jaxlib that the tests drive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Release {
    pub(crate) jaxlib: &'static str,
    /// Minor versions of Python 3 that have wheels of it, the preferred one first.
    minors: &'static [u8],
    /// A file of the repository that pins what it needs besides.
    requirements: &'static str,
    /// A program that fails if something is missing.
    probe: &'static str,
    /// `jax` where it was published without a wheel.
    from_source: Option<&'static str>,
    /// When it is driven.
    turn: Turn,
}

/// When a release is driven without `--all-clients`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// In every run.
    Always,
    /// In every run for what is the same for all releases of a dialect; whole programs of it by rotation.
    AlwaysAndByRotation,
    /// In one run of several; the commit decides.
    ByRotation,
}

/// One release of each age in which a client's behaviour changed: the newest, the last one for Python 3.11, the last
/// one of the older dialect, and further back to the oldest that can still be had.
const RELEASES: &[Release] = &[
    today("0.12.0.1", &[13, 12], Turn::Always),
    today("0.11.2", &[13, 12], Turn::ByRotation),
    today("0.10.2", &[11, 12, 13], Turn::ByRotation),
    today("0.9.2", &[11, 12, 13], Turn::AlwaysAndByRotation),
    of_0_4("0.4.30", &[11, 10], Turn::ByRotation),
    of_0_4("0.4.20", &[11, 10], Turn::ByRotation),
    Release { from_source: Some("jax"), ..of_0_4("0.4.13", &[11, 10], Turn::Always) },
];

/// A release that runs with today's packages; the scripts that call without jaxlib need gRPC besides.
const fn today(jaxlib: &'static str, minors: &'static [u8], turn: Turn) -> Release {
    let requirements = "tests/clients/requirements.txt";
    let probe = "import jax, jaxlib, numpy, grpc, google.protobuf";
    Release { jaxlib, minors, requirements, probe, from_source: None, turn }
}

/// A release of the time before numpy 2.
const fn of_0_4(jaxlib: &'static str, minors: &'static [u8], turn: Turn) -> Release {
    let requirements = "tests/clients/requirements-0.4.txt";
    Release {
        jaxlib,
        minors,
        requirements,
        probe: "import jax, jaxlib, numpy, scipy",
        from_source: None,
        turn,
    }
}

/// A release of TensorFlow that the tests drive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TensorFlow {
    pub(crate) version: &'static str,
    minors: &'static [u8],
}

/// The newest release, and the first one that speaks today's dialect. Each takes a gigabyte and a half.
const TENSORFLOWS: &[TensorFlow] = &[
    TensorFlow { version: "2.21.0", minors: &[13, 12] },
    TensorFlow { version: "2.12.0", minors: &[11, 10] },
];

/// A release of MindSpore that the tests drive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MindSpore {
    pub(crate) version: &'static str,
    minors: &'static [u8],
    /// Whether it is driven without `--all-clients`, or a filter that names it.
    is_always: bool,
}

/// The newest release, and the newest one that can be had of those that speak the first dialect. Each takes almost three
/// gigabytes.
const MINDSPORES: &[MindSpore] = &[
    MindSpore { version: "2.10.0", minors: &[11, 10], is_always: true },
    MindSpore { version: "2.0.0", minors: &[9, 8], is_always: false },
];

/// Set to `1` where there is no way to get jaxlib: the real clients are then left out, loudly.
pub(crate) const SKIP_VARIABLE: &str = "TRIPOD_SKIP_CLIENTS";
/// How many environments are made at the same time. Each needs a processor to unpack what it was sent.
const MAKERS: usize = 2;

impl Release {
    fn recipe(self) -> Recipe {
        Recipe {
            name: format!("venv-{}", self.jaxlib),
            pins: vec![format!("jax=={}", self.jaxlib), format!("jaxlib=={}", self.jaxlib)],
            from_source: self.from_source,
            requirements: self.requirements.to_owned(),
            probe: self.probe,
            minors: self.minors,
        }
    }
}

impl TensorFlow {
    /// Its packages need each other in exact versions, so that each release has a list of its own.
    fn recipe(self) -> Recipe {
        Recipe {
            name: format!("venv-tensorflow-{}", self.version),
            pins: Vec::new(),
            from_source: None,
            requirements: format!("tests/clients/tensorflow/requirements-{}.txt", self.version),
            probe: "import tensorflow",
            minors: self.minors,
        }
    }
}

impl MindSpore {
    fn recipe(self) -> Recipe {
        Recipe {
            name: format!("venv-mindspore-{}", self.version),
            pins: Vec::new(),
            from_source: None,
            requirements: format!("tests/clients/mindspore/requirements-{}.txt", self.version),
            probe: "import mindspore",
            minors: self.minors,
        }
    }
}

/// The interpreter of the newest release of jaxlib, with gRPC and whatever else our Python packages need.
///
/// # Errors
/// There is no environment of it below `folder`, and none can be made.
pub(crate) fn newest(folder: &Path) -> Result<PathBuf> {
    RELEASES[0].recipe().make(folder)
}

/// Which releases a run drives.
#[derive(Debug, Clone)]
pub(crate) struct Picked {
    jaxlibs: Vec<Release>,
    tensorflows: Vec<TensorFlow>,
    mindspores: Vec<MindSpore>,
    /// The release whose turn it is.
    pub(crate) rotated: &'static str,
}

/// What a run can drive, and what it cannot.
#[derive(Debug, Default)]
pub(crate) struct Environments {
    /// Interpreters by release of jaxlib, newest first.
    pub(crate) jaxlibs: Vec<(&'static str, PathBuf)>,
    /// The same of TensorFlow.
    pub(crate) tensorflows: Vec<(&'static str, PathBuf)>,
    /// The same of MindSpore.
    pub(crate) mindspores: Vec<(&'static str, PathBuf)>,
    /// `RELEASE: why there is no environment`.
    pub(crate) missing: Vec<String>,
}

impl Picked {
    /// The newest and the oldest release of each client, and one more by rotation, unless all are wanted; of them
    /// those that one of the filters can pick. `turn` is any number that changes with the commit.
    ///
    /// # Errors
    /// A release is to be rotated in that is not one of those that take turns.
    pub(crate) fn new(all: bool, filters: &[String], rotated: Option<&str>, turn: u32) -> Result<Self> {
        let rotating = || RELEASES.iter().filter(|release| release.turn != Turn::Always);
        let rotated = match rotated {
            None => rotating().nth(turn as usize % rotating().count()),
            Some(wanted) => rotating().find(|release| release.jaxlib == wanted),
        };
        let Some(rotated) = rotated.map(|release| release.jaxlib) else {
            let known: Vec<_> = rotating().map(|release| release.jaxlib).collect();
            bail!("no such release takes turns; these do: {}", known.join(", "));
        };
        let has_turn = |release: &&Release| {
            all || release.turn != Turn::ByRotation
                || release.jaxlib == rotated
                || is_named(filters, release.jaxlib)
        };
        let jaxlibs = RELEASES.iter().filter(has_turn).filter(|release| can_pick(filters, release.jaxlib));
        let tensorflows = TENSORFLOWS.iter().filter(|release| can_pick(filters, release.version));
        let is_wanted = |release: &&MindSpore| all || release.is_always || is_named(filters, release.version);
        let mindspores = MINDSPORES.iter().filter(is_wanted);
        let mindspores = mindspores.filter(|release| can_pick(filters, release.version));
        Ok(Self {
            jaxlibs: jaxlibs.copied().collect(),
            tensorflows: tensorflows.copied().collect(),
            mindspores: mindspores.copied().collect(),
            rotated,
        })
    }

    /// Makes the environments that are missing or stale, below `folder`. What cannot be made is missing, and says why.
    pub(crate) fn prepare(&self, folder: &Path) -> Environments {
        let jaxlibs = self.jaxlibs.iter().map(|release| (release.jaxlib, Client::Jaxlib, release.recipe()));
        let tensorflows = self.tensorflows.iter();
        let tensorflows = tensorflows.map(|release| (release.version, Client::TensorFlow, release.recipe()));
        let mindspores =
            self.mindspores.iter().map(|release| (release.version, Client::MindSpore, release.recipe()));
        let wanted: Vec<_> = jaxlibs.chain(tensorflows).chain(mindspores).collect();
        let recipes: Vec<&Recipe> = wanted.iter().map(|(_, _, recipe)| recipe).collect();
        let outcomes = make(folder, &recipes);
        let mut environments = Environments::default();
        for ((version, client, recipe), outcome) in wanted.iter().zip(outcomes) {
            match outcome {
                Ok(python) => environments.of(*client).push((version, python)),
                Err(error) => environments.missing.push(format!(
                    "{version}: no environment {} (it needs one of Python {} and a package index): {error:#}",
                    recipe.name,
                    recipe.pythons(),
                )),
            }
        }
        environments
    }
}

/// Whose release it is.
#[derive(Debug, Clone, Copy)]
enum Client {
    Jaxlib,
    TensorFlow,
    MindSpore,
}

impl Environments {
    /// Whether there is none at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.jaxlibs.is_empty() && self.tensorflows.is_empty() && self.mindspores.is_empty()
    }

    fn of(&mut self, client: Client) -> &mut Vec<(&'static str, PathBuf)> {
        match client {
            Client::Jaxlib => &mut self.jaxlibs,
            Client::TensorFlow => &mut self.tensorflows,
            Client::MindSpore => &mut self.mindspores,
        }
    }
}

fn versions() -> impl Iterator<Item = &'static str> {
    let jaxlibs = RELEASES.iter().map(|release| release.jaxlib);
    let tensorflows = TENSORFLOWS.iter().map(|release| release.version);
    jaxlibs.chain(tensorflows).chain(MINDSPORES.iter().map(|release| release.version))
}

fn is_named(filters: &[String], version: &str) -> bool {
    filters.iter().any(|filter| filter.contains(version))
}

/// Whether filters of test names can pick tests of a version: not if each names another one. Environments are large,
/// and take a minute each.
fn can_pick(filters: &[String], version: &str) -> bool {
    let can =
        |filter: &String| filter.contains(version) || !versions().any(|version| filter.contains(version));
    filters.is_empty() || filters.iter().any(can)
}

/// Makes the environments, some at a time, in the order given.
fn make(folder: &Path, recipes: &[&Recipe]) -> Vec<Result<PathBuf>> {
    let outcomes: Vec<OnceLock<Result<PathBuf>>> = recipes.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(turn) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|turn| *turn < recipes.len())
        {
            outcomes[turn].get_or_init(|| recipes[turn].make(folder));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..MAKERS {
            scope.spawn(work);
        }
    });
    outcomes.into_iter().map(|outcome| outcome.into_inner().expect("a maker took each")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(all: bool, filters: &[&str], rotated: Option<&str>, turn: u32) -> Vec<&'static str> {
        let filters: Vec<String> = filters.iter().map(|&filter| filter.to_owned()).collect();
        let picked = Picked::new(all, &filters, rotated, turn).unwrap();
        let jaxlibs = picked.jaxlibs.iter().map(|release| release.jaxlib);
        let tensorflows = picked.tensorflows.iter().map(|release| release.version);
        jaxlibs.chain(tensorflows).chain(picked.mindspores.iter().map(|release| release.version)).collect()
    }

    #[test]
    fn a_stamp_changes_with_the_release() {
        let wanted = |release: Release| release.recipe().wanted().unwrap();
        assert_ne!(wanted(RELEASES[0]), wanted(RELEASES[1]));
        assert!(wanted(RELEASES[0]).starts_with("jax==0.12.0.1\njaxlib==0.12.0.1\n"));
    }

    #[test]
    fn newest_and_oldest_are_in_every_run_and_each_other_one_has_its_turn() {
        let mut seen = std::collections::BTreeSet::new();
        for turn in 0..10 {
            let picked = picked(false, &[], None, turn);
            for always in ["0.12.0.1", "0.9.2", "0.4.13", "2.21.0", "2.12.0", "2.10.0"] {
                assert!(picked.contains(&always), "{picked:?}");
            }
            assert!(picked.len() <= 7, "{picked:?}");
            seen.extend(picked);
        }
        let on_request =
            MINDSPORES.iter().filter(|release| !release.is_always).map(|release| release.version);
        seen.extend(on_request);
        assert_eq!(seen, versions().collect());
        assert_eq!(picked(true, &[], None, 0).len(), versions().count());
    }

    #[test]
    fn only_what_takes_turns_can_be_rotated_in() {
        assert!(picked(false, &[], Some("0.4.20"), 0).contains(&"0.4.20"));
        assert!(Picked::new(false, &[], Some("0.12.0.1"), 0).is_err());
    }

    #[test]
    fn a_filter_that_names_a_release_picks_that_one_and_no_other() {
        assert_eq!(picked(false, &["program 0.4.20"], None, 0), ["0.4.20"]);
        assert_eq!(picked(false, &["program 0.4.20", "tensorflow 2.21.0"], None, 0), ["0.4.20", "2.21.0"]);
        assert_eq!(picked(false, &["mindspore 2.0.0 rounds"], None, 0), ["2.0.0"]);
        assert_eq!(picked(true, &["agent program"], None, 0).len(), versions().count());
    }

    #[test]
    fn old_releases_get_an_old_numpy() {
        for release in RELEASES {
            let wanted = release.recipe().wanted().unwrap();
            let old = release.jaxlib.starts_with("0.4.");
            assert_eq!(wanted.contains("\nnumpy==1."), old, "{wanted}");
        }
    }

    #[test]
    fn every_release_of_tensorflow_pins_itself() {
        for release in TENSORFLOWS {
            let wanted = release.recipe().wanted().unwrap();
            assert!(wanted.contains(&format!("\ntensorflow-cpu=={}\n", release.version)), "{wanted}");
        }
    }

    #[test]
    fn every_release_of_mindspore_pins_itself() {
        for release in MINDSPORES {
            let wanted = release.recipe().wanted().unwrap();
            assert!(wanted.contains(&format!("\nmindspore=={}\n", release.version)), "{wanted}");
        }
    }

    #[test]
    fn what_cannot_be_made_is_missing_and_the_rest_goes_on() {
        let impossible = Release { minors: &[1], ..RELEASES[0] };
        let picked = Picked {
            jaxlibs: vec![impossible],
            tensorflows: Vec::new(),
            mindspores: Vec::new(),
            rotated: "0.10.2",
        };
        let environments = picked.prepare(Path::new("/dev/null/nowhere"));
        assert!(environments.is_empty());
        assert!(environments.missing[0].contains("needs one of Python 3.1 "), "{:?}", environments.missing);
    }
}
