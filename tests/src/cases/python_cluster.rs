//! The Python package at a cluster: three nodes, an object store, and drivers and workers in Python.

use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tripod_chaos::cluster::{Cluster, ClusterOptions, NodeProcess, ReservedPorts, find_tripod};
use tripod_tests::python::Script;
use tripod_tests::wait;

use crate::settings::Settings;

/// The scheduler's feature level is not released yet.
const LEVEL: &str = "--feature-level-max=3";
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
    let options = ClusterOptions { extra_args: vec![LEVEL.to_owned()], ..ClusterOptions::tripod()? };
    let cluster = Cluster::start(options).await?;
    let endpoints = cluster.endpoints().join(",");
    // Workers listen at ports that the scheduler chooses: on an address of the loopback network of their own.
    let held = ReservedPorts::reserve(1)?;
    let [high, low] = held.first().to_be_bytes();
    let host = Ipv4Addr::new(127, 90, high, low.max(1)).to_string();
    // The path of a socket has room for some 100 bytes: a folder of its own keeps it short.
    let short = tempfile::tempdir().context("a folder for the store")?;
    let mut command = Command::new(find_tripod()?);
    command.args(["objstore", "--exit-with-parent", "--json", "--endpoints", &endpoints]);
    command.args(["--listen", &format!("{host}:0"), "--directory"]).arg(short.path().join("objects"));
    let log = folder.join("objstore.log");
    let _store = NodeProcess::spawn("the object store", command, &log)?;
    let serves = || Ok(std::fs::read_to_string(&log)?.contains("\"socket\"").then_some(()));
    wait::until("the object store", STORE_LIMIT, serves).await?;

    let variables = [("TRIPOD_ENDPOINTS", &*endpoints), ("TRIPOD_NODE_IP", &*host)];
    let python = settings.python(release)?;
    let mut script =
        Script::start(python, "test_python_package.py", &[""; 0], &variables, &folder, "package")?;
    script.succeed(TESTS_LIMIT).await?;
    let output = script.output();
    let ran = output.lines().find(|line| line.starts_with("Ran ")).context("no test was run")?;
    Ok(ran.to_owned())
}
