use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use tripod_wait::{deadline, until_blocking};

use crate::page::blocks;
use crate::site::Site;

const PAGE: &str = include_str!("../../../../docs/runbooks/secure-a-running-cluster.md");
/// The directory of the operator's certificate on the page.
const OPERATOR: &str = "ann";

/// Writes one number after the other, each by a command of its own, of which none may fail.
struct Writer {
    stop: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
    writing: JoinHandle<()>,
}

impl Writer {
    /// In plain text, unless there is a directory of a certificate.
    fn start(site: &Site, key: &'static str, tls_dir: Option<PathBuf>) -> Self {
        let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let endpoints = site.endpoints().join(",");
        let writing = thread::spawn({
            let (stop, written) = (Arc::clone(&stop), Arc::clone(&written));
            move || {
                while !stop.load(Ordering::Relaxed) {
                    let next = written.load(Ordering::Relaxed) + 1;
                    let timeout = deadline().as_secs().to_string();
                    let arguments = ["kv", "put", key, &next.to_string(), "--timeout", &timeout];
                    let output = tripod(&endpoints, tls_dir.as_ref(), &arguments);
                    assert!(output.status.success(), "{key} {next}: {}", told(&output));
                    written.store(next, Ordering::Relaxed);
                }
            }
        });
        Self { stop, written, writing }
    }

    /// Waits until it has written on: nothing stands still.
    fn goes_on(&self) {
        let before = self.written.load(Ordering::Relaxed);
        until_blocking("a program that writes on", || {
            assert!(!self.writing.is_finished(), "a write failed");
            (self.written.load(Ordering::Relaxed) >= before + 2).then_some(())
        });
    }

    /// Ends it; gives the number that it wrote last.
    fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.writing.join().expect("no write failed");
        self.written.load(Ordering::Relaxed)
    }
}

/// Runs a command with a certificate, or in plain text.
fn tripod(endpoints: &str, tls_dir: Option<&PathBuf>, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tripod"));
    command.args(arguments).env("TRIPOD_ENDPOINTS", endpoints).env_remove("TRIPOD_TLS_DIR");
    if let Some(directory) = tls_dir {
        command.env("TRIPOD_TLS_DIR", directory);
    }
    command.output().expect("runs")
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn s50_a_cluster_becomes_secure_while_programs_write_in_plain_text_and_by_tls() {
    let mut site = Site::of_three();
    let mut in_plain_text = Some(Writer::start(&site, "plain", None));
    let mut by_tls = None;
    for block in &blocks(PAGE) {
        let restarts = block.lines.iter().any(|line| line == "systemctl stop tripod");
        if !restarts {
            site.run(block);
            if block.lines.iter().any(|line| line.starts_with("export TRIPOD_TLS_DIR=")) {
                by_tls = Some(Writer::start(&site, "tls", Some(site.home(1).join(OPERATOR))));
            }
            continue;
        }
        let is_last = !block.lines.iter().any(|line| line.contains("permissive"));
        if is_last {
            // By now every client has a certificate, as the page asks for.
            let last = in_plain_text.take().expect("it writes").end();
            assert_eq!(site.look("tripod kv get plain").trim(), last.to_string());
        }
        for host in 1..=3 {
            site.run_on(host, block);
            site.wait_for_all(3);
            in_plain_text.iter().chain(&by_tls).for_each(Writer::goes_on);
        }
    }
    let refused = tripod(&site.endpoints().join(","), None, &["kv", "get", "tls", "--timeout", "2"]);
    assert_eq!(refused.status.code(), Some(3), "{}", told(&refused));
    let by_tls = by_tls.expect("the page gives the operator a certificate");
    let leader = site.wait_for_leader();
    site.kill(leader);
    by_tls.goes_on();
    let last = by_tls.end();
    assert_eq!(site.look("tripod kv get tls").trim(), last.to_string());
}
