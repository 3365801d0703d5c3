//! `tripod dev` and the data commands, with real processes.

use serde_json::{Value, json};
use tripod_wait::until_blocking;

use crate::support::{Dev, is_alive, pid, reserve_ports, stderr, tripod};

#[test]
fn a_cluster_starts_serves_every_command_and_ends() {
    let data = tempfile::tempdir().expect("a directory");
    let ports = reserve_ports();
    let dev = Dev::start(&ports, data.path(), &["--tasks", "2"]);

    let status = until_blocking("nodes that are all well", || {
        let status = dev.status();
        let well = |node: &Value| node["state"] == "ok";
        status["nodes"].as_array().expect("nodes").iter().all(well).then_some(status)
    });
    assert_eq!(status["nodes"].as_array().expect("nodes").len(), 3);
    assert!(status["cluster_id"].as_str().is_some_and(|id| id.starts_with("dev-")), "{status}");

    let job =
        dev.json(&["job", "create", "train", "--tasks", "4", "--heartbeat-timeout", "2.5", "-o", "json"]);
    let port = |offset: u16| format!("127.0.0.1:{}", dev.port + offset);
    let addresses = [port(300), port(400), port(500)];
    let target = format!("ipv4:{}", addresses.join(","));
    let expected =
        json!({ "job": "train", "port": dev.port + 300, "addresses": addresses, "target": target });
    assert_eq!(job, expected);
    for address in &addresses {
        std::net::TcpStream::connect(address).expect("the job's port is open on every node");
    }
    let shown = dev.json(&["job", "show", "train", "--json"]);
    assert_eq!((&shown["tasks"], &shown["heartbeat_timeout_ms"]), (&json!(4), &json!(2500)));
    let for_mindspore = json!([port(10), port(20), port(30)]);
    until_blocking("ports for nodes of MindSpore", || {
        (dev.json(&["job", "show", "train", "--json"])["mindspore_addresses"] == for_mindspore).then_some(())
    });
    assert_eq!(dev.json(&["job", "show", "default", "--json"])["tasks"], 2);
    dev.text(&[
        "job",
        "create",
        "tf",
        "--members",
        "chief:1,worker:2",
        "--member",
        "worker:0=a:1",
        "--reconnect",
    ]);
    let shown = dev.json(&["job", "show", "tf", "--json"]);
    assert_eq!((&shown["tasks"], &shown["reconnect"]), (&json!(3), &json!(true)));
    assert_eq!(shown["members"], json!([{ "name": "chief", "tasks": 1 }, { "name": "worker", "tasks": 2 }]));
    assert_eq!(shown["listeners"], json!([{ "task": 1, "address": "a:1" }]));
    let shown = dev.run(&["job", "show", "train", "--xds-bootstrap"]);
    let bootstrap: Value = serde_json::from_slice(&shown.stdout).expect("nothing but JSON");
    assert_eq!(bootstrap["node"]["id"], "train");
    let server = &bootstrap["xds_servers"][0]["server_uri"];
    assert_eq!(*server, format!("ipv4:{},{},{}", port(0), port(1), port(2)));
    assert!(stderr(&shown).contains("export JAX_COORDINATOR_ADDRESS=xds:///train:1\n"), "{}", stderr(&shown));

    for node in 1..=3 {
        let endpoints = dev.endpoints(node);
        let key = format!("k{node}");
        dev.text(&["kv", "put", &key, "hello", "--endpoints", &endpoints]);
        for reader in 1..=3 {
            let value = dev.text(&["kv", "get", &key, "--endpoints", &dev.endpoints(reader)]);
            assert_eq!(value, "hello", "written through node {node}, read through node {reader}");
        }
    }
    assert_eq!(dev.json(&["kv", "list", "k", "--json"]).as_array().expect("keys").len(), 3);
    assert_eq!(dev.json(&["kv", "list", "--job", "train", "--json"]), json!([]));
    assert_eq!(dev.json(&["kv", "delete", "k1", "--json"]), json!({ "deleted": 1 }));

    dev.text(&["job", "delete", "train", "--yes"]);
    until_blocking("the job's port to close", || {
        std::net::TcpStream::connect(&addresses[0]).is_err().then_some(())
    });
    dev.end();
}

