//! The program without agents: its processes connect to the nodes.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use tripod_client::wire;
use tripod_processes::cluster::{Cluster, find_tripod};
use tripod_tests::jobs::{self, Poll, port_of};

use super::faults;
use super::program::{Manners, Program, Repeat, TASKS, Wait};
use super::stage::{Stage, Way};
use crate::cases::nodes_in;

const JOB: &str = "train";

/// Processes that connect to the job's ports.
struct Direct {
    target: String,
    ports: Vec<u16>,
}

impl Way for Direct {
    fn addresses(&self) -> Vec<String> {
        vec![self.target.clone(); usize::from(TASKS)]
    }

    fn connected(&self, program: &mut Program) -> Vec<(usize, u32)> {
        program.running()
    }

    fn port(&self, _cluster: &Cluster, node: u64) -> Result<u16> {
        let position = usize::try_from(node)?.checked_sub(1).context("nodes are counted from 1")?;
        self.ports.get(position).copied().with_context(|| format!("the job has no port on node {node}"))
    }
}

/// A cluster with a job for the program, and the job's addresses.
async fn cluster(folder: &Path, poll: Poll, shutdown_barrier: bool) -> Result<(Cluster, Vec<String>)> {
    let cluster = Cluster::start(nodes_in(folder)?).await?;
    let client = jobs::client(&cluster.endpoints())?;
    let heartbeat = Manners::default().heartbeat;
    let spec = jobs::spec(TASKS.into(), heartbeat, poll)?;
    let spec = wire::JobSpec { shutdown_barrier: Some(shutdown_barrier), ..spec };
    jobs::create(&client, JOB, &spec).await?;
    let addresses = jobs::addresses(&client, JOB, u64::try_from(cluster.ids().count())?).await?;
    Ok((cluster, addresses))
}

/// The processes know all addresses, and repeat calls that are cut: of each process at most the one that was in
/// flight when its node died. Nobody waits inside the shutdown, where the loss of a node would be fatal.
pub(super) async fn with_list(python: &Path, folder: &Path) -> Result<String> {
    let (cluster, addresses) = cluster(folder, Poll::Release, false).await?;
    let ports = addresses.iter().map(|address| port_of(address)).collect::<Result<_>>()?;
    let way = Direct { target: format!("ipv4:{}", addresses.join(",")), ports };
    let manners = Manners { repeat: Repeat::Calls, ..Manners::default() };
    let mut stage = Stage::set(cluster, way, python, folder, &manners).await?;
    let remarks = faults::all(&mut stage).await?;
    let cut: usize = stage.program.cut_calls().iter().sum();
    stage.program.others_leave().await.context("without process 0")?;
    faults::kill_attached(&mut stage).await?;
    stage.program.end_wait(Wait::Leave)?;
    stage.program.finish().await.context("process 0 alone")?;
    Ok(format!("nobody died, {cut} calls were cut; longest in ms: {}", remarks.join(", ")))
}

/// The processes ask the cluster, which tells them a retry policy too: no call fails. gRPC makes five attempts
/// of a call, so none is held for longer than one fault.
pub(super) async fn with_xds(python: &Path, folder: &Path, release: &str) -> Result<String> {
    let (cluster, addresses) = cluster(folder, Poll::Hold, true).await?;
    let ports = addresses.iter().map(|address| port_of(address)).collect::<Result<_>>()?;
    let way = Direct { target: format!("xds:///{JOB}:1"), ports };
    let bootstrap = bootstrap(&cluster.endpoints())?;
    let variables = vec![("GRPC_XDS_BOOTSTRAP_CONFIG", bootstrap)];
    // Dialect T, which these releases speak, does not say who increments.
    let increments_unmarked = release.starts_with("0.9.");
    let manners = Manners { variables, increments_unmarked, ..Manners::default() };
    let mut stage = Stage::set(cluster, way, python, folder, &manners).await?;
    let remarks = faults::all(&mut stage).await?;
    let end_ms = faults::killed_in_shutdown(&mut stage).await.context("in leave")?;
    Ok(format!("no call failed; longest in ms: {}, {end_ms} until the end", remarks.join(", ")))
}

/// What the command line tells a user to export.
fn bootstrap(endpoints: &[String]) -> Result<String> {
    let mut command = Command::new(find_tripod()?);
    command.args(["--endpoints", &endpoints.join(","), "job", "show", JOB, "--xds-bootstrap"]);
    let output = command.output().context("tripod job show")?;
    ensure!(output.status.success(), "job show: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
