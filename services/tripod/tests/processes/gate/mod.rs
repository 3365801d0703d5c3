//! Who may call what, on the ports of running nodes. Numbers as in `s34` are those of the table of attacks.

mod dialled;
mod walk;
mod worker_ports;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use futures::future::join_all;
use prost::Message as _;
use serde_json::Value;
use tripod_gate::Role;
use tripod_proto::ray as ray_wire;
use tripod_proto::tripod::v1 as wire;
use tripod_tls::Port;
use tripod_wait::{deadline, until_blocking};

use crate::site::{NODES, Site};
use crate::support::{reserve_ports, stderr, tripod};
use dialled::{Call, Dialled, Said};
use walk::{Saying, Somebody, walk};

/// Everybody who can have a certificate; an owner is one by a grant, and there are none yet.
const EVERYBODY: [(&str, Role); 9] = [
    ("n1", Role::Node),
    ("ann", Role::Operator),
    ("victor", Role::Viewer),
    ("agent", Role::Agent),
    ("task", Role::Task),
    // Messages without a number speak of task 0.
    ("task-0", Role::Task),
    ("driver", Role::Driver),
    ("worker", Role::Worker),
    ("store", Role::Store),
];

const ENFORCE: [&str; 2] = ["--authorise=enforce", "--http-tls=off"];

/// Nodes that enforce, two jobs, and certificates of everybody of the job `own`.
fn enforcing<'a>(site: &mut Site<'a>) {
    certify_everybody(site);
    for node in NODES {
        let directory = format!("n{node}");
        site.start(node, &[&["--tls-dir", &directory], &ENFORCE[..]].concat());
    }
    site.works(Some("ann"), "first");
    create_jobs(site, "ann");
}

fn certify_everybody(site: &Site<'_>) {
    site.pki(&["operator", "victor", "--viewer", "--ca", "ca", "--out", "victor"]);
    for kind in ["agent", "task", "driver", "worker", "store"] {
        site.pki(&["job", "own", kind, "--ca", "ca", "--out", kind]);
    }
    site.pki(&["job", "own", "task", "--task", "0", "--ca", "ca", "--out", "task-0"]);
}

fn create_jobs(site: &Site<'_>, who: &str) {
    for job in ["own", "other"] {
        let made = site.run(Some(who), &["job", "create", job, "--tasks", "2"]);
        assert!(made.status.success(), "{}", stderr(&made));
    }
}

/// The address of a job's port on node 1.
fn job_port(site: &Site<'_>, job: &str) -> String {
    until_blocking(format!("the port of {job}"), || {
        let shown = site.run(Some("ann"), &["job", "show", job, "-o", "json"]);
        let shown: Value = serde_json::from_slice(&shown.stdout).ok()?;
        let text = shown.to_string();
        let host = format!("{}:", Site::host(1));
        let at = text.match_indices(&host).map(|(at, _)| &text[at + host.len()..]);
        let mut ports =
            at.filter_map(|rest| rest.split(|sign: char| !sign.is_ascii_digit()).next()?.parse::<u16>().ok());
        let port = ports.find(|port| *port >= site.ports.first() + 300)?;
        let address = format!("{host}{port}");
        TcpStream::connect(&address).is_ok().then_some(address)
    })
}

fn metrics(site: &Site<'_>) -> String {
    let mut stream = TcpStream::connect(site.address(1, 200)).expect("it listens");
    stream.set_read_timeout(Some(deadline())).expect("set");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").expect("written");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("text");
    page
}

fn counted(site: &Site<'_>, outcome: &str) -> u64 {
    let name = format!("tripod_authorised_calls_total{{outcome=\"{outcome}\"}} ");
    let page = metrics(site);
    let line = page.lines().find_map(|line| line.strip_prefix(&name));
    line.expect("it is counted").parse().expect("a number")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("made")
}

async fn client(site: &Site<'_>, who: &str) -> Dialled {
    Dialled::to(&site.address(1, 0), Port::Client, &site.file(who)).await.expect("it is let in")
}

