//! A node that is started from a file.

use std::path::Path;
use std::process::Output;

use tripod_processes::cluster::NodeProcess;
use tripod_wait::until_blocking;

use crate::support::{reserve_ports, seconds, stderr, tripod};

/// What remains of a start that is refused.
fn refused(file: &Path) -> Output {
    tripod().args(["server", "--exit-with-parent", "--config"]).arg(file).output().expect("runs")
}

#[test]
fn a_node_started_from_a_file_serves_and_flags_win() {
    let ports = reserve_ports();
    let address = |offset: u16| format!("127.0.0.1:{}", ports.first() + offset);
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("server.toml");
    let text = format!(
        "node = 1\ndata = {:?}\nclient = \"{}\"\npeer = \"{}\"\nhttp = \"{}\"\ninitial = \"1={}\"\n\
         job-ports = \"{}-{}\"\ntasks = 5\nheartbeat-timeout = 2.5\n",
        folder.path().join("data"),
        address(9),
        address(1),
        address(2),
        address(1),
        ports.first() + 10,
        ports.first() + 19,
    );
    std::fs::write(&file, text).expect("written");
    let mut command = tripod();
    command.args(["server", "--exit-with-parent", "--client", &address(0), "--config"]).arg(&file);
    let log = folder.path().join("log");
    let mut node = NodeProcess::spawn("node 1", command, &log).expect("it starts");

    let job = until_blocking("job default", || {
        assert!(node.is_running(), "{}", node.log_tail());
        let show =
            ["job", "show", "default", "--json", "--timeout", &seconds(1.0), "--endpoints", &address(0)];
        let output = tripod().args(show).output().expect("runs");
        let job = serde_json::from_slice::<serde_json::Value>(&output.stdout).ok()?;
        // The job is there before its gateway has told where it listens.
        job["addresses"].as_array().is_some_and(|told| !told.is_empty()).then_some(job)
    });
    assert_eq!((&job["tasks"], &job["heartbeat_timeout_ms"]), (&5.into(), &2500.into()));
    assert_eq!(job["addresses"], serde_json::json!([address(0)]), "the flag wins");
}

#[test]
fn a_bad_file_is_refused_with_one_line_that_names_file_and_key() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("server.toml");
    let least = "data = \"d\"\nclient = \"127.0.0.1:1\"\npeer = \"127.0.0.1:2\"\nhttp = \"127.0.0.1:3\"\ninitial = \"1=a:2\"\n";
    let cases = [
        ("node = 1\nnode = 2\n", "line 2 is not valid TOML: duplicate key"),
        ("node = \n", "line 1 is not valid TOML"),
        ("nodes = 1\n", "there is no key `nodes`; the nearest is `node`;"),
        ("config = \"other.toml\"\n", "there is no key `config`"),
        ("exit-with-parent = true\n", "there is no key `exit-with-parent`"),
        ("[server]\nnode = 1\n", "there is no key `server`"),
        ("node = 0\n", "node = 0 is not legal as ID: 0 is not in 1.."),
        (
            "node = 1\nelection-min-ms = \"1s\"\n",
            "election-min-ms = \"1s\" is not legal as MS: invalid digit found in string",
        ),
        (
            "node = 1\njob-ports = \"1-99999\"\n",
            "job-ports = \"1-99999\" is not legal as FIRST-LAST: `99999` is no port",
        ),
        (
            "node = 1\nshutdown-timeout = \"soon\"\n",
            "shutdown-timeout = \"soon\" is not legal as SECONDS: not a number of seconds",
        ),
        ("node = 1\ntasks = \"\"\"1\n2\"\"\"\n", "is not legal as N: "),
        ("", "`node` (ID) missing"),
        ("node = 2\n", "node 2 is not in --initial 1=a:2"),
        (
            "node = 1\nheartbeat-timeout = 0.05\n",
            "heartbeat-timeout = 0.05 is not legal as SECONDS: must be 1 to ",
        ),
        ("node = 1\nregister-timeout = 99999999\n", "job `default`: "),
    ];
    for (text, expected) in cases {
        std::fs::write(&file, format!("{text}{least}")).expect("written");
        let output = refused(&file);
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{text:?}: {told}");
        assert!(told.starts_with("error: ") && told.lines().count() == 1, "{text:?}: {told}");
        assert!(told.contains(expected), "{text:?}: {told}");
    }

    let missing = folder.path().join("missing.toml");
    let output = refused(&missing);
    assert_eq!(output.status.code(), Some(2));
    let expected =
        format!("error: T1201 config-unreadable: --config {}: cannot be read: ", missing.display());
    assert!(stderr(&output).starts_with(&expected), "{}", stderr(&output));
}
