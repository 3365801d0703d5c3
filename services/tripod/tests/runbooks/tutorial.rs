//! The tutorial, typed in one shell on one machine. A script stands in for JAX's program: it counts in the cluster, and
//! ends when another process of its gang has died.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tripod_processes::cluster::ReservedPorts;
use tripod_wait::until_blocking;

use crate::page::{Block, Outcome, Target, blocks};
use crate::screen;

const PAGE: &str = include_str!("../../../../docs/tutorial.md");
/// The page's first client port; other ports of a cluster on one machine are as far from it as ours from ours.
const FIRST_ON_PAGE: u16 = 7700;
/// How far from it ports are that the page names: of clients, peers and HTTP of four nodes.
const OFFSETS: [u16; 12] = [0, 1, 2, 3, 100, 101, 102, 103, 200, 201, 202, 203];
/// Ports of jobs of the fourth node.
const JOBS_ON_PAGE: &str = "8300-8399";
const JOBS_OFFSET: u16 = 600;
const PORTS: u16 = 700;
/// What each process of the gang does, as long as all of them live. Its steps fail if no node takes what it writes.
const GANG: &str = r#"#!/bin/sh
echo "process $JAX_PROCESS_ID of $JAX_NUM_PROCESSES, pid $$"
step=0
while :; do
    step=$((step + 1))
    tripod kv put --job demo "steps/$JAX_PROCESS_ID" $step > /dev/null || exit 1
    echo "step $step took 0.10 s"
    sleep 0.1 # The work of a step.
    for other in 0 1 2; do
        pid=$(sed -n 's/.*, pid //p' $other.log)
        [ -z "$pid" ] || kill -0 "$pid" 2> /dev/null || kill -ABRT $$
    done
done
"#;

/// A shell that is typed into, with its jobs. All of them end with this value.
struct Shell {
    process: Child,
    directory: TempDir,
    ports: ReservedPorts,
    typed: usize,
}

impl Shell {
    fn begin() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let programs = directory.path().join("programs");
        fs::create_dir(&programs).expect("made");
        let python = programs.join("python");
        fs::write(&python, GANG).expect("written");
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).expect("ours");

        let binary = Path::new(env!("CARGO_BIN_EXE_tripod")).parent().expect("in a directory");
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{}:{path}", programs.display(), binary.display());
        let mut command = Command::new("sh");
        command.current_dir(directory.path()).stdin(Stdio::piped()).process_group(0);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TRIPOD_")) {
            command.env_remove(name);
        }
        let process = command.env("PATH", path).spawn().expect("a shell runs");
        let ports = ReservedPorts::reserve(PORTS).expect("free ports");
        Self { process, directory, ports, typed: 0 }
    }

    /// A line of the page, with our ports.
    fn ours(&self, line: &str) -> String {
        let first = self.ports.first();
        let mut line = line.replace("tripod dev ", &format!("tripod dev --port {first} "));
        for offset in OFFSETS {
            line = line.replace(&page_address(offset), &self.address(offset));
        }
        let jobs = first + JOBS_OFFSET;
        line.replace(JOBS_ON_PAGE, &format!("{jobs}-{}", jobs + 99))
    }

    /// What was printed, with the ports of the page.
    fn on_page(&self, printed: &str) -> String {
        let ports = OFFSETS.into_iter();
        ports.fold(printed.to_owned(), |text, offset| {
            text.replace(&self.address(offset), &page_address(offset))
        })
    }

    fn address(&self, offset: u16) -> String {
        format!("127.0.0.1:{}", self.ports.first() + offset)
    }

    /// Types lines once; gives whether all of them succeeded, what they printed, and what they said about it.
    fn type_lines(&mut self, lines: &[String]) -> (bool, String, String) {
        self.typed += 1;
        let file = |end: &str| self.directory.path().join(format!("typed-{}.{end}", self.typed));
        let (screen, told, failed, done) = (file("screen"), file("told"), file("failed"), file("done"));
        // In the shell itself, which keeps variables and jobs. A value is printed as it is: a new line behind it.
        let screen_path = screen.display();
        let typed = lines.iter().map(|line| {
            let (line, told, failed) = (self.ours(line), told.display(), failed.display());
            format!("{{\n{line}\n}} < /dev/null >> '{screen_path}' 2>> '{told}' || : > '{failed}'\necho >> '{screen_path}'\n")
        });
        let script = format!("{}: > '{}'\n", typed.collect::<Vec<_>>().concat(), done.display());
        self.process.stdin.as_mut().expect("a pipe").write_all(script.as_bytes()).expect("the shell reads");
        until_blocking(format!("the end of `{}`", lines.join("; ")), || done.exists().then_some(()));
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        (!failed.exists(), self.on_page(&read(&screen)), read(&told))
    }

    fn run(&mut self, block: &Block) {
        let lines = block.lines.join("; ");
        assert_eq!(block.target, Target::Anywhere, "{lines}");
        if block.outcome == Outcome::Success {
            let (succeeded, printed, told) = self.type_lines(&block.lines);
            assert!(succeeded, "`{lines}`: {printed}\n{told}");
            if !block.shows.is_empty() {
                screen::assert_as_shown(&lines, &block.shows, &printed);
            }
            return;
        }
        assert_eq!(block.outcome, Outcome::SuccessAtLast, "{lines}");
        until_blocking(format!("the screen of `{lines}`:\n{}", block.shows.join("\n")), || {
            let (succeeded, printed, _) = self.type_lines(&block.lines);
            (succeeded && screen::difference(&block.shows, &printed).is_none()).then_some(())
        });
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for name in ["dev.log", "0.log", "server.log"] {
                let log = fs::read_to_string(self.directory.path().join(name)).unwrap_or_default();
                eprintln!("--- {name}\n{log}");
            }
        }
        // There is nobody to tell when even this fails.
        let group = format!("-{}", self.process.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).status();
        let _ = self.process.wait();
    }
}

fn page_address(offset: u16) -> String {
    format!("127.0.0.1:{}", FIRST_ON_PAGE + offset)
}

#[test]
fn the_tutorial_can_be_typed_from_the_first_line_to_the_last() {
    let mut shell = Shell::begin();
    for block in &blocks(PAGE) {
        shell.run(block);
    }
}

#[test]
fn the_readme_shows_the_gang_of_the_tutorial() {
    let readme = include_str!("../../../../README.md");
    let typed: Vec<String> = blocks(PAGE).into_iter().flat_map(|block| block.lines).collect();
    let shown = ["tripod dev ", "tripod run --job demo ", "LEADER=", "kill -9 "];
    let lines = readme.lines().filter(|line| shown.iter().any(|begin| line.starts_with(begin)));
    let lines: Vec<_> = lines.collect();
    assert!(lines.len() >= 6, "{lines:?}");
    for line in lines {
        assert!(typed.iter().any(|typed| typed == line), "no test types this line of README: {line}");
    }
}
