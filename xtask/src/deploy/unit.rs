//! The service of systemd, and what is installed beside it.

use std::fs;
use std::process::Command;

use super::{port, text};
use crate::cargo::root;

/// The values of a key, in order.
fn values<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    let begin = format!("{key}=");
    unit.lines().filter_map(|line| line.strip_prefix(&begin)).collect()
}

#[test]
fn a_service_has_no_rights_but_its_directory_and_its_ports() {
    let unit = text("systemd/tripod.service");
    for setting in [
        "User=tripod",
        "StateDirectory=tripod",
        "StateDirectoryMode=0700",
        "UMask=0077",
        "NoNewPrivileges=yes",
        "CapabilityBoundingSet=",
        "ProtectSystem=strict",
        "ProtectHome=yes",
        "PrivateTmp=yes",
        "PrivateDevices=yes",
        "PrivateMounts=yes",
        "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
        "RestrictNamespaces=yes",
        "LockPersonality=yes",
        "MemoryDenyWriteExecute=yes",
        "SystemCallFilter=@system-service",
        "LimitNOFILE=1048576",
        "LimitCORE=0",
        "OOMPolicy=stop",
        "Restart=on-failure",
        "KillSignal=SIGTERM",
    ] {
        assert!(unit.lines().any(|line| line == setting), "{setting}");
    }
    assert_eq!(values(&unit, "MemoryMax").len(), 1);
    assert_eq!(values(&unit, "ExecStart"), ["/usr/bin/tripod server --config /etc/tripod/server.toml"]);
}

/// Where systemd's own program is, it has the last word: below 2.0 it calls a service "OK".
#[test]
fn systemd_calls_the_service_hardened() {
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["security", "--offline=true", "--no-pager", "--threshold=20"]);
    analyze.arg(root().join("deploy/systemd/tripod.service"));
    let Ok(output) = analyze.output() else {
        eprintln!("no systemd here: only what the other tests look at was looked at");
        return;
    };
    let told = String::from_utf8_lossy(&output.stdout);
    // Releases before 250 do not know how to look at a file.
    if told.contains("Overall exposure level") {
        assert!(output.status.success(), "{}", told.lines().last().unwrap_or_default());
    }
}

#[test]
fn ports_that_are_kept_free_are_those_of_the_file_that_is_installed() {
    let settings = fs::read_to_string(root().join("docs/server.toml")).unwrap();
    let setting = |key: &str| {
        let line = settings.lines().map(|line| line.trim_start_matches('#'));
        let value = line.clone().find_map(|line| line.strip_prefix(&format!("{key} = \"")));
        value.and_then(|value| value.strip_suffix('"')).unwrap_or_else(|| panic!("no {key}")).to_owned()
    };
    let mut ports: Vec<String> = ["client", "peer", "http"].map(|key| port(&setting(key)).to_string()).into();
    ports.push(setting("job-ports"));
    let line = format!("net.ipv4.ip_local_reserved_ports = {}", ports.join(","));
    assert_eq!(
        text("systemd/tripod.sysctl").lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>(),
        [line]
    );
}

#[test]
fn user_and_directory_are_those_of_the_service() {
    let unit = text("systemd/tripod.service");
    let [user] = values(&unit, "User")[..] else { panic!("one user") };
    let rule = |file: &str| {
        let text = text(file);
        text.lines().find(|line| !line.starts_with('#')).expect("a rule").to_owned()
    };
    assert!(rule("systemd/tripod.sysusers").starts_with(&format!("u {user} ")));
    let mode = values(&unit, "StateDirectoryMode")[0];
    assert_eq!(rule("systemd/tripod.tmpfiles"), format!("d /var/lib/{user} {mode} {user} {user} -"));
}
