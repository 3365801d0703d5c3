//! A cluster under load is saved, killed, and begun anew from the file, on one node and on three, with the
//! commands of the runbook.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tokio::task::JoinSet;
use tripod_client::{Client, Condition, Config, Consistency, Kv};
use tripod_processes::cluster::ReservedPorts;
use tripod_wait::{deadline, until_async, until_blocking};

use crate::page::{Block, blocks};
use crate::screen::{assert_as_shown, difference};
use crate::support::{Dev, kill_by, reserve_ports, stderr, tripod};

const KEYS: usize = 3_000;
const WRITERS: usize = 64;
/// What the page calls the members of the new cluster, and where they keep their data.
const MEMBERS_ON_PAGE: &str = "1=10.0.0.1:7800,2=10.0.0.2:7800,3=10.0.0.3:7800";
const DATA_ON_PAGE: &str = "/var/lib/tripod-2";
const PAGE: &str = include_str!("../../../../docs/runbooks/backup-and-restore.md");

fn client(endpoints: &str) -> Client {
    let endpoints = endpoints.split(',').map(str::to_owned).collect();
    Client::new(&Config { endpoints, timeout: deadline() }).expect("good addresses")
}

fn key(number: usize) -> String {
    format!("key/{number:05}")
}

/// Writes all keys, each with a value that names it.
async fn fill(kv: &Kv) {
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let kv = kv.clone();
        writers.spawn(async move {
            for number in (writer..KEYS).step_by(WRITERS) {
                let value = format!("value of {number}").into();
                kv.put(&key(number), value, Condition::Always).await.expect("written");
            }
        });
    }
    writers.join_all().await;
}

/// All keys under `key/`, with their values.
async fn listed(kv: &Kv) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    loop {
        let after = found.last_key_value().map_or_else(String::new, |(key, _): (&String, _)| key.clone());
        let page = kv.list("key/", &after, 0, false).await.expect("listed");
        let text = |value: &[u8]| String::from_utf8(value.to_vec()).expect("text");
        found.extend(page.entries.iter().map(|entry| (entry.key.clone(), text(&entry.value))));
        if !page.more {
            return found;
        }
    }
}

/// Counts as fast as it can until it is told to stop; gives every count with the log index of its write.
async fn count(kv: Kv, stop: Arc<AtomicBool>) -> Vec<(u64, u64)> {
    let mut written = Vec::new();
    for number in 1.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let put = kv.put("counter", number.to_string().into(), Condition::Always).await;
        written.push((number, put.expect("acknowledged").index));
    }
    written
}

/// The nodes of the new cluster, on addresses of ours in place of those on the page.
struct Restored<'p> {
    ports: &'p ReservedPorts,
    directory: PathBuf,
    count: u64,
    cluster_id: String,
    servers: Vec<Child>,
}

impl<'p> Restored<'p> {
    fn new(ports: &'p ReservedPorts, directory: &Path, count: u64) -> Self {
        let directory = directory.join(format!("of-{count}"));
        std::fs::create_dir(&directory).expect("made");
        Self { ports, directory, count, cluster_id: String::new(), servers: Vec::new() }
    }

    fn members(&self) -> String {
        let members = (1..=self.count).map(|node| format!("{node}={}", self.address(node, 100)));
        members.collect::<Vec<_>>().join(",")
    }

    /// What a command prints, with the addresses and the directory of the page.
    fn on_page(&self, printed: &str) -> String {
        let mut text = printed.replace(&self.members(), MEMBERS_ON_PAGE);
        for node in 1..=self.count {
            text = text.replace(&self.address(node, 0), &format!("10.0.0.{node}:7700"));
        }
        text.replace(&self.data(1).display().to_string(), DATA_ON_PAGE)
    }

    /// A line of the page as it is typed on one node.
    fn line(&self, line: &str, node: u64) -> String {
        let mut line = line.replace(MEMBERS_ON_PAGE, &self.members());
        line = line.replace("--node 1", &format!("--node {node}"));
        for (port, offset) in [(7700, 0), (7800, 100), (7900, 200)] {
            line = line.replace(&format!("10.0.0.1:{port}"), &self.address(node, offset));
        }
        line.replace(DATA_ON_PAGE, &self.data(node).display().to_string())
    }

    fn address(&self, node: u64, offset: u16) -> String {
        let place = u16::try_from(node - 1).expect("a small id");
        format!("127.0.0.1:{}", self.ports.first() + offset + place)
    }

    fn data(&self, node: u64) -> PathBuf {
        self.directory.join(format!("node-{node}"))
    }

    fn endpoints(&self) -> String {
        (1..=self.count).map(|node| self.address(node, 0)).collect::<Vec<_>>().join(",")
    }

    /// The shell that the line is typed in, where `tripod` is the binary under test.
    fn shell(&self, line: &str, place: &Path) -> Command {
        let binary = tripod().get_program().to_owned();
        let directory = Path::new(&binary).parent().expect("in a directory").display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        // `exec`: the process that is killed is the node, not its shell.
        command.args(["-c", &format!("exec {line}")]).current_dir(place).stdin(Stdio::piped());
        command.env("PATH", format!("{directory}:{path}")).env("ID", &self.cluster_id);
        command.env("TRIPOD_ENDPOINTS", self.endpoints()).env_remove("TRIPOD_LOG");
        command
    }

