//! The runbooks about builds of two feature levels, as they stand there, on three nodes that clients use meanwhile.

use std::cell::RefCell;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tripod_client::{Client, Condition, Config};
use tripod_processes::cluster::ReservedPorts;
use tripod_wait::{deadline, until_blocking};

use crate::page::{Block, blocks};
use crate::screen::{assert_as_shown, difference};
use crate::support::{end_by, kill_by, reserve_ports, tripod};

const UPGRADE: &str = include_str!("../../../../docs/runbooks/rolling-upgrade.md");
const DOWNGRADE: &str = include_str!("../../../../docs/runbooks/downgrade.md");
/// What the pages call the file with a node's flags.
const CONFIG: &str = "/etc/tripod/server.toml";
const SERVER: &str = "tripod server --config /etc/tripod/server.toml";
/// Has this program be the older one.
const OLDER: &str = " --feature-level-max 2";

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

    /// Types a block until all its commands succeed, whatever they print: a leader that is new may not know enough yet.
    fn run_until_taken(&self, block: &Block) -> String {
        let line = |line: &String| {
            let output = self.shell(line).output().expect("runs");
            let printed = String::from_utf8(output.stdout).expect("UTF-8");
            output.status.success().then_some(printed)
        };
        until_blocking(format!("success of {:?}", block.lines), || block.lines.iter().map(line).collect())
    }

    /// Types a block until it shows what the page does.
    fn until_as_shown(&self, block: &Block) {
        assert!(!block.shows.is_empty(), "{block:?}");
        let last = RefCell::new(String::new());
        until_blocking(Unlike { block, last: &last }, || {
            let printed = self.run_until_taken(block);
            let is_shown = difference(&block.shows, &printed).is_none();
            last.replace(printed);
            is_shown.then_some(())
        });
    }

    /// Types a command of a page once it is taken, and looks at what it prints.
    fn type_as_shown(&self, block: &Block) {
        assert_as_shown(&block.lines.join("; "), &block.shows, &self.run_until_taken(block));
    }

    /// Does a page's steps for the restart of each node: `start` and the looks behind it.
    fn restart_each(&mut self, start: &str, looks: &Block, more: &str) {
        for node in 1..=3 {
            self.end(node);
            self.start(start, node, more);
            self.until_as_shown(looks);
        }
    }
}

/// A block whose commands do not print what the page shows.
struct Unlike<'a> {
    block: &'a Block,
    /// What they printed last.
    last: &'a RefCell<String>,
}

impl fmt::Display for Unlike<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let difference = difference(&self.block.shows, &self.last.borrow()).unwrap_or_default();
        write!(formatter, "the screen of {:?}: {difference}", self.block.lines)
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
    let (up, down) = (blocks(UPGRADE), blocks(DOWNGRADE));
    let [look, save, start, follow, level] = &up[..] else { panic!("{up:?}") };
    nodes.until_as_shown(look);
    let config = Config { endpoints: nodes.endpoints(), timeout: deadline() };
    let stop = Arc::new(AtomicBool::new(false));
    let counting = tokio::spawn(count(Client::new(&config).expect("legal"), stop.clone()));

    nodes.until_as_shown(look);
    nodes.type_as_shown(save);
    assert_eq!(start.lines, [SERVER]);
    nodes.restart_each(SERVER, follow, "");
    nodes.until_as_shown(level);

    let [show, pin, again, start, follow, unpin] = &down[..] else { panic!("{down:?}") };
    nodes.until_as_shown(show);
    nodes.type_as_shown(pin);
    nodes.until_as_shown(again);
    assert_eq!(start.lines, [SERVER]);
    nodes.restart_each(SERVER, follow, OLDER);

    nodes.restart_each(SERVER, follow, "");
    until_blocking("a level that is still pinned", || {
        let printed = nodes.run_until_taken(show);
        (printed.starts_with("feature level 2\n") && printed.contains("\nnext: `tripod level unpin`"))
            .then_some(())
    });
    nodes.type_as_shown(unpin);
    nodes.until_as_shown(show);

    stop.store(true, Ordering::Relaxed);
    let counted = counting.await.expect("no call failed");
    let client = Client::new(&config).expect("legal");
    let found = client.kv("").get("count", tripod_client::Consistency::Linearizable).await.expect("read");
    assert_eq!(found.expect("it was written").version, counted);
}
