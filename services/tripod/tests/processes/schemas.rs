//! What commands print as JSON is what `docs/cli.md` says, field by field, and how they end. The numbers behind `n` are
//! those of the walk-through of a new operator.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use tripod_raft::repair;
use tripod_wait::{Nobody, until_blocking};

use crate::support::{Dev, reserve_ports, seconds, stderr, tripod};

const PAGE: &str = include_str!("../../../../docs/cli.md");
/// The least that a node is told.
const SETTINGS: &str =
    "node = 1\ndata = \"d\"\nclient = \"a:1\"\npeer = \"a:2\"\nhttp = \"a:3\"\ninitial = \"1=a:2\"\n";
const METRICS_PAGE: &str = include_str!("../../../../docs/metrics.md");

/// The fields of a command's JSON as the page has them: paths, their types, and whether they may be missing.
type Schema = BTreeMap<String, (BTreeSet<String>, bool)>;

/// Every schema of the page. One begins with `# COMMAND`, in a block of `fields`.
fn documented() -> BTreeMap<String, Schema> {
    let mut all = BTreeMap::new();
    let mut current: Option<(String, Schema)> = None;
    let mut inside = false;
    for line in PAGE.lines() {
        if line.starts_with("```") {
            inside = line == "```fields";
            all.extend(current.take());
            continue;
        }
        if !inside {
            continue;
        }
        if let Some(name) = line.strip_prefix("# ") {
            all.extend(current.replace((name.to_owned(), Schema::new())));
            continue;
        }
        let mut words = line.split_whitespace();
        let (path, types) = (words.next().expect("a path"), words.next().expect("a type"));
        let (types, optional) = types.strip_suffix('?').map_or((types, false), |types| (types, true));
        let types = types.split('|').map(str::to_owned).collect();
        let schema = &mut current.as_mut().expect("a command stands before its fields").1;
        assert!(schema.insert(path.to_owned(), (types, optional)).is_none(), "{path} is there twice");
    }
    all
}

fn fields(path: &str, value: &Value, found: &mut BTreeMap<String, BTreeSet<String>>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(items) => {
            items.iter().for_each(|item| fields(&format!("{path}[]"), item, found));
            "list"
        }
        Value::Object(parts) => {
            parts.iter().for_each(|(name, part)| fields(&format!("{path}.{name}"), part, found));
            "object"
        }
    };
    found.entry(path.to_owned()).or_default().insert(kind.to_owned());
}

/// Holds what a command printed against the page.
pub(crate) fn check(name: &str, printed: &Value) {
    let documented = documented();
    let schema = documented.get(name).unwrap_or_else(|| panic!("docs/cli.md has no fields of `{name}`"));
    let mut found = BTreeMap::new();
    fields("", printed, &mut found);
    found.retain(|path, _| !path.is_empty());
    let lines = || {
        found.iter().map(|(path, types)| {
            format!("{path} {}", types.iter().map(String::as_str).collect::<Vec<_>>().join("|"))
        })
    };
    let all = || lines().collect::<Vec<_>>().join("\n");
    for (path, types) in &found {
        let known =
            schema.get(path).unwrap_or_else(|| panic!("`{name}`: {path} is not in docs/cli.md:\n{}", all()));
        assert!(types.is_subset(&known.0), "`{name}`: {path} is {types:?}, not {:?}", known.0);
    }
    for (path, (_, optional)) in schema {
        assert!(*optional || found.contains_key(path), "`{name}`: {path} is gone; fields stay:\n{}", all());
    }
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {}", stderr(output)))
}

/// Beside a running node: its port is taken, and its clock is asked.
fn preflight_beside_a_node(dev: &Dev, root: &Path) {
    let client = dev.endpoints(1).split(',').next().expect("an address").to_owned();
    // A node that is slow to tell its time is not compared.
    let ahead_s = until_blocking("clocks that are compared", || {
        let beside = dev.run(&["preflight", "--client", &client, "-o", "json"]);
        assert_eq!(beside.status.code(), Some(1), "{}", stderr(&beside));
        let beside = json(&beside);
        check("preflight", &beside);
        let checks = beside["checks"].as_array().expect("checks");
        let one = |name: &str| checks.iter().find(|check| check["check"] == name).expect("the check");
        assert_eq!(one("port-client")["verdict"], "fail", "{beside}");
        one("clock")["figures"]["ahead_s"].as_i64()
    });
    assert!(ahead_s.abs() <= 2, "{ahead_s} s");
    // n34: with the node's own directory, its port is known to be its own. It may be slow to say so.
    let own = root.join("node-1").join("data").display().to_string();
    until_blocking("a port that is the node's own", || {
        let itself = json(&dev.run(&["preflight", "--data", &own, "--client", &client, "-o", "json"]));
        let checks = itself["checks"].as_array().expect("checks");
        checks.iter().any(|check| check["check"] == "port-client" && check["verdict"] == "ok").then_some(())
    });
}

