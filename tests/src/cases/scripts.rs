//! Tests of the client scripts themselves.

use std::time::Duration;

use anyhow::{Context as _, Result};
use tripod_tests::python::Script;

use crate::settings::Settings;

/// The comparison's own tests: a comparison that finds nothing would let everything pass.
pub(super) async fn comparison(settings: &Settings) -> Result<String> {
    let release = settings.releases.first().context("no release")?;
    let folder = settings.results.join("comparison");
    let python = settings.python(release)?;
    let mut script = Script::start::<&str>(python, "test_compare.py", &[], &[], &folder, "test_compare")?;
    script.succeed(Duration::from_secs(60)).await?;
    let output = script.output();
    let ran = output.lines().find(|line| line.starts_with("Ran ")).context("no test was run")?;
    Ok(ran.to_owned())
}
