//! Every API scenario of one release, step by step compared with upstream's own service.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tripod_processes::cluster::find_tripod;
use tripod_tests::python::{Ending, Script, scripts};

use crate::cases::Given;

/// All scenarios take about two and a half minutes, most of it asleep.
const SCENARIOS_LIMIT: Duration = Duration::from_secs(600);
const COMPARE_LIMIT: Duration = Duration::from_secs(30);

/// Plays the scenarios against jobs of the cluster and compares.
pub(super) async fn run(given: Given<'_>, release: &str) -> Result<String> {
    let Given { settings, folder, endpoints } = given;
    let python = settings.python(release)?;
    let ours = folder.join("outcome.json");
    let jobs = format!("{} --endpoints {} job", text(&find_tripod()?)?, endpoints.join(","));
    let logs = folder.join("clients");
    let arguments = ["--out", text(&ours)?, "--logs", text(&logs)?, "--job-cmd", &jobs];
    let mut scenarios = Script::start(python, "run_scenarios.py", &arguments, &[], folder, "scenarios")?;
    scenarios.succeed(SCENARIOS_LIMIT).await?;

    let golden = scripts().join(format!("golden/api_{release}.json"));
    let arguments = [text(&golden)?, text(&ours)?];
    let mut compare = Script::start(python, "compare.py", &arguments, &[], folder, "compare")?;
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
