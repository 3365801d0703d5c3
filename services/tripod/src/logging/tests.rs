//! What lines look like, and which of them have a code.

use std::io::Write;
use std::sync::{Arc, Mutex};

use clap::Parser;
use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;
use tripod_audit::{Auditor, Sinks, files};

use super::*;
use crate::cli::Cli;

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Kept {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// The lines that are logged meanwhile.
fn logged(format: LogFormat, log: impl FnOnce()) -> Vec<String> {
    let kept = Kept::default();
    let lines = subscriber(EnvFilter::new("info"), format, kept.clone(), false);
    tracing::subscriber::with_default(lines, log);
    let bytes = kept.0.lock().expect("no panic").clone();
    String::from_utf8(bytes).expect("UTF-8").lines().map(str::to_owned).collect()
}

/// Lines as the crates of a node write them.
fn trouble() {
    tracing::error!(reason = "T3102 log-io: cannot sync", "node failed");
    tracing::warn!(node = 1, "T3203 leader-unheard: no quorum answered");
    let told = "T4206 node-ended: node 1 did not start: \"T3104 log-locked: in use\"";
    tracing::error!(reason = told, "node ends");
    tracing::warn!(code = number(Code::ListenFailed), "a job port could not be opened");
    tracing::warn!("T12 no-such: it is no code");
    tracing::info!("T3201 disk-full: told to nobody in particular");
}

const CODES: [Option<&str>; 6] = [Some("T3102"), Some("T3203"), Some("T3104"), Some("T1401"), None, None];

#[test]
fn a_line_about_trouble_has_the_code_of_its_text_as_a_field() {
    let lines = logged(LogFormat::Text, trouble);
    assert_eq!(lines.len(), CODES.len(), "{lines:?}");
    for (line, code) in lines.iter().zip(CODES) {
        let field = line.split_whitespace().find_map(|word| word.strip_prefix("code="));
        assert_eq!(field, code, "{line}");
        assert_eq!(line.matches("code=").count(), usize::from(code.is_some()), "{line}");
    }
}

#[test]
fn in_json_too() {
    let lines = logged(LogFormat::Json, trouble);
    assert_eq!(lines.len(), CODES.len(), "{lines:?}");
    for (line, code) in lines.iter().zip(CODES) {
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["code"].as_str(), code, "{line}");
        assert!(line["message"].is_string() && line["level"].is_string(), "{line}");
    }
}

#[tokio::test]
async fn what_the_audit_log_copies_is_written_there_whatever_is_logged() {
    let place = tempfile::tempdir().expect("a directory");
    let sinks = Sinks { directory: Some(place.path().to_owned()), ..Sinks::default() };
    let auditor = Auditor::start(&sinks, "n1", false, Box::new(|_, _| {})).expect("opened");
    audit(&auditor);
    let kept = Kept::default();
    let silent = subscriber(EnvFilter::new("off"), LogFormat::Text, kept.clone(), false);
    tracing::subscriber::with_default(silent, || {
        let code = number(Code::TlsHandshake);
        tracing::warn!(target: "tripod_tls::handshakes", code, outcome = "unknown_ca", "a connection was not made by TLS");
        tracing::info!(target: "tripod_tls::tls", serial = "0a", "new certificates taken");
        tracing::info!(target: "tripod_raft", serial = "0b", "new certificates taken");
    });
    auditor.stop().await;
    assert!(kept.0.lock().expect("no panic").is_empty(), "nothing is logged");
    let (_, path) = files(place.path()).expect("readable").pop().expect("a file");
    let text = std::fs::read_to_string(path).expect("readable");
    assert!(
        text.contains("unknown_ca") && text.contains("certificate 0a") && !text.contains("certificate 0b"),
        "{text}"
    );
}

#[test]
fn parts_are_named_as_people_know_them_and_the_rest_stays_as_it_was() {
    assert_eq!(filter("warn", ""), "warn");
    assert_eq!(filter("warn", "raft=debug, off"), "warn,tripod_raft=debug,off");
    assert_eq!(
        filter("info", "raft::base::stages=trace,openraft=info"),
        "info,tripod_raft::base::stages=trace,openraft=info"
    );
    assert_eq!(filter("info", "tripod_raft=debug,debug"), "info,tripod_raft=debug,debug");
}

#[test]
fn what_was_asked_for_wins() {
    let told = |asked: &str| EnvFilter::try_new(filter(SERVICE, asked)).expect("understood").to_string();
    let sorted = |text: &str| {
        let mut directives: Vec<_> = text.split(',').map(str::to_owned).collect();
        directives.sort();
        directives
    };
    assert_eq!(sorted(&told("")), sorted(SERVICE));
    assert_eq!(sorted(&told("debug,openraft=warn")), sorted("debug,openraft=warn,sled=warn,h2=warn"));
    assert_eq!(sorted(&told("raft=trace")), sorted(&format!("{SERVICE},tripod_raft=trace")));
    assert!(EnvFilter::try_new(filter(SERVICE, "raft=loud")).is_err());
}

#[test]
fn the_form_is_asked_for_by_a_flag_of_every_command() {
    let form = |line: &[&str]| Cli::try_parse_from(line).expect("legal").global.log_format;
    assert_eq!(form(&["tripod", "status"]), LogFormat::Text);
    assert_eq!(form(&["tripod", "status", "--log-format", "json"]), LogFormat::Json);
}

#[test]
fn the_help_names_every_part() {
    let parts = HELP.lines().find_map(|line| line.trim().strip_prefix("parts:")).expect("a line of parts");
    let named: Vec<&str> = parts.split(',').next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(named, PARTS);
}
