//! The runbooks about builds of two feature levels, as they stand there, on three nodes that clients use meanwhile.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tripod_chaos::cluster::ReservedPorts;
use tripod_client::{Client, Condition, Config};
use tripod_wait::until_blocking;

use crate::support::{end_by, kill_by, reserve_ports, tripod};

const UPGRADE: &str = include_str!("../../../../docs/runbooks/rolling-upgrade.md");
const DOWNGRADE: &str = include_str!("../../../../docs/runbooks/downgrade.md");
/// What the pages call the file with a node's flags.
const CONFIG: &str = "/etc/tripod/server.toml";
const SERVER: &str = "tripod server --config /etc/tripod/server.toml";
/// Has this program be the older one.
const OLDER: &str = " --feature-level-max 2";

/// The commands of a page, in their order.
fn commands(page: &'static str) -> Vec<&'static str> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in page.lines().map(str::trim) {
        if line.starts_with("```") {
            inside = !inside;
        } else if inside {
            found.push(line);
        }
    }
    assert!(found.iter().all(|line| line.starts_with("tripod ")), "{found:?}");
    found
}

/// Three nodes, each with a file of flags.
struct Nodes<'a> {
    ports: &'a ReservedPorts,
    place: &'a Path,
    servers: Vec<Option<Child>>,
}

impl<'a> Nodes<'a> {
    fn new(ports: &'a ReservedPorts, place: &'a Path) -> Self {
        let nodes = Self { ports, place, servers: vec![None, None, None] };
        let initial: Vec<String> =
            (1..=3).map(|node| format!("{node}={}", nodes.address(node, 100))).collect();
        for node in 1..=3 {
            let jobs = ports.first() + 300 + 100 * (node - 1);
            let text = format!(
                "node = {node}\ndata = '{}'\nclient = '{}'\npeer = '{}'\nhttp = '{}'\ninitial = '{}'\n\
                 job-ports = '{jobs}-{}'\n",
                place.join(format!("node-{node}")).display(),
                nodes.address(node, 0),
                nodes.address(node, 100),
                nodes.address(node, 200),
                initial.join(","),
                jobs + 99,
            );
            fs::write(nodes.config(node), text).expect("written");
        }
        nodes
    }

    fn config(&self, node: u16) -> PathBuf {
        self.place.join(format!("server-{node}.toml"))
    }

    fn address(&self, node: u16, offset: u16) -> String {
        format!("127.0.0.1:{}", self.ports.first() + offset + node - 1)
    }

    fn endpoints(&self) -> Vec<String> {
        (1..=3).map(|node| self.address(node, 0)).collect()
    }

    /// The shell that a line is typed in, where `tripod` is the binary under test.
    fn shell(&self, line: &str) -> Command {
        let binary = tripod().get_program().to_owned();
        let directory = Path::new(&binary).parent().expect("in a directory").display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        // `exec`: the process that is ended is the node, not its shell.
        command.args(["-c", &format!("exec {line}")]).current_dir(self.place).stdin(Stdio::piped());
        command.env("PATH", format!("{directory}:{path}")).env_remove("TRIPOD_LOG");
        command.env("TRIPOD_ENDPOINTS", self.endpoints().join(","));
        command
    }

    /// Types the line with which a node is started. `more` is what this build needs to be the older one.
    fn start(&mut self, line: &str, node: u16, more: &str) {
        let line = line.replace(CONFIG, &self.config(node).display().to_string());
        self.servers[usize::from(node - 1)] =
            Some(self.shell(&format!("{line} --exit-with-parent{more}")).spawn().expect("starts"));
    }

    fn end(&mut self, node: u16) {
        let mut server = self.servers[usize::from(node - 1)].take().expect("it runs");
        end_by(server.id());
        let status = until_blocking("a node's end", || server.try_wait().expect("waited"));
        assert!(status.success(), "node {node} ended with {status}");
    }

    fn run(&self, line: &str) -> Output {
        self.shell(&format!("{line} --json")).output().expect("runs")
    }

    /// Types a line until a leader takes it: one that is new may not know enough yet.
    fn run_until_taken(&self, line: &str) {
        until_blocking("a leader that takes it", || self.run(line).status.success().then_some(()));
    }