fn call<'a>(path: &'a str, message: &impl prost::Message) -> Call<'a> {
    Call { path, message: message.encode_to_vec(), ..Call::default() }
}

#[test]
fn s34_every_rpc_by_every_role_about_its_own_and_another_job_is_what_the_table_says() {
    let (place, ports) = (tempfile::tempdir().expect("a directory"), reserve_ports());
    let mut site = Site::new(&ports, place.path());
    enforcing(&mut site);
    let job_ports = ["own", "other"].map(|job| (job, job_port(&site, job)));
    let (mut calls, mut differences) = (0, Vec::new());
    runtime().block_on(async {
        for (name, role) in EVERYBODY {
            let mut walks = Vec::new();
            let dialled = client(&site, name).await;
            for job in ["own", "other"] {
                walks.push((dialled.clone(), Saying::Metadata, job));
                walks.push((dialled.clone(), Saying::Message, job));
            }
            for (job, address) in &job_ports {
                let dialled =
                    Dialled::to(address, Port::Client, &site.file(name)).await.expect("it is let in");
                walks.push((dialled, Saying::Port, *job));
            }
            let walks = walks.into_iter().map(|(dialled, saying, job)| async move {
                let dialled = dialled.hasty();
                walk(&Somebody { name, role, dialled }, saying, job).await
            });
            for (walked, found) in join_all(walks).await {
                calls += walked;
                differences.extend(found);
            }
        }
    });
    assert_eq!(differences, Vec::<String>::new(), "of {calls} calls");
    assert!(calls > 4_000, "{calls}");
    // At last, what would have taken the jobs away.
    let deleted = site.run(Some("ann"), &["job", "delete", "other", "--yes"]);
    assert!(deleted.status.success(), "{}", stderr(&deleted));

    let status = site.run(Some("ann"), &["status"]);
    let shown = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(shown.contains("node 1 authorises calls: enforce"), "{shown}");
    assert!(counted(&site, "refused") > 1_000 && counted(&site, "would_refuse") == 0);
    site.says(1, &["a call was refused", "code=T1521", "caller=\"job/own/task\"", "reason=\"other_job\""]);
    let lines = site.log(1);
    let told = lines.lines().filter(|line| line.contains("a call was refused"));
    assert!(told.count() < 60, "once a minute for each caller and reason: {lines}");
}

#[test]
fn s35_nothing_takes_effect_in_a_job_of_others_and_nothing_is_said_of_it() {
    let (place, ports) = (tempfile::tempdir().expect("a directory"), reserve_ports());
    let mut site = Site::new(&ports, place.path());
    enforcing(&mut site);
    let other_port = job_port(&site, "other");
    runtime().block_on(async {
        let (ann, task, driver) =
            (client(&site, "ann").await, client(&site, "task").await, client(&site, "driver").await);
        let put = |job: &str| wire::PutRequest {
            job: job.to_owned(),
            key: "k".into(),
            value: "v".into(),
            ..Default::default()
        };
        const PUT: &str = "/tripod.v1.Kv/Put";
        assert_eq!(task.call(call(PUT, &put("own"))).await.code, Some(0));
        let refused = task.call(call(PUT, &put("other"))).await;
        assert!(refused.is_refused(), "{refused:?}");
        let unknown = task.call(call(PUT, &put("no-such-job"))).await;
        assert_eq!(refused, unknown, "whether there is such a job is not said");
        let both = task.call(Call { job: Some("own"), ..call(PUT, &put("other")) }).await;
        assert!(both.is_refused(), "metadata of the own job open no other: {both:?}");
        let by_port = Dialled::to(&other_port, Port::Client, &site.file("task")).await.expect("let in");
        let get = call("/xla.coordination.CoordinationService/TryGetKeyValue", &());
        assert!(by_port.call(get).await.is_refused());
        let listed = wire::ListRequest { job: "other".to_owned(), ..Default::default() };
        let listed = ann.call(call("/tripod.v1.Kv/List", &listed)).await;
        let listed = wire::ListResponse::decode(&listed.answer[5..]).expect("a list");
        assert!(listed.keys.is_empty(), "{listed:?}");

        let jobs = jobs_shown_to(&site, "agent").await;
        assert_eq!(jobs, ["own"], "of others nothing is listed");
        no_part_takes_effect(&ann, &driver).await;
        each_op_of_a_stream_is_a_call_of_its_own(&task).await;
        let digest = call("/tripod.v1.Cluster/Status", &wire::StatusRequest { digest: true });
        let digest =
            (task.call(digest.clone()).await, driver.call(digest.clone()).await, ann.call(digest).await);
        assert!(digest.0.is_refused() && digest.1.is_refused() && digest.2.code == Some(0), "{digest:?}");
    });
}

