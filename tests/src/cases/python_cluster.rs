//! The Python package at a cluster: three nodes, two object stores, and drivers and workers in Python.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tripod_processes::cluster::{Cluster, ClusterOptions, NodeProcess, ReservedPorts, find_tripod};
use tripod_tests::python::Script;
use tripod_tests::wait;

use crate::settings::Settings;

/// A store that waits for the cluster to raise its level.
const STORE_LIMIT: Duration = Duration::from_secs(60);
/// Half a minute on a machine that has time.
const TESTS_LIMIT: Duration = Duration::from_secs(400);
pub(super) const LIMIT: Duration = Duration::from_secs(500);

/// Runs the package's own tests, those that need no stand-in.
pub(super) async fn run(settings: &Settings) -> Result<String> {
    let release = settings.releases.first().context("no release")?;
    let folder = settings.results.join("python-package-at-a-cluster");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let cluster = Cluster::start(ClusterOptions::tripod()?).await?;
    let endpoints = cluster.endpoints().join(",");
    // Workers listen at ports that the scheduler chooses: on addresses of the loopback network of their own.
    let held = ReservedPorts::reserve(1)?;
    let [high, low] = held.first().to_be_bytes();
    let host = |machine: u8| Ipv4Addr::new(127, 90 + machine, high, low.max(1)).to_string();
    let (first, second) = (host(0), host(1));
    // The path of a socket has room for some 100 bytes: a folder of its own keeps it short.
    let short = tempfile::tempdir().context("a folder for the stores")?;
    let _first_store = store(&endpoints, &first, short.path(), &folder).await?;
    let _second_store = store(&endpoints, &second, short.path(), &folder).await?;

    // Some of the tests start clusters of their own.
    let program = find_tripod()?;
    let program = program.to_str().context("the path of tripod is no text")?;
    let variables = [
        ("TRIPOD_ENDPOINTS", &*endpoints),
        ("TRIPOD_NODE_IP", &*first),
        ("SECOND_NODE_IP", &*second),
        ("TRIPOD_BIN", program),
    ];
    let python = settings.python(release)?;
    let mut script =
        Script::start(python, "test_python_package.py", &[""; 0], &variables, &folder, "package")?;
    script.succeed(TESTS_LIMIT).await?;
    let output = script.output();
    let ran = output.lines().find(|line| line.starts_with("Ran ")).context("no test was run")?;
    Ok(ran.to_owned())
}

/// An object store at an address of this machine, which serves.
pub(super) async fn store(endpoints: &str, host: &str, objects: &Path, logs: &Path) -> Result<NodeProcess> {
    let mut command = Command::new(find_tripod()?);
    command.args(["objstore", "--exit-with-parent", "--json", "--endpoints", endpoints]);
    command.args(["--listen", &format!("{host}:0"), "--directory"]).arg(objects.join(host));
    let log = logs.join(format!("objstore-{host}.log"));
    let store = NodeProcess::spawn("an object store", command, &log)?;
    let serves = || Ok(std::fs::read_to_string(&log)?.contains("\"socket\"").then_some(()));
    wait::until("an object store", STORE_LIMIT, serves).await?;
    Ok(store)
}