    /// Carries out `restore` on every node; all must come to the same cluster.
    fn restore(&mut self, block: &Block, place: &Path) {
        let [line] = &block.lines[..] else { panic!("{block:?}") };
        for node in 1..=self.count {
            let printed = printed(&self.shell(&self.line(line, node), place).output().expect("runs"));
            if node == 1 {
                assert_as_shown(line, &block.shows, &self.on_page(&printed));
            }
            let id = fact(&printed, "cluster").to_owned();
            assert!(self.cluster_id.is_empty() || self.cluster_id == id, "{id} is not {}", self.cluster_id);
            assert!(fact(&printed, "held").contains(&format!(" {} keys of ", KEYS + 1)), "{printed}");
            self.cluster_id = id;
        }
        assert!(self.cluster_id.starts_with("prod-2-"));
    }

    /// Starts every node.
    fn start(&mut self, line: &str, place: &Path) {
        for node in 1..=self.count {
            let jobs = self.ports.first() + 300 + 100 * u16::try_from(node - 1).expect("a small id");
            let line =
                format!("{} --job-ports {jobs}-{} --exit-with-parent", self.line(line, node), jobs + 99);
            self.servers.push(self.shell(&line, place).spawn().expect("starts"));
        }
    }

    /// Types a line once, when its cluster is there.
    fn run(&self, line: &str, place: &Path) -> Output {
        until_blocking("the new cluster", || {
            let output = self.shell(line, place).output().expect("runs");
            output.status.success().then_some(output)
        })
    }

    /// Types a block that looks until it shows what the page does, which has three nodes.
    fn look(&self, block: &Block, place: &Path) {
        let look = || block.lines.iter().map(|line| printed(&self.run(line, place))).collect::<String>();
        let headline = format!("cluster {}  leader ", self.cluster_id);
        if self.count < 3 {
            assert!(look().starts_with(&headline), "{}", self.cluster_id);
            return;
        }
        until_blocking(format!("a screen as on the page:\n{}", block.shows.join("\n")), || {
            let seen = look();
            let is_shown = difference(&block.shows, &self.on_page(&seen)).is_none();
            (is_shown && seen.starts_with(&headline)).then_some(())
        });
    }
}

impl Drop for Restored<'_> {
    fn drop(&mut self) {
        for server in &mut self.servers {
            if matches!(server.try_wait(), Ok(None)) {
                kill_by(server.id());
                // There is nobody to tell when even this fails.
                let _ = server.wait();
            }
        }
    }
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// What a line tells that begins with this word.
fn fact<'a>(text: &'a str, name: &str) -> &'a str {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
    line.unwrap_or_else(|| panic!("{name} is not told: {text}"))[name.len()..].trim()
}

/// The first word of a fact, which is a number.
fn index(text: &str) -> u64 {
    let word = fact(text, "index").split(' ').next();
    word.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("no index: {text}"))
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The index in a file, of which `save` and `verify` tell the same.
fn index_of_both(saved: &str, verified: &str, cluster_id: &str) -> u64 {
    for name in ["cluster", "holds", "file"] {
        assert_eq!(fact(saved, name), fact(verified, name));
    }
    assert!(fact(saved, "cluster").starts_with(&format!("{cluster_id}, voters ")), "{saved}");
    assert!(fact(saved, "holds").contains(&format!(" {} keys of ", KEYS + 1)), "{saved}");
    assert_eq!(index(saved), index(verified));
    index(saved)
}

