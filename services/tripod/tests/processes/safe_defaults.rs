//! Nothing is open to other machines in plain text unless somebody said so. Numbers as in `s52` are those of the table of
//! attacks on connections.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;
use tripod_processes::cluster::ReservedPorts;
use tripod_wait::until_blocking;

use crate::support::{Dev, reserve_ports, send, stderr, tripod};

/// An address that no machine has: what would listen there ends with another code.
const ELSEWHERE: &str = "203.0.113.9";

/// A node alone, at these hosts.
fn server(ports: &ReservedPorts, data: &Path, [client, peer, http]: [&str; 3]) -> Command {
    let address = |host: &str, offset: u16| format!("{host}:{}", ports.first() + offset);
    let mut command = tripod();
    command.args(["server", "--exit-with-parent", "--node=1", "--advertise=127.0.0.1", "--data"]).arg(data);
    command.args([
        &format!("--client={}", address(client, 0)),
        &format!("--peer={}", address(peer, 100)),
        &format!("--http={}", address(http, 200)),
        &format!("--initial=1={}", address("127.0.0.1", 100)),
        &format!("--job-ports={}-{}", ports.first() + 300, ports.first() + 309),
    ]);
    command
}

fn refused(output: &Output, ports: &[String]) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("error: T1541 plain-text: other machines could use "), "{text}");
    assert!(text.contains("--insecure"), "{text}");
    for port in ports {
        assert!(text.contains(port), "{port} is not named: {text}");
    }
}

/// Whether nobody listens at the ports of a node, on any address.
fn nothing_listens(ports: &ReservedPorts) -> bool {
    [0, 100, 200, 300]
        .iter()
        .all(|offset| TcpListener::bind((Ipv4Addr::UNSPECIFIED, ports.first() + offset)).is_ok())
}

#[test]
fn s52_a_node_opens_nothing_to_other_machines_in_plain_text() {
    let ports = reserve_ports();
    let data = tempfile::tempdir().expect("a directory");
    let data = data.path().join("d");
    let here = "127.0.0.1";
    let first = ports.first();
    for (hosts, named) in [
        ([ELSEWHERE, here, here], vec![format!("--client {ELSEWHERE}:{first}")]),
        ([here, "0.0.0.0", here], vec![format!("--peer 0.0.0.0:{}", first + 100)]),
        ([here, here, "[::]"], vec![format!("--http [::]:{}", first + 200)]),
        (["0.0.0.0"; 3], vec!["--client".into(), "--peer".into(), "--http".into()]),
    ] {
        let output = server(&ports, &data, hosts).output().expect("runs");
        refused(&output, &named);
        assert!(stderr(&output).contains("add --tls-dir, or --insecure"), "{}", stderr(&output));
        assert!(nothing_listens(&ports) && !data.exists(), "{hosts:?}: something was opened or made");
    }
    // The page's own port is one of them.
    let mut page = server(&ports, &data, [here; 3]);
    let output = page.arg("--ui").arg(format!("{ELSEWHERE}:{}", first + 201)).output().expect("runs");
    refused(&output, &[format!("--ui {ELSEWHERE}:{}", first + 201)]);
    // By the environment as by flags, and a flag wins.
    let says = |variable: &str, flag: &[&str]| {
        server(&ports, &data, [ELSEWHERE, here, here])
            .env("TRIPOD_INSECURE", variable)
            .args(flag)
            .output()
            .expect("runs")
    };
    for (variable, flag) in [("false", &[] as &[&str]), ("", &[]), ("true", &["--insecure=false"])] {
        refused(&says(variable, flag), &[]);
    }
    for (variable, flag) in [("true", &[] as &[&str]), ("false", &["--insecure"])] {
        let text = stderr(&says(variable, flag));
        assert!(text.contains("T1401 listen-failed: cannot listen on --client"), "it is let through: {text}");
    }
}

#[test]
fn s52_certificates_are_no_excuse_for_a_port_that_takes_plain_text() {
    let ports = reserve_ports();
    let place = tempfile::tempdir().expect("a directory");
    let pki = |arguments: &[&str]| {
        let output = tripod().arg("pki").args(arguments).current_dir(place.path()).output().expect("runs");
        assert!(output.status.success(), "{}", stderr(&output));
    };
    pki(&["init", "ca", "--cluster", "prod"]);
    pki(&["node", "n1", "--ca", "ca", "--host", ELSEWHERE, "--out", "n1"]);
    let tls = place.path().join("n1").display().to_string();
    let start = |flags: &[&str]| {
        let mut command = server(&ports, &place.path().join("d"), [ELSEWHERE; 3]);
        command.args(["--tls-dir", &tls]).args(flags).output().expect("runs")
    };
    let text = stderr(&start(&[]));
    assert!(
        text.contains("T1401 listen-failed: cannot listen on --client"),
        "protected ports are refused: {text}"
    );
    for (flag, port) in
        [("--client-tls=off", "--client"), ("--peer-tls=permissive", "--peer"), ("--http-tls=off", "--http")]
    {
        refused(&start(&[flag]), &[port.to_owned()]);
    }
}

