//! Three nodes of a program on this machine.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::answer;
use crate::clean_root::PATH;

const NODES: u16 = 3;
/// Below the ports that systems give to connections that go out.
const FIRST_PORT: u16 = 12_000;
const LAST_PORT: u16 = 31_000;
/// A cluster's ports, behind its first one: for clients, for peers, for people, for jobs.
const OFFSETS: [u16; 12] = [0, 1, 2, 100, 101, 102, 200, 201, 202, 300, 400, 500];
/// How far clusters are from each other.
const STEP: u16 = 600;
/// Seconds that a call may take while there is no leader.
const TIMEOUT_S: &str = "60";

/// `tripod dev`, which ends with its standard input, and its nodes with it.
struct Cluster {
    dev: Child,
    /// Of the nodes, by their ids less one.
    pids: Vec<u64>,
    endpoints: String,
}

/// Begins three nodes with their data below `folder`, kills the leader between a write and a read, and says how long that
/// took.
///
/// # Errors
/// They did not begin, or a call did not answer what it must.
pub(super) fn survives(program: &Path, folder: &Path) -> Result<String> {
    let cluster = Cluster::begin(program, folder)?;
    let call = |arguments: &[&str]| {
        answer(Command::new(program).args(arguments).args(["--endpoints", &cluster.endpoints]))
    };
    call(&["kv", "put", "greeting", "hello"])?;
    let status: Value =
        serde_json::from_str(&call(&["status", "-o", "json"])?).context("status is no JSON")?;
    let leader = status["leader"].as_u64().context("status names no leader")?;
    let index = usize::try_from(leader)?.checked_sub(1).context("nodes are numbered from 1")?;
    let pid = cluster.pids.get(index).with_context(|| format!("node {leader} has not begun"))?;
    let killed = Instant::now();
    answer(Command::new("kill").args(["-9", &pid.to_string()]))?;
    let read = call(&["kv", "get", "greeting", "--timeout", TIMEOUT_S])?;
    let took = killed.elapsed();
    if read.trim_end() != "hello" {
        bail!("leader {leader} was killed, and then the key was `{read}`");
    }
    call(&["kv", "put", "greeting", "again", "--timeout", TIMEOUT_S])?;
    Ok(format!("read {:.1} s after the leader was killed", took.as_secs_f64()))
}

impl Cluster {
    fn begin(program: &Path, folder: &Path) -> Result<Self> {
        let first = free_port()?;
        let endpoints: Vec<String> = (first..first + NODES).map(|port| format!("127.0.0.1:{port}")).collect();
        let mut command = Command::new(program);
        command.args(["dev", "--json", "--exit-with-parent", "--port", &first.to_string(), "--data"]);
        command.arg(folder.join("cluster")).env_clear().env("PATH", PATH);
        let log = std::fs::File::create(folder.join("dev.log")).context("cannot write dev.log")?;
        let dev = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn();
        let mut dev = dev.with_context(|| format!("cannot start {}", program.display()))?;
        let lines = BufReader::new(dev.stdout.take().expect("it is piped")).lines();
        let mut cluster = Self { dev, pids: vec![0; usize::from(NODES)], endpoints: endpoints.join(",") };
        // It ends by itself if no node leads in time.
        for line in lines {
            let told: Value = serde_json::from_str(&line?).unwrap_or_default();
            if let (Some(node), Some(pid)) = (told["node"].as_u64(), told["pid"].as_u64()) {
                let place = usize::try_from(node)?.checked_sub(1).and_then(|at| cluster.pids.get_mut(at));
                *place.with_context(|| format!("node {node} of {NODES}"))? = pid;
            }
            if told["ready"] == true {
                return Ok(cluster);
            }
        }
        let said = std::fs::read_to_string(folder.join("dev.log")).unwrap_or_default();
        bail!("`{} dev` ended: {said}", program.display())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.dev.stdin.take());
        // There is nobody to tell when even this fails.
        let _ = self.dev.wait();
    }
}

/// The first of a cluster's ports, all of which nobody uses now. Where the search begins depends on the process, so that two
/// at a time hardly meet.
fn free_port() -> Result<u16> {
    let slots = (LAST_PORT - FIRST_PORT) / STEP;
    let begin = std::process::id() % u32::from(slots);
    let of_slot = |slot: u16| FIRST_PORT + (u16::try_from(begin).unwrap_or_default() + slot) % slots * STEP;
    let is_free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    let mut firsts = (0..slots).map(of_slot);
    let found = firsts.find(|first| OFFSETS.iter().all(|offset| is_free(first + offset)));
    found.with_context(|| format!("no ports are free between {FIRST_PORT} and {LAST_PORT}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_in_use_are_passed_over() {
        let first = free_port().unwrap();
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, first + OFFSETS[5]));
        // Another process may have taken it meanwhile: then it is held all the same.
        assert_ne!(free_port().unwrap(), first, "{held:?}");
    }
}
