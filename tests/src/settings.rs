//! What the driver is told, checked.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Parser;

/// Real JAX clients against real clusters.
#[derive(Parser)]
pub(crate) struct Arguments {
    /// An interpreter with that release of jaxlib; several times for several releases, the one for
    /// the whole-program scenarios first.
    #[arg(long, value_name = "VERSION=PATH", required = true)]
    python: Vec<String>,
    /// The same for releases whose programs are only run with `--all-clients`, and not with every test.
    #[arg(long, value_name = "VERSION=PATH")]
    more_python: Vec<String>,
    /// An interpreter with that release of TensorFlow; several times for several releases.
    #[arg(long, value_name = "VERSION=PATH")]
    tensorflow: Vec<String>,
    /// Directory for outcomes and logs; kept.
    #[arg(long)]
    results: PathBuf,
    /// Run the whole-program scenarios with every release, not only with the first one.
    #[arg(long)]
    all_clients: bool,
    /// Run only the tests whose name contains this text.
    #[arg(long)]
    filter: Option<String>,
}

/// Checked arguments.
pub(crate) struct Settings {
    /// Releases in the order given.
    pub(crate) releases: Vec<String>,
    /// Releases of which only the directed programs are run.
    pub(crate) more_releases: Vec<String>,
    pub(crate) all_clients: bool,
    pub(crate) results: PathBuf,
    pub(crate) filter: Option<String>,
    /// Interpreters by release of TensorFlow.
    pub(crate) tensorflow: BTreeMap<String, PathBuf>,
    pythons: BTreeMap<String, PathBuf>,
}

impl Settings {
    /// Checks the arguments and makes the directory for results.
    pub(crate) fn new(arguments: Arguments) -> Result<Self> {
        let mut releases = Vec::new();
        let mut pythons = BTreeMap::new();
        for text in arguments.python {
            let (release, path) = interpreter(&text)?;
            releases.push(release.clone());
            pythons.insert(release, path);
        }
        let mut more_releases = Vec::new();
        for text in arguments.more_python {
            let (release, path) = interpreter(&text)?;
            more_releases.push(release.clone());
            pythons.insert(release, path);
        }
        let tensorflow = arguments.tensorflow.iter().map(|text| interpreter(text)).collect::<Result<_>>()?;
        fs::create_dir_all(&arguments.results)
            .with_context(|| format!("cannot make {}", arguments.results.display()))?;
        Ok(Self {
            releases,
            more_releases,
            all_clients: arguments.all_clients,
            results: arguments.results,
            filter: arguments.filter,
            tensorflow,
            pythons,
        })
    }

    /// Whether it is the first one that was given.
    pub(crate) fn is_newest(&self, release: &str) -> bool {
        self.releases.first().is_some_and(|newest| newest == release)
    }

    /// The interpreter with that release.
    pub(crate) fn python(&self, release: &str) -> Result<&PathBuf> {
        self.pythons.get(release).with_context(|| format!("no interpreter was given for jaxlib {release}"))
    }

    /// The interpreter with that release of TensorFlow.
    pub(crate) fn tensorflow_python(&self, release: &str) -> Result<&PathBuf> {
        self.tensorflow
            .get(release)
            .with_context(|| format!("no interpreter was given for TensorFlow {release}"))
    }
}

fn interpreter(text: &str) -> Result<(String, PathBuf)> {
    let Some((release, path)) = text.split_once('=') else { bail!("`{text}` is no VERSION=PATH") };
    Ok((release.to_owned(), PathBuf::from(path)))
}
