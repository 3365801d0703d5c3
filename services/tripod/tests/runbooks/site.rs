//! Hosts, each a loopback address and a directory, and people who type commands on them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;
use tripod_processes::cluster::ReservedPorts;
use tripod_wait::{deadline, until_blocking};

use crate::page::{Block, Outcome, Target};
use crate::screen;

/// The first three numbers of every address on the pages, with the dots.
const NETWORK_ON_PAGES: &str = "10.0.0.";
/// Where nodes keep their data on the pages.
const DATA_ON_PAGES: &str = "/var/lib/tripod";
/// Where nodes have their certificates on the pages.
const TLS_ON_PAGES: &str = "/etc/tripod/tls";
/// A directory that all hosts share.
const BACKUPS_ON_PAGES: &str = "/mnt/backups";
/// How commands begin that change nothing. Who looks while a leader is being elected, or before a node has told where it
/// is, looks again.
const LOOKS: [&str; 8] = [
    "export ",
    "ls ",
    "tripod preflight",
    "tripod status",
    "tripod member list",
    "tripod job show",
    "tripod job list",
    "tripod kv get",
];
const HOSTS: std::ops::RangeInclusive<u8> = 1..=5;
const PORTS: [u16; 3] = [7700, 7800, 7900];
/// Where the second numbers of our networks begin: other tests use 100 and more. Ports are below 32,000.
const NETWORKS: u8 = 128;

/// All hosts. What runs on them ends with this value.
pub(crate) struct Site {
    root: TempDir,
    network: String,
    /// What makes the network ours.
    _ports: ReservedPorts,
    endpoints: String,
    /// The directory of the operator's certificate, on host 1.
    tls_dir: Option<String>,
    servers: BTreeMap<u8, Child>,
    /// Directories of nodes that are not on the disk that everything else is on.
    data: BTreeMap<u8, PathBuf>,
    /// Where the first three nodes serve jobs, if not as on the pages.
    job_ports: Option<&'static str>,
}

impl Site {
    pub(crate) fn new() -> Self {
        let ports = ReservedPorts::reserve(1).expect("a free port");
        Self {
            root: tempfile::tempdir().expect("a directory"),
            network: network_of(&ports),
            _ports: ports,
            endpoints: String::new(),
            tls_dir: None,
            servers: BTreeMap::new(),
            data: BTreeMap::new(),
            job_ports: None,
        }
    }

    /// Three hosts that serve, made with the page for it.
    pub(crate) fn of_three() -> Self {
        Self::of_three_on(BTreeMap::new())
    }

    /// The same, with the data of some nodes elsewhere.
    pub(crate) fn of_three_on(data: BTreeMap<u8, PathBuf>) -> Self {
        let mut site = Self::new();
        site.data = data;
        site.serving()
    }

    /// The same, whose nodes were told at which ports jobs are served.
    pub(crate) fn of_three_with_job_ports(job_ports: &'static str) -> Self {
        let mut site = Self::new();
        site.job_ports = Some(job_ports);
        site.serving()
    }

    /// Starts its nodes with the page for it, and waits until they serve.
    fn serving(mut self) -> Self {
        let site = &mut self;
        let page = include_str!("../../../../docs/runbooks/first-cluster.md");
        let blocks = crate::page::blocks(page);
        let leader = blocks.iter().position(|block| block.lines == ["tripod status"]).expect("on the page");
        // Whether hosts are fit takes a second each, and is looked at by the test of the page itself.
        let fit = |block: &&Block| block.lines[0].starts_with("tripod preflight");
        for block in blocks[..=leader].iter().filter(|block| !fit(block)) {
            // Whether all is well on the screen is a matter of the page's own test: a disk may be slow just then.
            site.run(&Block { shows: Vec::new(), ..block.clone() });
        }
        // Job `default` is made by the first leader.
        until_blocking("a cluster that serves", || {
            site.attempt("tripod kv list").0.filter(|code| *code == 0)
        });
        self
    }

    /// The directory that stands for `/var/lib/tripod` of a host; it may be missing.
    pub(crate) fn data(&self, host: u8) -> PathBuf {
        let elsewhere = self.data.get(&host).cloned();
        elsewhere.unwrap_or_else(|| self.root.path().join(format!("host-{host}")).join("tripod"))
    }

