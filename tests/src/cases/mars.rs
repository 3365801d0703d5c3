//! Mars: a program with `tripod_mars` as `pip` installs it, two machines with an object store and two workers each, and what
//! may end meanwhile.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tripod_processes::cluster::{Cluster, NodeProcess, ReservedPorts};
use tripod_tests::python::Script;
use tripod_tests::wait::scaled;

use super::python_cluster::store;
use crate::cases::nodes_in;
use crate::settings::Settings;

/// For two wheels and an environment: half a minute on a machine that has time.
const INSTALL_LIMIT: Duration = Duration::from_secs(240);
/// For one round: half a minute on a machine that has time, and a machine that died is missed first.
const ROUND_LIMIT: Duration = Duration::from_secs(240);
pub(super) const LIMIT: Duration = Duration::from_secs(900);
/// Workers of each machine.
const WORKERS: usize = 2;

/// A machine that computes.
struct Machine {
    store: NodeProcess,
    workers: Vec<NodeProcess>,
}

/// Rounds of programs whose results are compared with numpy: undisturbed; the leader is killed within one; a machine is,
/// with its object store, its workers, and the only copies of chunks that later rounds use.
pub(super) async fn run(settings: &Settings, release: &str, folder: &Path) -> Result<String> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut cluster = Cluster::start(nodes_in(folder)?).await?;
    let endpoints = cluster.endpoints().join(",");
    // Workers listen at ports that the scheduler chooses: on addresses of the loopback network of their own.
    let held = ReservedPorts::reserve(1)?;
    let [high, low] = held.first().to_be_bytes();
    let host = |machine: u8| Ipv4Addr::new(127, 94 + machine, high, low.max(1)).to_string();
    // The path of a socket has room for some 100 bytes: a folder of its own keeps it short.
    let short = tempfile::tempdir().context("a folder for the stores")?;
    let python = &installed(settings.python(release)?, &short.path().join("installed"), folder).await?;
    let _first = machine(python, &endpoints, &host(0), short.path(), folder).await?;
    let mut second = machine(python, &endpoints, &host(1), short.path(), folder).await?;

    let enough = folder.join("enough");
    let _ = std::fs::remove_file(&enough);
    let enough = enough.to_str().context("the folder's path is no text")?;
    let mut program =
        Script::start(python, "mars_demonstrations.py", &[&*endpoints, enough], &[], folder, "program")?;
    round(&mut program, "ends", 0).await?;

    round(&mut program, "begins", 1).await?;
    let dead = cluster.wait_for_leader().await?;
    cluster.kill(dead)?;
    round(&mut program, "ends", 2).await?;
    cluster.restart(dead)?;

    round(&mut program, "begins", 3).await?;
    second.store.kill()?;
    for worker in &mut second.workers {
        worker.kill()?;
    }
    round(&mut program, "ends", 4).await?;
    std::fs::write(enough, "").with_context(|| format!("cannot write {enough}"))?;
    program.succeed(scaled(ROUND_LIMIT)).await?;
    let rounds = program.steps().iter().filter(|step| step["step"] == "ends").count();
    Ok(format!("{rounds} rounds, every result as numpy has it"))
}

/// Waits until a round begins or ends.
async fn round(program: &mut Script, what: &str, round: u64) -> Result<()> {
    program.wait_for_step(ROUND_LIMIT, |step| step["step"] == what && step["round"] == round).await?;
    Ok(())
}

/// The interpreter of an environment in which the packages of the checkout are installed, and nothing else of it is found.
async fn installed(python: &Path, place: &Path, logs: &Path) -> Result<PathBuf> {
    let place = place.to_str().context("the folder's path is no text")?;
    let mut script = Script::start(python, "installed.py", &[place], &[], logs, "installed")?;
    script.succeed(INSTALL_LIMIT).await?;
    let steps = script.steps();
    let step = steps.iter().find(|step| step["step"] == "installed").context("nothing was installed")?;
    Ok(PathBuf::from(step["python"].as_str().context("the interpreter is no text")?))
}

async fn machine(python: &Path, endpoints: &str, host: &str, objects: &Path, logs: &Path) -> Result<Machine> {
    let store = store(endpoints, host, objects, logs).await?;
    let worker = |number: usize| {
        let mut command = Command::new(python);
        command.args(["-m", "tripod_ray.worker", "--mars", "--address", endpoints, "--node-ip", host]);
        command.env_remove("PYTHONPATH");
        let name = format!("worker {number} of {host}");
        NodeProcess::spawn(name, command, &logs.join(format!("worker-{host}-{number}.log")))
    };
    let workers = (0..WORKERS).map(worker).collect::<Result<_>>()?;
    Ok(Machine { store, workers })
}
