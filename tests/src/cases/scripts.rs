//! Tests of the client scripts themselves.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tripod_processes::cluster::{ReservedPorts, find_tripod};
use tripod_tests::python::Script;

use crate::settings::Settings;

/// Tests of a few functions.
const LIMIT: Duration = Duration::from_secs(60);
/// Tests with processes of their own; ten seconds on a machine that has time.
pub(super) const PACKAGE_LIMIT: Duration = Duration::from_secs(300);

/// The comparison's own tests: a comparison that finds nothing would let everything pass.
pub(super) async fn comparison(settings: &Settings, folder: &Path) -> Result<String> {
    unit_tests(settings, folder, "test_compare", &[], LIMIT).await
}

/// Ports that we hold are not given to scripts.
pub(super) async fn reserved_ports(settings: &Settings, folder: &Path) -> Result<String> {
    let held = ReservedPorts::reserve(1)?;
    unit_tests(settings, folder, "test_reserved_port", &[held.first().to_string()], LIMIT).await
}

/// Drivers and workers in Python, and the stand-in for a cluster that their tests bring along.
pub(super) async fn python_package(settings: &Settings, folder: &Path) -> Result<String> {
    unit_tests(settings, folder, "test_python_package", &[], PACKAGE_LIMIT).await
}

/// What `pip` makes of the package in the checkout.
pub(super) async fn python_install(settings: &Settings, folder: &Path) -> Result<String> {
    unit_tests(settings, folder, "test_python_install", &[], PACKAGE_LIMIT).await
}

/// The package `tripod`, which starts clusters of the program by itself.
pub(super) async fn python_tripod(settings: &Settings, folder: &Path) -> Result<String> {
    let program = find_tripod()?;
    let program = program.to_str().context("the path of tripod is no text")?;
    let variables = [("TRIPOD_BIN", program)];
    unit_tests_with(settings, folder, "test_python_tripod", (&[], &variables), PACKAGE_LIMIT).await
}

async fn unit_tests(
    settings: &Settings,
    folder: &Path,
    name: &str,
    arguments: &[String],
    limit: Duration,
) -> Result<String> {
    unit_tests_with(settings, folder, name, (arguments, &[]), limit).await
}

/// The same with variables of the environment beside the arguments.
async fn unit_tests_with(
    settings: &Settings,
    folder: &Path,
    name: &str,
    (arguments, variables): (&[String], &[(&str, &str)]),
    limit: Duration,
) -> Result<String> {
    let release = settings.releases.first().context("no release")?;
    let (python, file) = (settings.python(release)?, format!("{name}.py"));
    let mut script = Script::start(python, &file, arguments, variables, folder, name)?;
    script.succeed(limit).await?;
    let output = script.output();
    let ran = output.lines().find(|line| line.starts_with("Ran ")).context("no test was run")?;
    Ok(ran.to_owned())
}
