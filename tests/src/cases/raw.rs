//! Single calls of one dialect, byte for byte compared with upstream's own service.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tripod_processes::cluster::find_tripod;
use tripod_tests::python::{Ending, Script, scripts};

use crate::cases::Given;

const PROBE_LIMIT: Duration = Duration::from_secs(300);
const COMPARE_LIMIT: Duration = Duration::from_secs(30);

/// A dialect and what it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) name: &'static str,
    /// Whose interpreter plays the calls; that needs gRPC and no jaxlib.
    release: &'static str,
    /// The release whose own service gave the answers.
    golden: &'static str,
}

impl Dialect {
    const ALL: [Self; 3] = [
        Self { name: "n", release: "0.12.0.1", golden: "0.12.0.1" },
        Self { name: "t", release: "0.9.2", golden: "0.9.2" },
        Self { name: "l", release: "0.12.0.1", golden: "0.4.13" },
    ];

    /// Those whose calls this release's interpreter plays.
    pub(crate) fn of(release: &str) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |dialect| dialect.release == release)
    }
}

/// Plays the probe against jobs of the cluster and compares.
pub(super) async fn run(given: Given<'_>, dialect: Dialect) -> Result<String> {
    let Given { settings, folder, endpoints } = given;
    let python = settings.python(dialect.release)?;
    let (probe, ours) = ("raw/raw_probe.py", folder.join("outcome.json"));
    let new_job = format!(
        "{} {} --job-cmd '{} --endpoints {} job' --tasks {{n}} --heartbeat-timeout {{hb}} \
         --shutdown-timeout {{sd}} --register-timeout {{rt}} {{recoverable}}",
        text(python)?,
        text(&scripts().join("new_job.py"))?,
        text(&find_tripod()?)?,
        endpoints.join(","),
    );
    let arguments = ["run", "--dialect", dialect.name, "--out", text(&ours)?, "--address-cmd", &new_job];
    let mut script = Script::start(python, probe, &arguments, &[], folder, "probe")?;
    script.succeed(PROBE_LIMIT).await?;

    let golden = scripts().join(format!("raw/golden_{}.json", dialect.golden));
    let intended = scripts().join("raw/intended.txt");
    let arguments = ["compare", text(&golden)?, text(&ours)?, "--intended", text(&intended)?];
    let mut compare = Script::start(python, probe, &arguments, &[], folder, "compare")?;
    let ending = compare.finish(COMPARE_LIMIT).await?;
    let report = compare.output();
    if ending != Ending::Exit(0) {
        bail!("{report}");
    }
    Ok(report.lines().last().unwrap_or_default().to_owned())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is no text", path.display()))
}
