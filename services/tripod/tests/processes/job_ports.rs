//! Somebody else listens where a job's port should be.

use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};
use tripod_wait::until_blocking;

use crate::support::{Dev, reserve_ports, stderr};

#[test]
fn a_job_port_that_is_taken_is_told_left_out_and_opened_when_it_is_free() {
    let ports = reserve_ports();
    let data = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(&ports, data.path(), &[]);
    let address = |offset: u16| format!("127.0.0.1:{}", dev.port + offset);
    let foreign = TcpListener::bind(address(300)).expect("the first job port of node 1 is free");

    let created = dev.run(&["job", "create", "train", "--tasks", "2", "--json"]);
    let said = stderr(&created);
    assert!(created.status.success(), "{said}");
    let begin =
        format!("warning: node 1 cannot open {} for job `train`: Address already in use", address(300));
    assert!(said.starts_with(&begin) && said.lines().count() == 1, "{said}");
    let port = format!("(`ss -ltnp 'sport = :{}'` on that machine shows who listens)", dev.port + 300);
    assert!(said.contains(&port) && said.trim_end().ends_with("the address is left out"), "{said}");
    let printed: Value = serde_json::from_slice(&created.stdout).expect("JSON");
    assert_eq!(printed["addresses"], json!([address(400), address(500)]));
    assert_eq!(printed["target"], format!("ipv4:{},{}", address(400), address(500)));
    assert_eq!(printed["port"], dev.port + 400);

    let status = dev.status();
    let closed = &status["nodes"][0]["closed_job_ports"];
    assert_eq!((&closed[0]["job"], &closed[0]["address"]), (&json!("train"), &json!(address(300))));
    assert!(status["nodes"][1].get("closed_job_ports").is_none(), "{status}");
    let table = dev.status_of_a_led_cluster();
    let wrong: Vec<_> = table.lines().filter(|line| line.contains("cannot open")).collect();
    assert_eq!(wrong.len(), 1, "{table}");
    assert!(wrong[0].starts_with(&format!("node 1 cannot open {}", address(300))), "{table}");

    drop(foreign);
    let shown = until_blocking("node 1 to open the port", || {
        let shown = dev.json(&["job", "show", "train", "--json"]);
        (shown["addresses"].as_array()?.len() == 3).then_some(shown)
    });
    assert_eq!(shown["addresses"][0], address(300));
    TcpStream::connect(address(300)).expect("the port is open");
    assert!(!dev.status_of_a_led_cluster().contains("cannot open"));
    dev.end();
}