    /// The directory that stands for `/mnt/backups` of every host; it may be missing.
    pub(crate) fn backups(&self) -> PathBuf {
        self.root.path().join("backups")
    }

    pub(crate) fn address(&self, host: u8, port: u16) -> String {
        format!("{}{host}:{port}", self.network)
    }

    pub(crate) fn endpoints(&self) -> Vec<String> {
        self.endpoints.split(',').map(str::to_owned).collect()
    }

    /// Types a block; gives what its commands printed, which is what the page shows behind them, if it shows something.
    pub(crate) fn run(&mut self, block: &Block) -> String {
        let looks = block.lines.iter().all(|line| LOOKS.iter().any(|look| line.starts_with(look)));
        if block.shows.is_empty() || !looks {
            let (printed, first) = self.type_block(block);
            if !block.shows.is_empty() {
                screen::assert_as_shown(&block.lines.join("; "), &block.shows, &self.on_page(&first));
            }
            return printed;
        }
        let seen = RefCell::default();
        until_blocking(Unlike { block, seen: &seen }, || {
            let (printed, first) = self.type_block(block);
            let first = self.on_page(&first);
            let found = screen::difference(&block.shows, &first).is_none().then_some(printed);
            seen.replace(first);
            found
        })
    }

    /// Types it once; gives what all hosts print, and what the first one does, which is the page's.
    fn type_block(&mut self, block: &Block) -> (String, String) {
        let hosts: Vec<u8> = match block.target {
            Target::Anywhere => vec![1],
            Target::Host(host) => vec![host],
            Target::Each => vec![1, 2, 3],
        };
        let mut printed = Vec::new();
        for host in hosts {
            let mut here = String::new();
            for line in &block.lines {
                let line = if block.target == Target::Each { on_host(line, host) } else { line.clone() };
                here.push_str(&self.type_line(host, &line, block.outcome));
                // A value is printed as it is, and a prompt stands behind it.
                if !here.is_empty() && !here.ends_with('\n') {
                    here.push('\n');
                }
            }
            printed.push(here);
        }
        (printed.concat(), printed.swap_remove(0))
    }

    /// What was printed, with the addresses and directories of the pages.
    fn on_page(&self, printed: &str) -> String {
        let mut text = printed.replace(&self.network, NETWORK_ON_PAGES);
        for host in HOSTS {
            text = text.replace(&self.data(host).display().to_string(), DATA_ON_PAGES);
        }
        text.replace(&self.backups().display().to_string(), BACKUPS_ON_PAGES)
    }

    fn type_line(&mut self, host: u8, line: &str, outcome: Outcome) -> String {
        if let Some(endpoints) = line.strip_prefix("export TRIPOD_ENDPOINTS=") {
            self.endpoints = endpoints.replace(NETWORK_ON_PAGES, &self.network);
            return String::new();
        }
        if let Some(directory) = line.strip_prefix("export TRIPOD_TLS_DIR=") {
            self.tls_dir = Some(directory.to_owned());
            return String::new();
        }
        if let Some(copy) = line.strip_prefix("scp -r ") {
            self.copy(host, copy);
            return String::new();
        }
        if line == "systemctl stop tripod" {
            self.stop(host);
            return String::new();
        }
        if line.starts_with("tripod server ") {
            self.serve(host, line);
            return String::new();
        }
        // Other tests at the same time may keep the disk so busy that it is not fit for a node just then.
        let again = ["tripod preflight", "tripod status"].iter().any(|command| line.starts_with(command));
        let outcome = if again && outcome == Outcome::Success { Outcome::SuccessAtLast } else { outcome };
        until_blocking(format!("success of `{line}`"), || {
            let output = self.shell(host, line).output().expect("a shell runs");
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            match outcome {
                Outcome::Failure => {
                    assert_eq!(output.status.code(), Some(1), "`{line}` must fail: {told}");
                    Some(format!("{}{told}", text(&output)))
                }
                Outcome::Success => {
                    assert!(output.status.success(), "`{line}`: {told}");
                    Some(text(&output))
                }
                Outcome::SuccessAtLast => output.status.success().then(|| text(&output)),
            }
        })
    }

