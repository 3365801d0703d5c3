//! A Prometheus of its own, on loopback.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tripod_wait::until_blocking;

use super::file;
use super::rules::{ALERTS, RECORDINGS};

/// Says where the programs are that `cargo xtask test` brings.
const FOLDER: &str = "TRIPOD_PROMETHEUS";
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// One of its programs.
pub(super) fn program(name: &str) -> Command {
    let folder = std::env::var_os(FOLDER).unwrap_or_else(|| panic!("{FOLDER} says where {name} is"));
    Command::new(PathBuf::from(folder).join(name))
}

/// A collector of three nodes.
pub(super) struct Collector {
    process: Child,
    port: u16,
}

impl Collector {
    /// Collects from these ports each second, and evaluates the rules as often.
    pub(super) fn start(folder: &Path, port: u16, nodes: &[u16]) -> Self {
        let targets: Vec<String> = nodes.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let config = json!({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [file(ALERTS), file(RECORDINGS)],
            "scrape_configs": [{"job_name": "tripod", "static_configs": [{"targets": targets}]}],
        });
        let path = folder.join("prometheus.yml");
        std::fs::write(&path, config.to_string()).expect("written");
        let mut command = program("prometheus");
        command.arg(format!("--config.file={}", path.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.join("series").display()));
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        let log = std::fs::File::create(folder.join("prometheus.log")).expect("a file");
        let process =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("it starts");
        let mut collector = Self { process, port };
        until_blocking("the collector", || {
            let ended = collector.process.try_wait().expect("waited");
            assert!(
                ended.is_none(),
                "{}",
                std::fs::read_to_string(folder.join("prometheus.log")).expect("a log")
            );
            collector.get("/-/ready").filter(|(head, _)| head.contains(" 200 ")).map(|_| ())
        });
        collector
    }

    /// What an expression gives now.
    ///
    /// # Errors
    /// What the collector says of it.
    pub(super) fn ask(&self, expr: &str) -> Result<Vec<Value>, String> {
        let encoded: String = expr.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let (_, body) = self.get(&format!("/api/v1/query?query={encoded}")).ok_or("no answer")?;
        let answer: Value = serde_json::from_str(&body).map_err(|error| format!("{error}: {body}"))?;
        match answer["data"]["result"].as_array() {
            Some(result) if answer["status"] == "success" => Ok(result.clone()),
            _ => Err(body),
        }
    }

    /// Why pages were not taken, of each node.
    pub(super) fn trouble(&self) -> Vec<String> {
        let Some((_, body)) = self.get("/api/v1/targets") else { return vec!["no answer".to_owned()] };
        let answer: Value = serde_json::from_str(&body).expect("JSON");
        let targets = answer["data"]["activeTargets"].as_array().expect("targets").clone();
        targets.iter().filter_map(|target| target["lastError"].as_str()).map(str::to_owned).collect()
    }

    /// Head and body; of HTTP 1.0, in which a body ends with its connection.
    fn get(&self, path: &str) -> Option<(String, String)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: collector\r\n\r\n").as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        Some((head.to_owned(), body.to_owned()))
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