#[test]
fn s52_object_stores_and_workers_do_not_serve_other_machines_either() {
    for (line, port) in [
        (&["objstore", "--listen", "203.0.113.9:0"][..], "--listen 203.0.113.9:0"),
        (&["objstore", "--listen", "0.0.0.0:0", "--advertise", "127.0.0.1:1"], "--listen 0.0.0.0:0"),
        (&["worker", "--host", ELSEWHERE], "--host 203.0.113.9"),
    ] {
        let output = tripod().args(line).output().expect("runs");
        refused(&output, &[port.to_owned()]);
    }
    let place = tempfile::tempdir().expect("a directory");
    let mut meant = tripod();
    meant.args(["objstore", "--listen", "203.0.113.9:0", "--directory"]).arg(place.path().join("objects"));
    let text = stderr(&meant.env("TRIPOD_INSECURE", "true").output().expect("runs"));
    assert!(!text.contains("T1541"), "{text}");
}

#[test]
fn s52_a_local_cluster_has_no_other_host() {
    for flag in ["--host", "--client", "--listen"] {
        let output = tripod().args(["dev", flag, "0.0.0.0"]).output().expect("runs");
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    }
    // What the environment says of nodes does not move it, and does not open it; nor does a file that it names.
    let ports = reserve_ports();
    let [data, place] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let anywhere = |offset: u16| format!("0.0.0.0:{}", ports.first() + offset);
    let file = place.path().join("server.toml");
    std::fs::write(&file, format!("ui = \"{}\"\ninsecure = true\n", anywhere(210))).expect("written");
    let variables = [
        ("TRIPOD_CLIENT", anywhere(0)),
        ("TRIPOD_PEER", anywhere(100)),
        ("TRIPOD_HTTP", anywhere(200)),
        ("TRIPOD_UI", anywhere(210)),
        ("TRIPOD_INSECURE", "true".to_owned()),
        ("TRIPOD_CONFIG", file.display().to_string()),
    ];
    let dev = Dev::start_with(&ports, data.path(), &[], &variables);
    for offset in [0, 210] {
        let other = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 7), ports.first() + offset));
        assert!(TcpStream::connect(other).is_err(), "a node serves at another address than 127.0.0.1");
    }
    let status = dev.status();
    assert_eq!(status["nodes"][0]["insecure"], false, "{status}");
    dev.end();
}

/// A node that runs and is ended with this value.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn s52_whoever_is_insecure_says_so_in_its_log_status_and_metric() {
    let ports = reserve_ports();
    let place = tempfile::tempdir().expect("a directory");
    let log = place.path().join("log");
    let mut command = server(&ports, &place.path().join("d"), ["0.0.0.0", "127.0.0.1", "127.0.0.1"]);
    let log_file = std::fs::File::create(&log).expect("made");
    let mut node =
        Node(command.arg("--insecure").stdin(Stdio::piped()).stderr(log_file).spawn().expect("starts"));
    let client = format!("127.0.0.1:{}", ports.first());
    let run = |arguments: &[&str]| {
        tripod().args(arguments).env("TRIPOD_ENDPOINTS", &client).output().expect("runs")
    };
    let json: Value = until_blocking("a node that leads", || {
        let output = run(&["status", "--json"]);
        output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("JSON"))
    });
    assert_eq!(json["nodes"][0]["insecure"], true, "{json}");
    let text = String::from_utf8(run(&["status"]).stdout).expect("UTF-8");
    assert!(
        text.contains("insecure: node 1 may be used in plain text from other machines (--insecure)"),
        "{text}"
    );
    let http = format!("127.0.0.1:{}", ports.first() + 200);
    assert!(page(&http, "/metrics").contains("\ntripod_insecure 1\n"));
    assert!(page(&http, "/status").contains("\"insecure\":true"));
    let log = std::fs::read_to_string(&log).expect("a log");
    assert!(log.lines().any(|line| line.contains("node is up") && line.contains("insecure=true")), "{log}");
    send(node.0.id(), Signal::SIGTERM);
    assert!(node.0.wait().expect("waited").success());
}

/// A page of the http port.
fn page(address: &str, path: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}

#[test]
fn a_variable_for_certificates_that_is_empty_is_none() {
    // Nobody listens there: that is what is told, and nothing of files.
    let output = tripod().args(["status", "--endpoints", "127.0.0.1:1"]).env("TRIPOD_TLS_DIR", "").output();
    let text = stderr(&output.expect("runs"));
    assert!(!text.contains("tls") && !text.contains("T1101"), "{text}");
    let flag = tripod().args(["status", "--endpoints", "127.0.0.1:1", "--tls-dir="]).output().expect("runs");
    assert_eq!(flag.status.code(), Some(2), "a flag without a value is a mistake: {}", stderr(&flag));
}