/// The names of the jobs that somebody is told of.
async fn jobs_shown_to(site: &Site<'_>, who: &str) -> Vec<String> {
    let listed = client(site, who).await.call(call("/tripod.v1.Jobs/List", &())).await;
    let listed = wire::ListJobsResponse::decode(&listed.answer[5..]).expect("a list");
    listed.jobs.into_iter().map(|job| job.name).collect()
}

async fn no_part_takes_effect(ann: &Dialled, driver: &Dialled) {
    use wire::ray_call::Call as Part;
    const BATCH: &str = "/tripod.v1.Ray/Batch";
    let status = async |job| {
        let look =
            Call { job: Some(job), ..call("/tripod.v1.Ray/Status", &wire::RayStatusRequest::default()) };
        ann.call(look).await
    };
    let registered = ray_wire::RegisterWorkerRequest {
        node_ip_address: "127.0.0.1".into(),
        is_driver: true,
        ..Default::default()
    };
    let register = "/Scheduler/RegisterWorker";
    let as_worker = ray_wire::RegisterWorkerRequest { is_driver: false, ..registered.clone() };
    let refused = driver.call(Call { job: Some("own"), ..call(register, &as_worker) }).await;
    assert!(refused.is_refused(), "a driver is no worker: {refused:?}");

    let part = |call| wire::RayCall { call: Some(call), ..Default::default() };
    let put = part(Part::Put(ray_wire::PutObjRequest::default()));
    let idle = part(Part::Idle(ray_wire::ReadyForNewTaskRequest::default()));
    let before = (status("own").await, status("other").await);
    let mixed = wire::RayBatchRequest { calls: vec![put.clone(), idle], ..Default::default() };
    let refused = driver.call(Call { job: Some("own"), ..call(BATCH, &mixed) }).await;
    assert!(refused.is_refused(), "one part is no driver's: {refused:?}");
    let line = wire::RayLineRequest { seq: 1, batch: Some(mixed), ..Default::default() };
    // Without a session it is no call of a driver, whoever makes it.
    let session = Some("0123456789abcdef0123456789abcdef");
    let in_session = Call { job: Some("own"), session, ..call("/tripod.v1.RayLine/Batches", &line) };
    let refused: Said = driver.call(in_session).await;
    assert!(refused.is_refused(), "{refused:?}");
    let of_other = wire::RayBatchRequest { calls: vec![put], ..Default::default() };
    let refused = driver.call(Call { job: Some("other"), ..call(BATCH, &of_other) }).await;
    assert!(refused.is_refused(), "{refused:?}");
    assert_eq!((status("own").await, status("other").await), before, "no part has taken effect");
}

