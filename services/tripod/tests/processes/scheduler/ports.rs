//! Workers whose port somebody else has: the scheduler counts ports, and the system gives the same ones to connections
//! that go out.

use std::future::pending;
use std::net::TcpListener;

use tripod_wait::until_blocking;
use tripod_worker::{Worker, demo};

use super::heard;
use super::site::Site;

/// The port of the first worker of a host.
const FIRST_PORT: u16 = 40_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_port_is_taken_asks_for_another_one_and_says_why() {
    heard::listen();
    let data = tempfile::tempdir().expect("a directory");
    let site = Site::start(data.path(), 1, 0);
    let host = &site.machines[0].host;
    let taken = [FIRST_PORT, FIRST_PORT + 1].map(|port| TcpListener::bind((&**host, port)).expect("free"));
    tokio::spawn(demo::add_to(Worker::new(site.config(0))).run(pending()));
    site.until_workers(1);
    // One that has left tells that beside everything else.
    let status = until_blocking("the others to have left", || {
        let status = site.status();
        let left = |worker: &serde_json::Value| {
            worker["state"] == "idle" || worker["state"] == "dead" && worker["reason"] == "it left"
        };
        status["workers"].as_array().expect("a list").iter().all(left).then_some(status)
    });
    let workers = status["workers"].as_array().expect("a list");
    let place = |worker: &serde_json::Value| {
        (worker["state"].as_str().map(str::to_owned), worker["address"].as_str().map(str::to_owned))
    };
    let of = |state: &str, port: u16| (Some(state.to_owned()), Some(format!("{host}:{port}")));
    let idle: Vec<_> = workers.iter().filter(|worker| worker["state"] == "idle").map(place).collect();
    assert_eq!(idle, [of("idle", FIRST_PORT + 2)], "{status:#}");
    for listener in taken {
        let address = listener.local_addr().expect("bound").to_string();
        let told = heard::lines_with(&[&address, "Address already in use"]);
        assert_eq!(told.len(), 1, "{told:?}");
    }
}
