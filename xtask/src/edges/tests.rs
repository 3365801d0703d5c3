//! What the table allows, and what it does not.

use serde_json::json;

use super::*;

fn one(from: &str, to: &str, kind: Option<&str>) -> Value {
    let ours = OURS.iter().map(|ours| ours.package);
    let known = ours.chain(FRONT_ENDS.iter().map(|front_end| front_end.package));
    let mut packages: Vec<Value> = known
        .filter(|package| *package != from)
        .map(|package| json!({"name": package, "dependencies": []}))
        .collect();
    packages.push(json!({"name": from, "dependencies": [{"name": to, "kind": kind}]}));
    json!({ "packages": packages })
}

fn refused(from: &str, to: &str, kind: Option<&str>) {
    let error = check(&one(from, to, kind)).expect_err(&format!("{from} -> {to} must be refused"));
    assert!(error.to_string().contains(&format!("{from} -> {to}")), "{error}");
}

fn allowed(from: &str, to: &str, kind: Option<&str>) {
    check(&one(from, to, kind)).unwrap();
}

#[test]
fn front_ends_and_clients_never_see_raft() {
    for package in ["tripod-coordination", "tripod-native", "tripod-web", "tripod-client"] {
        refused(package, "tripod-raft", None);
        refused(package, "tripod-raft", Some("dev"));
    }
    allowed("tripod-gateway", "tripod-raft", None);
    refused("tripod-coordination", "tripod-ray", None);
    refused("tripod-agent", "tripod-coordination", None);
    refused("tripod-client", "tripod-gateway", None);
    refused("tripod-native", "tripod-client", None);
    allowed("tripod-native", "tripod-client", Some("dev"));
}

#[test]
fn agents_stand_on_the_port_alone() {
    for package in ["tripod-coordination", "tripod-gateway", "tripod-raft", "tripod-state"] {
        refused("tripod-agent", package, None);
        refused("tripod-port", package, None);
    }
    allowed("tripod-agent", "tripod-port", None);
    // Frames are common to who serves them and who passes them on, and what they mean is not.
    for package in ["tripod-agent", "tripod-mindspore"] {
        allowed(package, "tripod-mindspore-wire", None);
    }
    refused("tripod-agent", "tripod-mindspore", None);
    refused("tripod-ray", "tripod-mindspore-wire", None);
    allowed("tripod-mars", "tripod-tile", None);
    refused("tripod-ray", "tripod-tile", None);
    // Figures and findings judge by one function whether members can be changed.
    for package in ["tripod-native", "tripod-web"] {
        allowed(package, "tripod-sight", None);
    }
    refused("tripod-gateway", "tripod-sight", None);
}

#[test]
fn nothing_builds_on_the_binary() {
    for package in ["tripod-native", "tripod-chaos", "tripod-tests"] {
        refused(package, "tripod", None);
    }
    refused("tripod", "tripod-chaos", None);
    refused("tripod", "tripod-processes", None);
}

#[test]
fn storage_and_codec_stay_in_raft() {
    for library in ["openraft", "sled", "bincode"] {
        refused("tripod-gateway", library, None);
        refused("tripod-tests", library, Some("dev"));
        allowed("tripod-raft", library, None);
    }
    allowed("tripod-state", "bincode", Some("dev"));
    refused("tripod-state", "bincode", None);
}

#[test]
fn state_is_pure() {
    for library in ["tokio", "rand", "tonic", "tracing", "sled"] {
        refused("tripod-state", library, None);
    }
    refused("tripod-state", "tripod-proto", Some("dev"));
    refused("xtask", "tonic", None);
    allowed("tripod-state", "imbl", None);
}

#[test]
fn only_tests_wait() {
    allowed("tripod-raft", "tripod-wait", Some("dev"));
    refused("tripod-raft", "tripod-wait", None);
    allowed("tripod-chaos", "tripod-wait", None);
}

#[test]
fn an_unknown_crate_must_enter_the_table() {
    let error = check(&json!({"packages": [{"name": "tripod-new", "dependencies": []}]})).unwrap_err();
    assert!(error.to_string().contains("tripod-new is not in xtask/src/edges/table.rs"), "{error}");
}