async fn each_op_of_a_stream_is_a_call_of_its_own(task: &Dialled) {
    let about = |tag, job: &str| {
        let message = wire::GetRequest { job: job.to_owned(), key: "k".into(), ..Default::default() };
        wire::Op { tag, path: 1, message: message.encode_to_vec().into(), ..Default::default() }
    };
    let metadata = wire::Metadata { key: "x-tripod-job".to_owned(), value: "other".to_owned() };
    let delete = wire::Op { tag: 4, path: 2, ..Default::default() };
    let frame = wire::Frame {
        hello: Some(wire::Hello::default()),
        paths: vec!["/tripod.v1.Kv/Get".to_owned(), "/tripod.v1.Jobs/Delete".to_owned()],
        ops: vec![
            about(1, "other"),
            about(2, "own"),
            wire::Op { metadata: vec![metadata], ..about(3, "own") },
            delete,
        ],
        ..Default::default()
    };
    let said = task.call(call("/tripod.v1.Calls/Open", &frame)).await;
    let mut answers = std::collections::BTreeMap::new();
    let mut rest = &said.answer[..];
    while let Some((head, frames)) = rest.split_at_checked(5) {
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let frame = wire::Frame::decode(&frames[..length]).expect("a frame");
        answers.extend(frame.answers.into_iter().map(|answer| (answer.tag, answer.code)));
        rest = &frames[length..];
    }
    assert_eq!(answers, [(1, 7), (2, 0), (3, 7), (4, 7)].into(), "{said:?}");
}

#[test]
fn s36_a_task_speaks_of_no_other_one_which_lives_on() {
    use tripod_proto::xla::coordination as n;
    const SERVICE: &str = "/xla.coordination.CoordinationService";
    let (place, ports) = (tempfile::tempdir().expect("a directory"), reserve_ports());
    let mut site = Site::new(&ports, place.path());
    enforcing(&mut site);
    runtime().block_on(async {
        let (any, zeroth) = (client(&site, "task").await, client(&site, "task-0").await);
        let path = |method| format!("{SERVICE}/{method}");
        let make = async |who: &Dialled, method, message: Vec<u8>| {
            who.call(Call { path: &path(method), message, job: Some("own"), ..Call::default() }).await
        };
        let register = |task| n::RegisterTaskRequest { incarnation: 7, source_task_id: task }.encode_to_vec();
        let refused = make(&zeroth, "RegisterTask", register(1)).await;
        assert!(refused.is_refused(), "{refused:?}");
        let both = (make(&zeroth, "RegisterTask", register(0)), make(&any, "RegisterTask", register(1)));
        let both = tokio::join!(both.0, both.1);
        assert_eq!((both.0.code, both.1.code), (Some(0), Some(0)), "{both:?}");
        let registered =
            n::RegisterTaskResponse::decode(both.0.message()).expect("an answer to a registration");
        let beat = |task| n::HeartbeatRequest {
            incarnations: Some(n::Incarnations {
                task_id: task,
                task_incarnation: 7,
                service_incarnation: registered.service_incarnation,
            }),
            incarnation: 7,
            source_task_id: task,
        };

        let report =
            n::ReportErrorToServiceRequest { source_task_id: 1, error_code: 13, ..Default::default() };
        let shutdown = n::ShutdownTaskRequest { source_task_id: 1, ..Default::default() };
        let barrier = n::BarrierRequest { source_task_id: 1, barrier_id: "b".into(), ..Default::default() };
        let poll = n::PollForErrorRequest { source_task_id: 1, ..Default::default() };
        for (method, message) in [
            ("Heartbeat", beat(1).encode_to_vec()),
            ("ReportErrorToService", report.encode_to_vec()),
            ("ShutdownTask", shutdown.encode_to_vec()),
            ("Barrier", barrier.encode_to_vec()),
            ("PollForError", poll.encode_to_vec()),
        ] {
            let said = make(&zeroth, method, message).await;
            assert!(said.is_refused() && said.code == Some(7), "{method}: {said:?}");
        }
        for (who, task) in [(&zeroth, 0), (&any, 1)] {
            let said = make(who, "Heartbeat", beat(task).encode_to_vec()).await;
            assert_eq!(said.code, Some(0), "task {task} lives: {said:?}");
        }
    });
    site.says(1, &["a call was refused", "caller=\"job/own/task/0\"", "reason=\"other_task\""]);
}