/// Runs a command that must be refused, and tells what it says.
fn refused(dev: &Dev, arguments: &[&str], code: i32) -> String {
    let output = dev.run(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
    stderr(&output)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_under_load_is_saved_killed_and_restored_on_one_node_and_on_three() {
    let place = tempfile::tempdir().expect("a directory");
    let old_data = tempfile::tempdir().expect("a directory");
    let (old_ports, new_ports) = (reserve_ports(), reserve_ports());
    let dev = Dev::start(&old_ports, old_data.path(), &[]);
    let kv = client(&dev.endpoints(1)).kv("");
    fill(&kv).await;
    let old_id = dev.status()["cluster_id"].clone();
    let old_service = dev.json(&["job", "show", "default", "--json"])["service_incarnation"].clone();

    let stop = Arc::new(AtomicBool::new(false));
    let counting = tokio::spawn(count(kv.clone(), stop.clone()));
    // What is saved is to have something of it.
    until_async("a first count", || async {
        kv.get("counter", Consistency::Linearizable).await.expect("read")
    })
    .await;
    let follower = u16::try_from(dev.current_leader() % 3 + 1).expect("a small id");
    let from = dev.endpoints(follower);
    let page = blocks(PAGE);
    let [backup, restore, serve, looks] = &page[..] else { panic!("{page:?}") };
    let [save, verify] = &backup.lines[..] else { panic!("{backup:?}") };
    let [serve] = &serve.lines[..] else { panic!("{serve:?}") };
    let typed = |line: &str| {
        let words: Vec<String> = line.split_whitespace().skip(1).map(str::to_owned).collect();
        let output = tripod().args(words).args(["--endpoints", &from]).current_dir(place.path()).output();
        printed(&output.expect("the command runs"))
    };
    let saved = typed(save);
    let verified = typed(verify);
    stop.store(true, Ordering::Relaxed);
    let counted = counting.await.expect("no write failed");
    assert_as_shown("saved and verified", &backup.shows, &format!("{saved}{verified}"));
    let saved_index = index_of_both(&saved, &verified, old_id.as_str().expect("an id"));
    let expected = counted.iter().filter(|(_, index)| *index <= saved_index).map(|(number, _)| *number).max();
    let expected = expected.expect("the counter ran before");
    assert!(counted.last().is_some_and(|(number, _)| *number > expected), "the counter ran on after it");

    let other = place.path().join("other.snap").display().to_string();
    std::fs::write(&other, b"mine").expect("written");
    let told = refused(&dev, &["snapshot", "save", &other], 1);
    assert!(told.contains("T5103 backup-exists"), "{told}");
    let told = refused(&dev, &["snapshot", "verify", &other], 1);
    assert!(told.contains("T5101 backup-damaged"), "{told}");
    let replaced = dev.json(&["snapshot", "save", &other, "--force", "--json"]);
    assert!(replaced["index"].as_u64() > Some(saved_index));
    for node in 1..=3 {
        dev.kill(node);
    }
    refused(&dev, &["snapshot", "save", &format!("{other}.2"), "--timeout", "1"], 3);
    assert_eq!(std::fs::read_dir(place.path()).expect("readable").count(), 2, "no half file is left");

    for count in [1, 3] {
        let mut new = Restored::new(&new_ports, place.path(), count);
        new.restore(restore, place.path());
        assert_ne!(Value::from(new.cluster_id.clone()), old_id);
        new.start(serve, place.path());
        new.look(looks, place.path());
        let kv = client(&new.endpoints()).kv("");
        let found = listed(&kv).await;
        assert_eq!(found.len(), KEYS);
        for number in 0..KEYS {
            assert_eq!(found[&key(number)], format!("value of {number}"));
        }
        let counter = kv.get("counter", Consistency::Linearizable).await.expect("read");
        assert_eq!(counter.expect("there").value, expected.to_string(), "as of the saved index");
        let shown = json(&new.run("tripod job show default -o json", place.path()));
        assert_ne!(shown["service_incarnation"], old_service);
        let written = kv.put("counter", "0".into(), Condition::Always).await.expect("it is a cluster");
        assert!(written.index > 1_000_000_000_000, "{written:?}");
    }
}

/// A node dies while it sends its state: the command says so and leaves nothing, and the next node gives all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_dies_while_it_is_saved_leaves_no_half_file() {
    // Far more than fits between a node and a command that reads a MiB a second.
    const VALUES: usize = 24;
    const VALUE_BYTES: usize = 1 << 20;
    let place = tempfile::tempdir().expect("a directory");
    let data = tempfile::tempdir().expect("a directory");
    let ports = reserve_ports();
    let dev = Dev::start(&ports, data.path(), &[]);
    let kv = client(&dev.endpoints(1)).kv("");
    for number in 0..VALUES {
        let value = vec![7; VALUE_BYTES].into();
        kv.put(&key(number), value, Condition::Always).await.expect("written");
    }
    let leader = dev.current_leader();
    let from = u16::try_from(leader % 3 + 1).expect("a small id");
    let file = place.path().join("b.snap");
    let one = format!("127.0.0.1:{}", dev.port + from - 1);
    let mut save = tripod();
    save.args(["snapshot", "save", "--endpoints", &one, "--timeout", "5", "--max-mib-per-s", "1"]).arg(&file);
    let save = save.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("starts");
    let written = || {
        let entries = std::fs::read_dir(place.path()).expect("readable").filter_map(Result::ok);
        entries.filter_map(|entry| entry.metadata().ok()).map(|data| data.len()).sum::<u64>()
    };
    let whole = u64::try_from(VALUES * VALUE_BYTES).expect("a size");
    until_blocking("the beginning of the file", || (written() > 0).then_some(()));
    dev.kill(from.into());
    assert!(written() < whole, "the node was killed too late: {} bytes", written());
    let output = save.wait_with_output().expect("it ends");
    assert!(matches!(output.status.code(), Some(1 | 3)), "{}", stderr(&output));
    assert!(stderr(&output).contains(&format!("node {from}")), "the node is not named: {}", stderr(&output));
    assert_eq!(std::fs::read_dir(place.path()).expect("readable").count(), 0, "a half file is left");

    let whole = ["snapshot", "save", &file.display().to_string(), "--max-mib-per-s", "0", "--json"];
    assert_eq!(dev.json(&whole)["counts"]["keys"], VALUES as u64);
}