/// What is asked of the data of a node that was killed.
fn look_at_a_dead_node(dev: &Dev, root: &Path) {
    dev.kill(3);
    let data = root.join("node-3").join("data").display().to_string();
    let looked = until_blocking("the lock of a dead node to go", || {
        let output = dev.run(&["doctor", &data, "-o", "json"]);
        output.status.success().then_some(output)
    });
    check("doctor", &json(&looked));
    check("status", &json(&dev.run(&["status", "-o", "json"])));
    let index = repair::plant(Path::new(&data), b"nobody can read this").expect("planted");
    let told = stderr(&dev.run(&["doctor", &data]));
    let checksum = told.split_once("(checksum ").expect("a checksum").1.split(')').next().expect("a word");
    let skip =
        ["repair", "skip", &data, "--index", &index.to_string(), "--checksum", checksum, "--yes", "--json"];
    check("repair", &json(&dev.run(&skip)));
}

/// On a busy machine an heir may not take over in time, and everything stays as it was.
fn transfer(dev: &Dev) {
    let moved = until_blocking("a transfer", || {
        let output = dev.run(&["leader", "transfer", "-o", "json"]);
        output.status.success().then_some(output)
    });
    check("leader transfer", &json(&moved));
}

#[test]
fn n9_what_is_printed_as_json_is_what_the_page_says() {
    let root = tempfile::tempdir().expect("a directory");
    let ports = reserve_ports();
    let dev = Dev::start(&ports, root.path(), &[]);
    let shown = |name: &str, arguments: &[&str]| {
        let output = dev.run(&[arguments, &["-o", "json"]].concat());
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        check(name, &json(&output));
    };
    shown("version", &["version"]);
    shown("explain", &["explain", "T3101"]);
    let place = |name: &str| root.path().join(name).display().to_string();
    let (issuers, made) = (place("issuers"), place("made"));
    shown("pki init", &["pki", "init", &issuers, "--cluster", "prod"]);
    shown("pki", &["pki", "operator", "ann", "--ca", &issuers, "--out", &made]);
    shown("pki", &["pki", "status", &made]);
    let (asked, request) = (place("asked"), place("request"));
    shown("pki request", &["pki", "operator", "bob", "--out", &asked, "--csr", &request]);
    shown("pki crl", &["pki", "crl", "--ca", &issuers, "--revoke", "operator/ann"]);
    shown("config explain", &["config", "explain", "tasks"]);
    shown("metrics list", &["metrics", "list"]);
    let settings = root.path().join("server.toml");
    std::fs::write(&settings, SETTINGS).expect("written");
    shown("config check", &["config", "check", &settings.display().to_string()]);
    shown("kv put", &["kv", "put", "a", "text"]);
    dev.text(&["kv", "put", "bytes", "--", "x"]);
    shown("kv get", &["kv", "get", "a"]);
    shown("kv list", &["kv", "list"]);
    shown("kv list", &["kv", "list", "--keys-only"]);
    shown("kv delete", &["kv", "delete", "a"]);
    let member = "worker:0=127.0.0.1:9";
    shown("job create", &["job", "create", "train", "--members", "chief:1,worker:2", "--member", member]);
    shown("job show", &["job", "show", "train"]);
    shown("job list", &["job", "list"]);
    // Notes and drained nodes need a feature level that the cluster is at a moment after its start.
    let taken = |name: &str, arguments: &[&str]| {
        let output = until_blocking(format!("success of {arguments:?}"), || {
            let output = dev.run(&[arguments, &["-o", "json"]].concat());
            output.status.success().then_some(output)
        });
        check(name, &json(&output));
    };
    taken("job note", &["job", "note", "train", "of Monday"]);
    taken("job events", &["job", "events", "train"]);
    taken("job events", &["events", "--since", "1h"]);
    taken("job events", &["events", "--node", "1"]);
    taken("status", &["status", "--digest"]);
    taken("level show", &["level", "show"]);
    taken("node drain", &["node", "drain", "2"]);
    taken("node drain", &["node", "undrain", "2"]);
    taken("bench", &["bench", "kv", "--clients", "1", "--seconds", "0.2"]);
    shown("member list", &["member", "list"]);
    // Both that would be left have to answer soon.
    let planned = until_blocking("a plan", || {
        let output = dev.run(&["member", "demote", "3", "--plan", "-o", "json"]);
        output.status.success().then_some(output)
    });
    check("member change --plan", &json(&planned));
    let file = root.path().join("b.snap").display().to_string();
    shown("snapshot save", &["snapshot", "save", &file]);
    shown("snapshot verify", &["snapshot", "verify", &file]);
    let restored = root.path().join("restored").display().to_string();
    let line = ["snapshot", "restore", &file, "--name", "n", "--node", "1", "--members", "1=127.0.0.1:1"];
    shown("snapshot restore", &[&line[..], &["--data", &restored]].concat());
    transfer(&dev);
    // Beside others that sync a disk may not be fit, which is told in the same way.
    let measured = dev.run(&["preflight", "--data", &restored, "-o", "json"]);
    assert!(matches!(measured.status.code(), Some(0 | 1)), "{}", stderr(&measured));
    check("preflight", &json(&measured));

    preflight_beside_a_node(&dev, root.path());

    look_at_a_dead_node(&dev, root.path());
    dev.kill(2);
    dev.kill(1);
}