#[test]
fn s22_s23_nobody_is_a_node_on_the_peer_port_and_a_node_is_no_operator_on_the_other() {
    let (place, ports) = (tempfile::tempdir().expect("a directory"), reserve_ports());
    let mut site = Site::new(&ports, place.path());
    enforcing(&mut site);
    let term = |site: &Site<'_>| {
        let status = site.run(Some("ann"), &["status", "-o", "json"]);
        let status: Value = serde_json::from_slice(&status.stdout).expect("JSON");
        status["term"].clone()
    };
    let before = term(&site);
    runtime().block_on(async {
        let peer = site.address(1, 100);
        for who in ["ann", "agent", "task", "driver", "worker", "store", "victor"] {
            let dialled = Dialled::to(&peer, Port::Peer, &site.file(who)).await;
            assert!(dialled.is_err(), "{who} is no node");
        }
        let node = Dialled::to(&peer, Port::Peer, &site.file("n2")).await.expect("a node");
        const VOTE: &str = "/tripod.peer.v1.Raft/Vote";
        let said = node.call(Call { agent: Some("tripod-node/3"), path: VOTE, ..Call::default() }).await;
        assert_eq!(said.code, Some(7), "{said:?}");
        assert!(said.text.starts_with("T1513 tls-refused: ") && said.text.contains("node n2"), "{said:?}");
        let said = node.call(Call { path: "/tripod.v1.Kv/Put", ..Call::default() }).await;
        assert!(said.is_unknown(), "clients have another port: {said:?}");

        let node = client(&site, "n2").await;
        let drain = call("/tripod.v1.Cluster/DrainNode", &wire::DrainNodeRequest::default());
        let said = node.call(drain).await;
        assert!(said.is_refused() && said.code == Some(7), "{said:?}");
        assert!(node.call(Call { path: VOTE, ..Call::default() }).await.is_unknown());
    });
    assert_eq!(term(&site), before, "nobody has voted");
}

#[test]
fn a_rehearsal_makes_every_call_and_tells_which_would_be_refused() {
    let (place, ports) = (tempfile::tempdir().expect("a directory"), reserve_ports());
    let mut site = Site::new(&ports, place.path());
    certify_everybody(&site);
    for node in NODES {
        let directory = format!("n{node}");
        let modes = ["--peer-tls=permissive", "--client-tls=permissive", "--http-tls=off", "--authorise=log"];
        site.start(node, &[&["--tls-dir", &directory], &modes[..]].concat());
    }
    // Plain text is whoever it may be, as it always was.
    site.works(None, "first");
    create_jobs(&site, "ann");
    assert_eq!(counted(&site, "would_refuse"), 0);
    runtime().block_on(async {
        let note = wire::NoteJobRequest { name: "other".to_owned(), note: "by a task".to_owned() };
        let said = client(&site, "task").await.call(call("/tripod.v1.Jobs/Note", &note)).await;
        assert_eq!(said.code, Some(0), "{said:?}");
        let get = wire::GetRequest { job: "other".to_owned(), key: "k".into(), ..Default::default() };
        let said = client(&site, "task").await.call(call("/tripod.v1.Kv/Get", &get)).await;
        assert_eq!(said.code, Some(0), "{said:?}");
    });
    assert_eq!((counted(&site, "would_refuse"), counted(&site, "refused")), (2, 0));
    site.says(
        1,
        &["a call was made that `enforce` would refuse", "code=T1521", "rpc=\"/tripod.v1.Jobs/Note\""],
    );
    let status = site.run(Some("ann"), &["status"]);
    assert!(String::from_utf8_lossy(&status.stdout).contains("node 2 authorises calls: log"));
}

#[test]
fn a_node_does_not_start_that_would_enforce_what_nobody_proves() {
    let place = tempfile::tempdir().expect("a directory");
    let output = tripod()
        .args(["server", "--node", "1", "--initial", "1=127.0.0.1:1", "--data", "data"])
        .args(["--client", "127.0.0.1:2", "--peer", "127.0.0.1:1", "--http", "127.0.0.1:3"])
        .args(["--authorise", "enforce"])
        .current_dir(place.path())
        .output()
        .expect("runs");
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("error: T1522 enforce-open: ") && told.contains("next: `tripod server "), "{told}");
    assert!(!place.path().join("data").exists(), "nothing was begun");
}