    /// Types a command that is on no page; it must succeed, however long that takes.
    pub(crate) fn look(&self, line: &str) -> String {
        let line = format!("{line} --timeout {}", deadline().as_secs());
        let output = self.shell(1, &line).output().expect("a shell runs");
        assert!(output.status.success(), "`{line}`: {}", String::from_utf8_lossy(&output.stderr));
        text(&output)
    }

    /// Types a command that may fail; gives its exit code, and what it says about it.
    pub(crate) fn attempt(&self, line: &str) -> (Option<i32>, String) {
        let (code, _, told) = self.screen(line);
        (code, told)
    }

    /// Types a command that may fail; gives its exit code, what it prints and what it says about it.
    pub(crate) fn screen(&self, line: &str) -> (Option<i32>, String, String) {
        let output = self.shell(1, line).output().expect("a shell runs");
        (output.status.code(), text(&output), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// What `tripod status` tells, for programs.
    pub(crate) fn status(&self) -> Value {
        // It ends with 3 as long as nobody leads, and tells all the same.
        let output = self.shell(1, "tripod status -o json").output().expect("a shell runs");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    pub(crate) fn wait_for_leader(&self) -> u8 {
        until_blocking("a leader", || self.status()["leader"].as_u64().and_then(|id| u8::try_from(id).ok()))
    }

    /// Waits until so many nodes answer, and all of them have what the leader has.
    pub(crate) fn wait_for_all(&self, count: usize) {
        until_blocking("nodes that are all well", || {
            let status = self.status();
            let nodes = status["nodes"].as_array()?;
            let is_well = |node: &Value| node["state"] == "ok";
            (nodes.len() == count && nodes.iter().all(is_well) && status["leader"].is_u64()).then_some(())
        });
    }

    /// Types what a page shows for host 1, on another host.
    pub(crate) fn run_on(&mut self, host: u8, block: &Block) {
        for line in &block.lines {
            self.type_line(host, &on_host(line, host), block.outcome);
        }
    }

    fn serve(&mut self, host: u8, line: &str) {
        fs::create_dir_all(self.data(host).parent().expect("in a host")).expect("made");
        let mut command = self.shell(host, &format!("exec {line} --exit-with-parent"));
        let log = File::create(self.log(host)).expect("a log");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        let server = command.spawn().expect("a shell runs");
        let before = self.servers.insert(host, server);
        assert!(before.is_none(), "host {host} has a server already");
    }

    /// Copies a directory of one host to where nodes have their certificates on another one: `FROM HOST:TO`.
    fn copy(&self, host: u8, copy: &str) {
        let (from, to) = copy.split_once(' ').expect("what is copied, and where to");
        let (to, directory) = to.split_once(':').expect("a host, and a directory there");
        let to =
            to.strip_prefix(NETWORK_ON_PAGES).and_then(|last| last.parse().ok()).expect("a host of the page");
        assert_eq!(directory, TLS_ON_PAGES);
        fs::create_dir_all(self.tls(to)).expect("made");
        for entry in fs::read_dir(self.home(host).join(from)).expect("a directory") {
            let entry = entry.expect("an entry");
            fs::copy(entry.path(), self.tls(to).join(entry.file_name())).expect("copied");
        }
    }

    /// Where somebody is who types on a host.
    pub(crate) fn home(&self, host: u8) -> PathBuf {
        self.root.path().join(format!("host-{host}"))
    }

    fn tls(&self, host: u8) -> PathBuf {
        self.home(host).join("tls")
    }

    pub(crate) fn log(&self, host: u8) -> PathBuf {
        self.root.path().join(format!("host-{host}.log"))
    }

    /// Ends a host's server as a service manager does.
    fn stop(&mut self, host: u8) {
        let mut server = self.servers.remove(&host).expect("it serves");
        let process = Pid::from_raw(i32::try_from(server.id()).expect("a process id"));
        kill(process, Signal::SIGTERM).expect("it runs");
        let status = until_blocking("the end of a server", || server.try_wait().expect("waited"));
        assert!(status.success(), "host {host}: {status}");
    }

    /// Ends a host's server as a lost power supply does.
    pub(crate) fn kill(&mut self, host: u8) {
        let mut server = self.servers.remove(&host).expect("it serves");
        server.kill().expect("it runs");
        server.wait().expect("it ends");
    }

    /// Waits until so many servers have ended by themselves, and kills the others; gives the logs of the first.
    pub(crate) fn wait_for_ends(&mut self, count: usize) -> Vec<String> {
        let mut ended = Vec::new();
        until_blocking("the ends of servers", || {
            let servers = self.servers.iter_mut();
            let over = servers.filter_map(|(host, server)| server.try_wait().expect("waited").map(|_| *host));
            ended = over.collect::<Vec<u8>>();
            (ended.len() >= count).then_some(())
        });
        for host in self.servers.keys().copied().collect::<Vec<_>>() {
            self.kill(host);
        }
        ended.into_iter().map(|host| fs::read_to_string(self.log(host)).expect("a log")).collect()
    }

    /// Waits until a server that was removed ends by itself, as something that did not fail; gives its log.
    pub(crate) fn wait_for_end(&mut self, host: u8) -> String {
        let mut server = self.servers.remove(&host).expect("it serves");
        let status = until_blocking("the end of a server", || server.try_wait().expect("waited"));
        assert_eq!(status.code(), Some(0), "host {host}");
        fs::read_to_string(self.log(host)).expect("a log")
    }

    fn shell(&self, host: u8, line: &str) -> Command {
        let directory = self.home(host);
        fs::create_dir_all(&directory).expect("made");
        let data = self.data(host).display().to_string();
        let line = line.replace(NETWORK_ON_PAGES, &self.network).replace(DATA_ON_PAGES, &data);
        let line = line.replace(BACKUPS_ON_PAGES, &self.backups().display().to_string());
        let line = line.replace(TLS_ON_PAGES, &self.tls(host).display().to_string());
        let binary = PathBuf::from(env!("CARGO_BIN_EXE_tripod"));
        let programs = binary.parent().expect("in a directory").display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(directory).stdin(Stdio::null());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TRIPOD_")) {
            command.env_remove(name);
        }
        command.env("PATH", format!("{programs}:{path}")).env("TRIPOD_ENDPOINTS", &self.endpoints);
        if let Some(directory) = &self.tls_dir {
            command.env("TRIPOD_TLS_DIR", self.home(1).join(directory));
        }
        if let Some(job_ports) = self.job_ports.filter(|_| host <= 3) {
            command.env("TRIPOD_JOB_PORTS", job_ports);
        }
        command
    }
}

/// A block whose commands do not print what the page shows.
struct Unlike<'a> {
    block: &'a Block,
    /// What they printed last.
    seen: &'a RefCell<String>,
}

impl fmt::Display for Unlike<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.block.lines.join("; ");
        let difference = screen::difference(&self.block.shows, &self.seen.borrow()).unwrap_or_default();
        write!(formatter, "the screen of `{lines}`: {difference}")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for server in self.servers.values_mut() {
            // There is nobody to tell when even this fails.
            let _ = server.kill();
            let _ = server.wait();
        }
        if std::thread::panicking() {
            for host in HOSTS {
                if let Ok(log) = fs::read_to_string(self.log(host)) {
                    let lines: Vec<&str> = log.lines().collect();
                    let last = &lines[lines.len().saturating_sub(20)..];
                    eprintln!("--- host {host}, its last lines\n{}", last.join("\n"));
                }
            }
        }
    }
}

/// A line that shows what is typed on host 1, as it is typed on another one.
fn on_host(line: &str, host: u8) -> String {
    let mut line = line.replace("--node 1", &format!("--node {host}"));
    for (flag, port) in ["--client", "--peer", "--http"].into_iter().zip(PORTS) {
        let from = format!("{flag} {NETWORK_ON_PAGES}1:{port}");
        line = line.replace(&from, &format!("{flag} {NETWORK_ON_PAGES}{host}:{port}"));
    }
    line
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A part of the loopback network that is nobody else's, as the reserved ports are: its hosts listen at the ports of
/// the pages.
pub(crate) fn network_of(ports: &ReservedPorts) -> String {
    let [high, low] = ports.first().to_be_bytes();
    format!("127.{}.{low}.", NETWORKS + high)
}
