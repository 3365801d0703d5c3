//! S44: the ports of workers and object stores obey the nodes of their cluster, and processes of their job as far as the table says.

use std::fs::{self, File};
use std::process::{Child, Stdio};

use nix::sys::signal::Signal;
use prost::Message as _;
use serde_json::Value;
use tripod_proto::ray as ray_wire;
use tripod_proto::tripod::v1 as wire;
use tripod_tls::Port;
use tripod_wait::{until_async, until_blocking};

use super::dialled::{Call, Dialled};
use super::{call, certify_everybody, client, create_jobs, runtime};
use crate::site::{NODES, Site};
use crate::support::{reserve_ports, send, stderr, tripod};

/// A process of the job `own`, whose certificate is in the directory of that name.
struct Started(Child);

impl Started {
    fn new(site: &Site<'_>, name: &str, arguments: &[&str]) -> Self {
        let endpoints = NODES.map(|node| site.address(node, 0)).join(",");
        let log = File::create(site.file(&format!("log-{name}"))).expect("made");
        let said = File::create(site.file(&format!("said-{name}"))).expect("made");
        let child = tripod()
            .args(arguments)
            .args(["--job", "own", "--tls-dir", name, "--port-tls", "strict", "--exit-with-parent", "--json"])
            .env("TRIPOD_ENDPOINTS", endpoints)
            .current_dir(site.place)
            .stdin(Stdio::piped())
            .stdout(said)
            .stderr(log)
            .spawn();
        Self(child.expect("starts"))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How a call of one with that certificate ended, made to a port of that kind; `None`: the connection was refused.
async fn code(site: &Site<'_>, address: &str, port: Port, who: &str, made: Call<'_>) -> Option<i32> {
    let dialled = Dialled::to(address, port, &site.file(who)).await.ok()?;
    dialled.call(made).await.code
}

#[test]
fn s44_a_store_and_a_worker_obey_nodes_and_tell_their_own_job_what_the_table_says() {
    let (place, ports) = (tempfile::tempdir().expect("a directory"), reserve_ports());
    let mut site = Site::new(&ports, place.path());
    certify_everybody(&site);
    for kind in ["store", "driver"] {
        site.pki(&["job", "other", kind, "--ca", "ca", "--out", &format!("other-{kind}")]);
    }
    // By these a store's certificate is judged; nodes, stores and workers have them.
    for who in ["ann", "driver", "task", "other-driver"] {
        let roots = format!("{who}/client-ca.crt");
        fs::copy(site.file("n1/client-ca.crt"), site.file(&roots)).expect("copied");
    }
    for node in NODES {
        let directory = format!("n{node}");
        let flags = ["--tls-dir", &directory, "--authorise=enforce", "--worker-tls=strict"];
        site.start(node, &flags);
    }
    site.works(Some("ann"), "first");
    create_jobs(&site, "ann");

    let refused = site.run(Some("driver"), &["objstore", "--job", "own", "--port-tls", "strict"]);
    assert!(stderr(&refused).contains("T1511 tls-file"), "it is no store's: {}", stderr(&refused));
    let store_process = Started::new(&site, "store", &["objstore", "--directory", "objects"]);
    let store = until_blocking("the store to register", || {
        let said = fs::read_to_string(site.file("said-store")).ok()?;
        let told: Value = serde_json::from_str(said.lines().next()?).ok()?;
        told["address"].as_str().map(str::to_owned)
    });
    let mut worker_process = Started::new(&site, "worker", &["worker"]);
    let worker = until_blocking("the worker to be idle", || runtime().block_on(idle_worker(&site)));

    runtime().block_on(async {
        let tell = || call("/tripod.v1.RayPeer/Tell", &wire::RayTellRequest::default());
        let info = || call("/ObjStore/ObjStoreInfo", &ray_wire::ObjStoreInfoRequest::default());
        for (who, is_node) in [("n1", true), ("ann", false), ("worker", false), ("store", false)] {
            assert_eq!(code(&site, &store, Port::Store, who, tell()).await == Some(0), is_node, "{who}");
            assert_eq!(code(&site, &worker, Port::Worker, who, tell()).await == Some(0), is_node, "{who}");
        }
        for (who, is_told) in [
            ("n1", true),
            ("ann", true),
            ("driver", true),
            ("worker", true),
            ("task", false),
            ("other-store", false),
            ("other-driver", false),
        ] {
            assert_eq!(code(&site, &store, Port::Store, who, info()).await == Some(0), is_told, "{who}");
            // Whatever job is named, the store is of its own.
            let named = Call { job: Some("other"), ..info() };
            let told = code(&site, &store, Port::Store, who, named).await == Some(0);
            assert!(!told || ["n1", "ann"].contains(&who), "{who}");
        }
    });
    runtime().block_on(refuses_who_is_revoked(&site, &store_process, &store));
    // The nodes reach the worker: it is ordered to end.
    runtime().block_on(async {
        let ann = client(&site, "ann").await;
        let kill = call("/Scheduler/KillWorkers", &ray_wire::KillWorkersRequest::default());
        let killed = ann.call(Call { job: Some("own"), ..kill }).await;
        assert_eq!(killed.code, Some(0), "{killed:?}");
    });
    until_blocking("the worker to end", || worker_process.0.try_wait().expect("looked").map(drop));
}

/// Also on a connection that was made before.
async fn refuses_who_is_revoked(site: &Site<'_>, store: &Started, address: &str) {
    let driver = Dialled::to(address, Port::Store, &site.file("driver")).await.expect("it is let in");
    let info = || call("/ObjStore/ObjStoreInfo", &ray_wire::ObjStoreInfoRequest::default());
    assert_eq!(driver.call(info()).await.code, Some(0));
    site.pki(&["crl", "--ca", "ca", "--revoke", "job/own/driver", "--out", "store/crl.pem"]);
    send(store.0.id(), Signal::SIGHUP);
    let refused = || async { (driver.call(info()).await.code == Some(16)).then_some(()) };
    until_async("the store to believe it no longer", refused).await;
}

/// Where a worker of the job listens that can be given a task.
async fn idle_worker(site: &Site<'_>) -> Option<String> {
    let look = call("/tripod.v1.Ray/Status", &wire::RayStatusRequest::default());
    let said = client(site, "ann").await.call(Call { job: Some("own"), ..look }).await;
    let status = wire::RayStatusResponse::decode(said.answer.get(5..)?).ok()?;
    let idle = |worker: &wire::RayWorker| worker.kind == "worker" && worker.state == "idle";
    status.workers.into_iter().find(idle).map(|worker| worker.address)
}
