//! A client whose target is a unix socket: its `:authority` is a percent-encoded path.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tripod_processes::cluster::PortBlock;
use tripod_tests::python::Script;
use tripod_tests::server::Flags;
use tripod_tests::wait;

use crate::settings::Settings;

/// A node that is a cluster by itself.
const START_LIMIT: Duration = Duration::from_secs(30);
/// All calls of the scenario, the start of the interpreter included.
const CLIENT_LIMIT: Duration = Duration::from_secs(90);

/// Plays the key scenario over the socket of a single node.
pub(super) async fn run(settings: &Settings, release: &str, folder: &Path) -> Result<String> {
    // The path of a socket has room for some 100 bytes: a folder of its own keeps it short.
    let short = tempfile::tempdir().context("a folder for the socket")?;
    let socket = short.path().join("s");
    let ports = PortBlock::reserve()?;
    let mut flags = Flags::alone(&short.path().join("data"), ports.node(1)?);
    flags.client_socket = Some(socket.clone());
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let _node = flags.start(&folder.join("node.log"))?;
    wait::until("the socket", START_LIMIT, || Ok(socket.exists().then_some(()))).await?;

    let target = format!("unix:{}", socket.display());
    let arguments = ["kv", "--address", &target, "-n", "1", "--id", "0"];
    let mut client =
        Script::start(settings.python(release)?, "worker.py", &arguments, &[], folder, "client")?;
    client.succeed(CLIENT_LIMIT).await?;
    let steps = client.steps();
    let told = |name: &str| steps.iter().find(|step| step["step"] == name).map(|step| step["value"].clone());
    ensure!(told("get") == Some("1".into()), "the key was not read back:\n{}", client.output());
    Ok(format!("{} steps", steps.len()))
}
