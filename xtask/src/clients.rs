//! The Python environments that the real-client tests need, kept in the build directory.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};

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
}

/// The newest release, the last one for Python 3.11, and the last one of the older dialect.
pub(crate) const RELEASES: &[Release] =
    &[today("0.12.0.1", &[13, 12]), today("0.10.2", &[11, 12, 13]), today("0.9.2", &[11, 12, 13])];

/// Releases of which only whole programs are run: one of each age that a client's behaviour changed in, the
/// last of them the oldest that can still be had.
const MORE_RELEASES: &[Release] = &[
    today("0.11.2", &[13, 12]),
    of_0_4("0.4.30", &[11, 10]),
    of_0_4("0.4.20", &[11, 10]),
    Release { from_source: Some("jax"), ..of_0_4("0.4.13", &[11, 10]) },
];

/// A release that runs with today's packages; the scripts that call without jaxlib need gRPC besides.
const fn today(jaxlib: &'static str, minors: &'static [u8]) -> Release {
    let requirements = "tests/clients/requirements.txt";
    let probe = "import jax, jaxlib, numpy, grpc, google.protobuf";
    Release { jaxlib, minors, requirements, probe, from_source: None }
}

/// A release of the time before numpy 2.
const fn of_0_4(jaxlib: &'static str, minors: &'static [u8]) -> Release {
    let requirements = "tests/clients/requirements-0.4.txt";
    Release { jaxlib, minors, requirements, probe: "import jax, jaxlib, numpy, scipy", from_source: None }
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

/// Set to `1` where there is no way to get jaxlib: the real clients are then left out, loudly.
pub(crate) const SKIP_VARIABLE: &str = "TRIPOD_SKIP_CLIENTS";

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

/// The environments' interpreters, by release; missing environments are made.
///
/// # Errors
/// No fitting interpreter, or pip failed; the text says how to go on without.
pub(crate) fn prepare(folder: &Path) -> Result<Vec<(Release, PathBuf)>> {
    prepare_releases(folder, RELEASES)
}

/// The same for the releases of which only whole programs are run, those that the filter can pick.
///
/// # Errors
/// As [`prepare`].
pub(crate) fn prepare_more(folder: &Path, filter: Option<&str>) -> Result<Vec<(Release, PathBuf)>> {
    let picked = MORE_RELEASES.iter().filter(|release| can_pick(filter, release.jaxlib));
    prepare_releases(folder, &picked.copied().collect::<Vec<_>>())
}

/// Whether a filter of test names can pick tests of a version: not if it names another one. Environments
/// are large, and take a minute each.
fn can_pick(filter: Option<&str>, version: &str) -> bool {
    let jaxlibs = RELEASES.iter().chain(MORE_RELEASES).map(|release| release.jaxlib);
    let mut known = jaxlibs.chain(TENSORFLOWS.iter().map(|release| release.version));
    filter.is_none_or(|filter| filter.contains(version) || !known.any(|version| filter.contains(version)))
}

fn prepare_releases(folder: &Path, releases: &[Release]) -> Result<Vec<(Release, PathBuf)>> {
    let recipes: Vec<Recipe> = releases.iter().map(|release| release.recipe()).collect();
    Ok(releases.iter().copied().zip(make(folder, &recipes)?).collect())
}

/// The same for TensorFlow.
///
/// # Errors
/// As [`prepare`].
pub(crate) fn prepare_tensorflow(folder: &Path, filter: Option<&str>) -> Result<Vec<(TensorFlow, PathBuf)>> {
    let picked = TENSORFLOWS.iter().copied().filter(|release| can_pick(filter, release.version));
    let picked: Vec<TensorFlow> = picked.collect();
    let recipes: Vec<Recipe> = picked.iter().map(|release| release.recipe()).collect();
    Ok(picked.into_iter().zip(make(folder, &recipes)?).collect())
}

/// Makes the environments side by side.
fn make(folder: &Path, recipes: &[Recipe]) -> Result<Vec<PathBuf>> {
    let outcomes: Vec<Result<PathBuf>> = std::thread::scope(|scope| {
        let makers: Vec<_> = recipes.iter().map(|recipe| scope.spawn(|| recipe.make(folder))).collect();
        let join = |maker: std::thread::ScopedJoinHandle<'_, Result<PathBuf>>| {
            maker.join().unwrap_or_else(|_| Err(anyhow!("the maker of an environment panicked")))
        };
        makers.into_iter().map(join).collect()
    });
    let named = recipes.iter().zip(outcomes).map(|(recipe, outcome)| {
        outcome.with_context(|| {
            format!(
                "no Python environment {}: install one of Python {} and reach a package index, or set \
                 {SKIP_VARIABLE}=1 to leave the real clients out",
                recipe.name,
                recipe.pythons(),
            )
        })
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_changes_with_the_release() {
        let wanted = |release: Release| release.recipe().wanted().unwrap();
        assert_ne!(wanted(RELEASES[0]), wanted(RELEASES[1]));
        assert!(wanted(RELEASES[0]).starts_with("jax==0.12.0.1\njaxlib==0.12.0.1\n"));
    }

    #[test]
    fn a_filter_that_names_a_release_picks_no_other_one() {
        for filter in [None, Some("agent program"), Some("tensorflow")] {
            assert!(can_pick(filter, "0.4.13") && can_pick(filter, "2.21.0"), "{filter:?}");
        }
        assert!(can_pick(Some("program 0.4.13"), "0.4.13"));
        assert!(!can_pick(Some("program 0.4.13"), "0.4.20") && !can_pick(Some("program 0.4.13"), "2.21.0"));
        assert!(!can_pick(Some("program 0.10.2"), "0.4.13"));
    }

    #[test]
    fn old_releases_get_an_old_numpy() {
        for release in MORE_RELEASES {
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
}
