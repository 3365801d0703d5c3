//! Tokens of three nodes with TLS, by the command line.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Output, Stdio};

use serde_json::Value;
use tripod_wait::until_blocking;

use crate::schemas::check;
use crate::site::{NODES, Site};
use crate::support::{reserve_ports, stderr, tripod};

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

fn bootstrap(site: &Site<'_>, data: &str, more: &[&str]) -> Output {
    let mut command = tripod();
    command.args(["auth", "bootstrap", "--data", data]).args(more).current_dir(site.file(""));
    command.output().expect("runs")
}

/// A command with the operator's certificate, and the token of a file.
fn with(site: &Site<'_>, file: &str, arguments: &[&str]) -> Output {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--token-file", file]).collect();
    site.run(Some("ann"), &arguments)
}

/// A service that is ended with this.
struct Running(Child);

impl Running {
    /// With the roots of the nodes and a token, and no certificate; what it says goes to a file.
    fn start(site: &Site<'_>, token: &str, said: &str, arguments: &[&str]) -> Self {
        let endpoints = NODES.map(|node| site.address(node, 0)).join(",");
        let child = tripod()
            .args(arguments)
            .args(["--tls-dir", "bare", "--token-file", token, "--exit-with-parent", "--json"])
            .env("TRIPOD_ENDPOINTS", endpoints)
            .current_dir(site.file(""))
            .stdin(Stdio::piped())
            .stdout(File::create(site.file(said)).expect("made"))
            .spawn();
        Self(child.expect("starts"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn s30_an_agent_and_a_store_that_have_only_a_token_act_for_their_job() {
    let (place, ports) = (tempfile::tempdir().expect("a directory"), reserve_ports());
    let mut site = Site::new(&ports, place.path());
    for node in NODES {
        site.start(node, &["--tls-dir", &format!("n{node}"), "--authorise=enforce"]);
    }
    site.works(Some("ann"), "first");
    fs::create_dir(site.file("bare")).expect("made");
    fs::copy(site.file("ann/ca.crt"), site.file("bare/ca.crt")).expect("copied");
    for kind in ["agent", "store"] {
        let file = format!("{kind}.token");
        let make = ["auth", "token", "create", kind, "--job", "train", "--out", &file];
        let made = site.run(Some("ann"), &make);
        assert!(made.status.success(), "{}", stderr(&made));
    }
    let agent = ["agent", "--listen", "127.0.0.1:0", "--job", "train", "--tasks", "2"];
    let _agent = Running::start(&site, "agent.token", "said-agent", &agent);
    until_blocking("the agent to create its job", || {
        let shown = site.run(Some("ann"), &["job", "show", "train"]);
        shown.status.success().then_some(())
    });
    let store = ["objstore", "--job", "train", "--directory", "objects"];
    let _store = Running::start(&site, "store.token", "said-store", &store);
    until_blocking("the store to register", || {
        let said = fs::read_to_string(site.file("said-store")).ok()?;
        let told: Value = serde_json::from_str(said.lines().next()?).ok()?;
        told["store"].as_u64()
    });
}

#[test]
fn the_first_token_is_made_on_a_nodes_machine_and_makes_others() {
    let (place, ports) = (tempfile::tempdir().expect("a directory"), reserve_ports());
    let mut site = Site::new(&ports, place.path());
    site.start_strict();
    site.works(Some("ann"), "first");

    let nowhere = bootstrap(&site, "nowhere", &[]);
    assert!(stderr(&nowhere).contains("T1535 token-bootstrap"), "{}", stderr(&nowhere));
    let made = json(&bootstrap(&site, "data-1", &["--name", "alice", "--out", "alice.token", "-o", "json"]));
    check("auth bootstrap", &made);
    assert_eq!(mode(&site.file("alice.token")), 0o600);
    let text = fs::read_to_string(site.file("alice.token")).expect("written");
    assert!(text.starts_with("trp_operator_"), "its form");
    let again = bootstrap(&site, "data-2", &["--out", "again.token"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("T1535") && stderr(&again).contains("alice"), "{}", stderr(&again));
    assert!(!site.file("again.token").exists(), "a file without a token does not stay");

    let agent = ["auth", "token", "create", "agent", "--job", "train", "--lifetime", "12h", "-o", "json"];
    let agent = json(&with(&site, "alice.token", &agent));
    check("auth token create", &agent);
    let id = agent["id"].as_str().expect("an id");
    let printed = with(&site, "alice.token", &["auth", "token", "create", "viewer", "--name", "bob"]);
    let viewer = String::from_utf8(printed.stdout).expect("text");
    assert_eq!(viewer.lines().count(), 1, "the token, alone");
    assert!(viewer.starts_with("trp_viewer_"));

    let list = json(&with(&site, "alice.token", &["auth", "token", "list", "-o", "json"]));
    check("auth token list", &list);
    let tokens = list["tokens"].as_array().expect("a list");
    assert_eq!(tokens.len(), 3);
    let of_agent = tokens.iter().find(|token| token["id"] == id).expect("it is listed");
    assert_eq!(
        of_agent["by"], "operator/alice",
        "who bears the token that the call shows made it, whatever the certificate and the call say"
    );
    let secret = text.split('_').nth(3).expect("the fourth part");
    assert!(!list.to_string().contains(secret));

    let revoked = json(&with(&site, "alice.token", &["auth", "token", "revoke", id, "-o", "json"]));
    check("auth token revoke", &revoked);
    // Whichever node answers.
    until_blocking("every node to know of it", || {
        let list = with(&site, "alice.token", &["auth", "token", "list"]);
        let text = String::from_utf8_lossy(&list.stdout).into_owned();
        text.lines().any(|line| line.starts_with(id) && line.contains("revoked by")).then_some(())
    });
    // Neither logs nor data have a secret.
    for node in [1, 2, 3] {
        assert!(!site.log(node).contains(secret) && !site.log(node).contains("trp_"), "node {node}");
    }
    for entry in fs::read_dir(site.file("data-1")).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_file() {
            let bytes = fs::read(&path).expect("readable");
            assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()), "{}", path.display());
        }
    }
}

#[test]
fn s31_who_bears_a_token_may_what_it_proves_on_every_node_until_it_is_revoked() {
    let (place, ports) = (tempfile::tempdir().expect("a directory"), reserve_ports());
    let mut site = Site::new(&ports, place.path());
    for node in NODES {
        site.start(node, &["--tls-dir", &format!("n{node}"), "--authorise=enforce"]);
    }
    site.works(Some("ann"), "first");
    json(&bootstrap(&site, "data-1", &["--name", "alice", "--out", "alice.token", "-o", "json"]));
    let viewer = ["auth", "token", "create", "viewer", "--name", "bob", "--out", "bob.token", "-o", "json"];
    let viewer = json(&with(&site, "alice.token", &viewer));
    let id = viewer["id"].as_str().expect("an id");

    let listed = with(&site, "bob.token", &["member", "list"]);
    assert!(listed.status.success(), "{}", stderr(&listed));
    // Nor is a certificate needed.
    fs::create_dir(site.file("bare")).expect("made");
    fs::copy(site.file("ann/ca.crt"), site.file("bare/ca.crt")).expect("copied");
    let listed = site.run(Some("bare"), &["member", "list", "--token-file", "bob.token"]);
    assert!(listed.status.success(), "{}", stderr(&listed));
    let nobody = site.run(Some("bare"), &["member", "list"]);
    assert!(stderr(&nobody).contains("T1511 tls-file"), "{}", stderr(&nobody));

    let put = with(&site, "bob.token", &["kv", "put", "key", "second"]);
    assert_eq!(put.status.code(), Some(1), "the certificate of an operator does not help: {}", stderr(&put));
    let made = with(&site, "bob.token", &["auth", "token", "create", "operator", "--name", "bob"]);
    assert_eq!(made.status.code(), Some(1), "S32: {}", stderr(&made));
    let got = site.run(Some("ann"), &["kv", "get", "key"]);
    assert_eq!(String::from_utf8_lossy(&got.stdout).trim(), "first");

    json(&with(&site, "alice.token", &["auth", "token", "revoke", id, "-o", "json"]));
    for node in NODES {
        let address = site.address(node, 0);
        let refused = until_blocking(format!("node {node} to refuse it"), || {
            let listed = with(&site, "bob.token", &["member", "list", "--endpoints", &address]);
            (!listed.status.success()).then(|| stderr(&listed))
        });
        assert!(refused.contains("T1532 token-refused"), "{refused}");
        let log = site.log(node);
        assert!(log.contains("a token was refused") && log.contains("revoked"), "node {node}: {log}");
    }
}

#[test]
fn s30_a_token_that_others_may_read_is_not_used_and_none_is_shown_in_plain_text() {
    let (place, ports) = (tempfile::tempdir().expect("a directory"), reserve_ports());
    let site = Site::new(&ports, place.path());
    let token = site.file("a.token");
    fs::write(&token, "trp_viewer_x\n").expect("written");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).expect("set");
    let refused = with(&site, "a.token", &["kv", "get", "key"]);
    assert_eq!(refused.status.code(), Some(1));
    let text = stderr(&refused);
    assert!(text.contains("T1531 token-file") && text.contains("chmod 600"), "{text}");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("set");
    let refused = with(&site, "a.token", &["kv", "get", "key"]);
    assert!(stderr(&refused).contains("it does not hold a token"), "{}", stderr(&refused));

    // No node runs: what is made is printed, and the node takes the word when it starts.
    fs::create_dir(site.file("d")).expect("made");
    fs::write(site.file("d/identity.json"), "{}").expect("written");
    let made = bootstrap(&site, "d", &["--timeout", "0.2", "--out", "b.token"]);
    assert!(made.status.success(), "{}", stderr(&made));
    assert_eq!(mode(&site.file("d/auth-bootstrap.json")), 0o600);
    let plain = site.run(None, &["kv", "get", "key", "--token-file", "b.token"]);
    assert!(stderr(&plain).contains("T1534 token-plain"), "{}", stderr(&plain));
    assert!(stderr(&made).contains("b.token is kept"), "{}", stderr(&made));
    let again = bootstrap(&site, "d", &["--timeout", "0.2", "--out", "again.token"]);
    assert!(stderr(&again).contains("was asked for before"), "{}", stderr(&again));
    assert!(!site.file("again.token").exists(), "nobody was asked for that one");
    let word = site.file("d/auth-bootstrap.json");
    fs::remove_file(&word).expect("removed");

    // One that is killed while it waits leaves the token whose hash may be taken by then.
    let mut waiting = tripod();
    waiting.args(["auth", "bootstrap", "--data", "d", "--timeout", "60", "--out", "c.token"]);
    let mut waiting = waiting.current_dir(site.file("")).spawn().expect("starts");
    until_blocking("what it asks for", || word.exists().then_some(()));
    waiting.kill().expect("killed");
    waiting.wait().expect("waited");
    let asked: Value = serde_json::from_slice(&fs::read(&word).expect("readable")).expect("JSON");
    let kept = fs::read_to_string(site.file("c.token")).expect("written");
    assert_eq!(kept.split('_').nth(2), asked["id"].as_str(), "the token that was asked for");
    assert!(kept.starts_with("trp_operator_") && kept.ends_with('\n'), "whole");
}