#[test]
fn a_killed_leader_is_replaced_and_status_answers_with_and_without_a_majority() {
    let data = tempfile::tempdir().expect("a directory");
    let ports = reserve_ports();
    let dev = Dev::start(&ports, data.path(), &[]);
    dev.text(&["kv", "put", "before", "1"]);
    let dead = dev.current_leader();
    dev.kill(dead);

    dev.text(&["kv", "put", "after", "2"]);
    assert_eq!(dev.text(&["kv", "get", "before"]), "1");

    let status = dev.status();
    let gone = status["nodes"].as_array().expect("nodes").iter().find(|node| node["id"] == dead);
    assert_eq!(gone.expect("still listed")["state"], "unreachable");

    // Without a majority there is no leader, and status answers still; how soon, is tested beside it.
    let second = dev.current_leader();
    dev.kill(second);
    let output = dev.run(&["status", "--json"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(told["leader"], json!(null));
    let output = dev.run(&["kv", "get", "before", "--timeout", "1"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let local = dev.text(&["kv", "get", "before", "--local"]);
    assert_eq!(local, "1");
    dev.end();
}

#[test]
fn the_same_data_is_the_same_cluster_again() {
    let data = tempfile::tempdir().expect("a directory");
    let ports = reserve_ports();
    let port = ports.first();
    let dev = Dev::start(&ports, data.path(), &["--tasks", "3"]);
    dev.text(&["kv", "put", "kept", "yes"]);
    let id = dev.status()["cluster_id"].clone();
    let incarnation = dev.json(&["job", "show", "default", "--json"])["service_incarnation"].clone();
    dev.end();

    let dev = Dev::start(&ports, data.path(), &["--tasks", "3"]);
    assert_eq!(dev.status()["cluster_id"], id);
    assert_eq!(dev.json(&["job", "show", "default", "--json"])["service_incarnation"], incarnation);
    assert_eq!(dev.text(&["kv", "get", "kept"]), "yes");

    let second = tripod().args(["dev", "--port", &port.to_string()]).output().expect("runs");
    assert_eq!(second.status.code(), Some(1));
    let expected =
        format!("error: T1401 listen-failed: cannot use 127.0.0.1:{port}, the client port of node 1: ");
    assert!(stderr(&second).starts_with(&expected), "{}", stderr(&second));
    dev.end();
}

#[test]
fn a_killed_node_comes_back_with_restart_and_leadership_moves_on_request() {
    let data = tempfile::tempdir().expect("a directory");
    let ports = reserve_ports();
    let mut dev = Dev::start(&ports, data.path(), &["--restart"]);
    // On a busy machine an heir may not take over in time, and everything stays as it was.
    let old = until_blocking("a transfer", || {
        let old = dev.current_leader();
        let to = old % 3 + 1;
        let moved = dev.run(&["leader", "transfer", "--to", &to.to_string(), "--json"]);
        let told: Value = serde_json::from_slice(&moved.stdout).ok()?;
        (told == json!({ "from": old, "leader": to })).then_some(old)
    });

    dev.kill(old);
    let line = dev.line();
    assert_eq!(line["node"], old);
    let place = usize::try_from(old - 1).expect("a small id");
    assert_ne!(pid(&line), dev.nodes[place]);
    dev.nodes[place] = pid(&line);
    until_blocking("the node to be back", || {
        let status = dev.status();
        (status["nodes"][place]["state"] == "ok").then_some(())
    });
    dev.end();
}

#[test]
fn nodes_end_with_their_parent_even_when_it_is_killed() {
    let data = tempfile::tempdir().expect("a directory");
    let ports = reserve_ports();
    let dev = Dev::start(&ports, data.path(), &[]);
    let nodes = dev.kill_parent();
    assert_eq!(nodes.len(), 3);
    until_blocking("the nodes to end", || nodes.iter().all(|pid| !is_alive(*pid)).then_some(()));
}

#[test]
fn a_cluster_ends_well_with_the_process_that_started_it() {
    let data = tempfile::tempdir().expect("a directory");
    let ports = reserve_ports();
    let dev = Dev::start(&ports, data.path(), &["--nodes", "1", "--exit-with-parent"]);
    dev.end_with_input();
}

#[test]
fn refused_commands_say_why_and_exit_with_one() {
    let data = tempfile::tempdir().expect("a directory");
    let ports = reserve_ports();
    let dev = Dev::start(&ports, data.path(), &[]);
    dev.text(&["job", "create", "taken", "--tasks", "1"]);
    dev.text(&["kv", "put", "k", "v"]);
    let long = "x".repeat(65 << 10);
    let cases: [(&[&str], &str); 10] = [
        (&["job", "create", "Bad Name", "--tasks", "1"], "`Bad Name` is no job name"),
        (&["job", "create", "", "--tasks", "1"], "`` is no job name"),
        (&["job", "create", "taken", "--tasks", "1"], "job `taken` exists already"),
        (&["job", "create", "none", "--tasks", "0"], "job parameter `tasks`"),
        (&["job", "show", "nobody"], "there is no job `nobody`"),
        (&["job", "show", "nobody", "--xds-bootstrap"], "there is no job `nobody`"),
        (&["kv", "get", "nothing"], "there is no key `nothing`"),
        (&["kv", "put", "k", "w", "--create-only"], "key `k` exists already"),
        (&["kv", "put", "k", "w", "--expected-version", "7"], "key `k` has version 1, not 7"),
        (&["kv", "put", &long, "w"], "exceeds the limit of"),
    ];
    for (arguments, expected) in cases {
        let output = dev.run(arguments);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {text}");
        assert!(text.starts_with("error: ") && text.contains(expected), "{text}");
        assert!(output.stdout.is_empty(), "data was printed for {arguments:?}");
    }
    assert_eq!(dev.text(&["kv", "get", "k"]), "v");
    dev.end();
}