#[test]
fn the_list_of_metrics_is_that_of_the_page_about_them() {
    let output = tripod().args(["metrics", "list", "-o", "json"]).output().expect("runs");
    let listed: Vec<[String; 4]> = json(&output).as_array().expect("a list").iter().map(row_of).collect();
    let documented: BTreeSet<[String; 4]> = METRICS_PAGE.lines().filter_map(row_in).collect();
    assert!(documented.len() > 40, "{documented:?}");
    assert_eq!(listed.len(), documented.len());
    assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), documented);
    let table = tripod().args(["metrics", "list"]).output().expect("runs");
    let table = String::from_utf8(table.stdout).expect("UTF-8");
    for [name, kind, unit, _] in &listed {
        let line = table.lines().find(|line| line.split_whitespace().next() == Some(name));
        let words: Vec<&str> = line.expect("a line for each").split_whitespace().collect();
        assert_eq!(words[1..3], [kind.as_str(), unit.as_str()], "{name}");
    }
}

/// Name, type, unit and label of one that the command lists.
fn row_of(metric: &Value) -> [String; 4] {
    ["name", "type", "unit", "label"].map(|field| metric[field].as_str().unwrap_or("-").to_owned())
}

/// The same of a row of a table in docs/metrics.md.
fn row_in(line: &str) -> Option<[String; 4]> {
    let mut cells = line.strip_prefix("| `")?.split(" | ");
    let (name, kind, unit, label) = (cells.next()?, cells.next()?, cells.next()?, cells.next()?);
    let label = label.split('`').nth(1).unwrap_or("-");
    Some([name.trim_end_matches('`'), kind, unit, label].map(str::to_owned))
}

#[test]
fn a_command_ends_with_the_exit_code_of_its_error_code() {
    let nobody = Nobody::at_a_port();
    let closed = nobody.address();
    let unknown = format!("{}:1", "x".repeat(64));
    let second = seconds(1.0);
    for (arguments, code, text) in [
        (&["frobnicate"][..], 2, "error: T1101 usage: unrecognized subcommand"),
        (&["explain", "T9999"], 2, "error: T1107 code-unknown: "),
        (&["config", "explain", "hartbeat-timeout"], 2, "error: T1203 config-key: "),
        (&["config", "check", "missing.toml"], 2, "error: T1201 config-unreadable: "),
        (&["snapshot", "verify", "missing.snap"], 1, "error: T5104 backup-io: "),
        (&["doctor", "missing"], 2, "error: T5302 doctor-no-data: "),
        (&["repair", "vote", "missing", "--yes"], 2, "error: T5302 doctor-no-data: "),
        (&["repair", "vote", "missing"], 2, "error: T1104 not-confirmed: "),
        (
            &["kv", "get", "k", "--timeout", &second, "--endpoints", &closed],
            3,
            "error: T2102 not-connected: ",
        ),
        (
            &["kv", "get", "k", "--timeout", &second, "--endpoints", &unknown],
            3,
            "error: T2101 name-unresolved: ",
        ),
        (&["preflight", "--data", "missing/data"], 1, "error: T1601 preflight-failed: 1 of 3 checks failed"),
    ] {
        let output = tripod().args(arguments).output().expect("runs");
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
        assert!(told.starts_with(text), "{arguments:?}: {told}");

        // n24: who asks for JSON is told errors as JSON, whatever is wrong.
        let output = tripod().arg("--json").args(arguments).output().expect("runs");
        let told: Value = serde_json::from_str(&stderr(&output)).expect("one object");
        check("error", &told);
        let words = format!(
            "error: {} {}: ",
            told["code"].as_str().expect("text"),
            told["slug"].as_str().expect("text")
        );
        assert!(text.starts_with(words.trim_end()), "{arguments:?}: {told}");
        assert_eq!((output.status.code(), &told["exit_code"]), (Some(code), &Value::from(code)), "{told}");
    }
    let output = tripod().args(["version"]).output().expect("runs");
    assert!(output.status.success() && output.stderr.is_empty());
    let output = tripod().arg("version").env("TRIPOD_ENDPOINT", "a:1").output().expect("runs");
    assert!(output.status.success());
    assert!(stderr(&output).contains("did you mean TRIPOD_ENDPOINTS?"), "{}", stderr(&output));
}
