//! A backup that is sealed for a recipient of age is saved, verified and restored by the command line.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use age::secrecy::ExposeSecret as _;
use age::x25519::Identity;

use crate::schemas::check;
use crate::support::{Dev, reserve_ports, stderr, tripod};

/// What nobody but a recipient is to read.
const VALUE: &str = "a value that is nobody else's business";

fn key_file(place: &Path, name: &str, identity: &Identity) -> String {
    let path = place.join(name);
    fs::write(&path, identity.to_string().expose_secret()).expect("written");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("set");
    path.display().to_string()
}

/// A command that needs no cluster.
fn command(arguments: &[&str]) -> Output {
    tripod().args(arguments).output().expect("the command runs")
}

fn refused(arguments: &[&str], code: &str) {
    let output = command(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", stderr(&output));
    assert!(stderr(&output).contains(code), "{arguments:?}: {}", stderr(&output));
}

fn json(arguments: &[&str]) -> serde_json::Value {
    let output = command(&[arguments, &["-o", "json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn restore<'a>(file: &'a str, data: &'a str) -> Vec<&'a str> {
    let line = ["snapshot", "restore", file, "--name", "n", "--node", "1", "--members", "1=127.0.0.1:1"];
    [&line[..], &["--data", data]].concat()
}

#[test]
fn a_sealed_backup_is_opened_by_its_recipient_and_by_nobody_else() {
    let place = tempfile::tempdir().expect("a directory");
    let data = tempfile::tempdir().expect("a directory");
    let ports = reserve_ports();
    let dev = Dev::start(&ports, data.path(), &[]);
    dev.text(&["kv", "put", "secret", VALUE]);
    let (ours, theirs) = (Identity::generate(), Identity::generate());
    let recipient = ours.to_public().to_string();
    let (key, wrong) = (key_file(place.path(), "key", &ours), key_file(place.path(), "wrong", &theirs));
    let path = place.path().join("b.snap.age");
    let file = path.display().to_string();
    let saved = dev.json(&["snapshot", "save", &file, "--recipient", &recipient, "-o", "json"]);
    check("snapshot save", &saved);
    let bytes = fs::read(&path).expect("readable");
    assert!(bytes.starts_with(b"age-encryption.org/v1\n"));
    assert!(!bytes.windows(VALUE.len()).any(|part| part == VALUE.as_bytes()), "it lies there in plain text");
    assert_eq!(saved["sealed"]["bytes"], bytes.len() as u64);

    refused(&["snapshot", "verify", &file], "T5106 backup-sealed");
    refused(&["snapshot", "verify", &file, "--identity", &wrong], "T5107 backup-identity");
    let whole = json(&["snapshot", "verify", &file, "--identity", &key]);
    check("snapshot verify", &whole);
    assert_eq!(whole, saved, "what was saved is what is found");
    let hash = saved["sealed"]["hash"].as_str().expect("a hash");
    let same = json(&["snapshot", "verify", &file, "--hash", hash]);
    assert_eq!((&same["sealed"], same.get("index")), (&saved["sealed"], None));
    refused(&["snapshot", "verify", &file, "--hash", "0000000000000000"], "T5101 backup-damaged");

    let target = place.path().join("restored").display().to_string();
    refused(&restore(&file, &target), "T5106 backup-sealed");
    refused(&[&restore(&file, &target)[..], &["--identity", &wrong]].concat(), "T5107 backup-identity");
    assert!(!Path::new(&target).exists(), "nothing is made");
    let restored = json(&[&restore(&file, &target)[..], &["--identity", &key]].concat());
    assert_eq!(restored["saved_index"], saved["index"]);

    let cut = place.path().join("cut.snap.age").display().to_string();
    for length in [bytes.len() - 1, bytes.len() / 2, 100] {
        fs::write(&cut, &bytes[..length]).expect("written");
        refused(&["snapshot", "verify", &cut, "--identity", &key], "T5101 backup-damaged");
    }
    let made =
        fs::read_dir(place.path()).expect("readable").map(|entry| entry.expect("an entry").file_name());
    let mut names = made.map(|name| name.to_string_lossy().into_owned());
    assert!(!names.any(|name| name.contains("partial")), "a half file is left");
}