    /// Types a line until what it prints is so.
    fn until(&self, line: &str, what: &str, is_so: impl Fn(&Value) -> bool) {
        until_blocking(what, || {
            let output = self.run(line);
            let told = serde_json::from_slice(&output.stdout).ok()?;
            (output.status.success() && is_so(&told)).then_some(())
        });
    }

    /// All nodes answer, and one of them leads.
    fn until_all_are_up(&self, line: &str) {
        self.until(line, "three nodes and a leader", |told| {
            let nodes = told["nodes"].as_array().map_or(&[][..], Vec::as_slice);
            let up = |node: &&Value| node["state"] == "ok";
            told["leader"].is_u64() && nodes.iter().filter(up).count() == 3
        });
    }

    /// Does a page's steps for the restart of each node: `start` and the looks behind it.
    fn restart_each(&mut self, start: &str, looks: &[&str], more: &str) {
        for node in 1..=3 {
            self.end(node);
            self.start(start, node, more);
            let [status, members] = looks else { panic!("{looks:?}") };
            self.until_all_are_up(status);
            self.until(members, "a node that has caught up", |told| {
                let members = told["members"].as_array().map_or(&[][..], Vec::as_slice);
                members.len() == 3 && members.iter().all(|member| member["answers"] == true)
            });
        }
    }
}

impl Drop for Nodes<'_> {
    fn drop(&mut self) {
        for server in self.servers.iter_mut().flatten() {
            if matches!(server.try_wait(), Ok(None)) {
                kill_by(server.id());
                // There is nobody to tell when even this fails.
                let _ = server.wait();
            }
        }
    }
}

/// Writes until it is stopped; gives how often. Any failed call is a failure of the test.
async fn count(client: Client, stop: Arc<AtomicBool>) -> u64 {
    let (kv, mut count) = (client.kv(""), 0);
    while !stop.load(Ordering::Relaxed) {
        let written = kv.put("count", (count + 1).to_string().into(), Condition::Version(count)).await;
        count = written.unwrap_or_else(|error| panic!("after {count}: {error}")).version;
    }
    count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pages_lead_to_the_newer_build_and_back() {
    let (ports, place) = (reserve_ports(), tempfile::tempdir().expect("a directory"));
    let mut nodes = Nodes::new(&ports, place.path());
    for node in 1..=3 {
        nodes.start(SERVER, node, OLDER);
    }
    nodes.until_all_are_up("tripod status");
    let config = Config { endpoints: nodes.endpoints(), timeout: Duration::from_secs(60) };
    let stop = Arc::new(AtomicBool::new(false));
    let counting = tokio::spawn(count(Client::new(&config).expect("legal"), stop.clone()));
    let level_is = |level: u64| move |told: &Value| told["level"] == level && told["next"].is_null();

    let commands_up = commands(UPGRADE);
    let [look, save, start, status, members, level] = commands_up[..] else { panic!("{commands_up:?}") };
    nodes.until_all_are_up(look);
    nodes.run_until_taken(save);
    assert_eq!(start, SERVER);
    nodes.restart_each(start, &[status, members], "");
    nodes.until(level, "level 8", level_is(8));

    let commands_down = commands(DOWNGRADE);
    let [show, pin, again, start, status, members, unpin] = commands_down[..] else {
        panic!("{commands_down:?}")
    };
    nodes.until(show, "level 8", level_is(8));
    nodes.run_until_taken(pin);
    nodes.until(again, "nodes that can go back", |told| {
        told["members"].as_array().is_some_and(|members| members.iter().all(|member| member["back_to"] == 2))
    });
    nodes.restart_each(start, &[status, members], OLDER);

    nodes.restart_each(start, &[status, members], "");
    nodes.until(show, "a level that is still pinned", |told| told["level"] == 2 && !told["next"].is_null());
    nodes.run_until_taken(unpin);
    nodes.until(show, "level 8", level_is(8));

    stop.store(true, Ordering::Relaxed);
    let counted = counting.await.expect("no call failed");
    let client = Client::new(&config).expect("legal");
    let found = client.kv("").get("count", tripod_client::Consistency::Linearizable).await.expect("read");
    assert_eq!(found.expect("it was written").version, counted);
}
