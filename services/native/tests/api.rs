//! `tripod.v1` over a real connection and a gateway in memory, through our own client.

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpListener;
use tonic::Code;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tripod_client::{Client, Condition, Config, Consistency, Error, wire};
use tripod_gateway::{Gateway, MemoryBackend, Mishap, Replica as _};
use tripod_state::ids::{BarrierCounter, Incarnation, NodeId, TaskId};
use tripod_state::{Command, Envelope, Scope, barrier, kv, level, member, task};

struct Service {
    client: Client,
    backend: Arc<MemoryBackend>,
    gateway: Gateway,
    endpoint: String,
}

/// A served gateway with one announced node and job `default`.
async fn serve() -> Service {
    let service = without_jobs().await;
    service.client.jobs().create("default", &spec(2)).await.expect("created");
    service
}

async fn without_jobs() -> Service {
    let (gateway, backend) = Gateway::in_memory();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let endpoint = listener.local_addr().expect("bound").to_string();
    let incoming = TcpIncoming::from(listener);
    tokio::spawn(Server::builder().add_routes(common::routes(&gateway)).serve_with_incoming(incoming));
    let addresses = member::Addresses {
        client: endpoint.clone(),
        http: "127.0.0.1:1".into(),
        job_host: "127.0.0.1".into(),
        job_port_first: 8000,
        job_port_count: 100,
    };
    let announce = member::Command::Announce { node: NodeId(1), addresses };
    gateway.submit(Command::Member(announce)).await.expect("no outage").expect("not refused");
    let client = Client::new(&Config::new(vec![endpoint.clone()])).expect("a good address");
    Service { client, backend, gateway, endpoint }
}

fn spec(tasks: u32) -> wire::JobSpec {
    wire::JobSpec { tasks, ..Default::default() }
}

fn refusal<T: std::fmt::Debug>(outcome: Result<T, Error>) -> (Code, String, String) {
    match outcome {
        Err(Error::Refused { code, reason, message, .. }) => (code, reason, message),
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn keys_are_written_read_listed_and_deleted() {
    let kv = serve().await.client.kv("");
    let first = kv.put("/a//b/", Bytes::from("1"), Condition::Always).await.expect("written");
    let second = kv.put("a/b", Bytes::from("2"), Condition::Version(1)).await.expect("written");
    assert_eq!((first.version, second.version), (1, 2));
    assert!(second.index > first.index);
    kv.put("a/c", Bytes::from("3"), Condition::CreateOnly).await.expect("written");

    let read = kv.get("a/b", Consistency::Linearizable).await.expect("read").expect("found");
    assert_eq!((read.value.as_ref(), read.version, read.modified_index), (&b"2"[..], 2, second.index));
    assert_eq!(kv.get("a/d", Consistency::Local).await.expect("read"), None);

    let page = kv.list("a/", "", 1, false).await.expect("listed");
    assert_eq!((page.entries.len(), page.more), (1, true));
    let rest = kv.list("a/", &page.entries[0].key, 0, true).await.expect("listed");
    assert_eq!((rest.entries[0].key.as_str(), rest.entries[0].value.len(), rest.more), ("a/c", 0, false));
    assert_eq!(kv.delete("a").await.expect("deleted"), 2);
}

#[tokio::test]
async fn conditions_that_do_not_hold_are_refused_with_their_reason() {
    let kv = serve().await.client.kv("default");
    kv.put("k", Bytes::from("1"), Condition::Always).await.expect("written");
    let (code, reason, _) = refusal(kv.put("k", Bytes::new(), Condition::CreateOnly).await);
    assert_eq!((code, reason.as_str()), (Code::AlreadyExists, "key-exists"));
    let (code, reason, message) = refusal(kv.put("k", Bytes::new(), Condition::Version(5)).await);
    assert_eq!((code, reason.as_str()), (Code::FailedPrecondition, "version-mismatch"));
    assert_eq!(message, "key `k` has version 1, not 5; read it again and decide anew");
}

#[tokio::test]
async fn jobs_do_not_see_each_others_keys() {
    let service = serve().await;
    let job = service.client.jobs().create("train", &spec(3)).await.expect("created");
    assert_eq!(job.addresses.len(), 1);
    assert_eq!(job.addresses[0].address, "127.0.0.1:8000");
    assert_ne!(job.service_incarnation, 0);
    let train = service.client.kv("train");
    train.put("k", Bytes::from("mine"), Condition::Always).await.expect("written");
    assert_eq!(service.client.kv("").get("k", Consistency::Linearizable).await.expect("read"), None);

    let default = service.client.jobs().get("default").await.expect("asked").expect("exists");
    assert_eq!(default.addresses[0].address, service.endpoint, "job default lives on the client port");
    assert_eq!(default.tasks.len(), 2);
    assert_eq!(service.client.jobs().list().await.expect("listed").len(), 2);

    service.client.jobs().delete("train").await.expect("deleted");
    let (code, reason, _) = refusal(train.get("k", Consistency::Linearizable).await);
    assert_eq!((code, reason.as_str()), (Code::NotFound, "job-unknown"));
}

#[tokio::test]
async fn a_life_has_a_host_and_one_that_is_over_is_lost_at_once_and_no_other_one() {
    let service = serve().await;
    let jobs = service.client.jobs();
    let job = service.backend.state().job_named("default").expect("created");
    let scope = Scope { job, service: None };
    for task in (0..2).map(TaskId) {
        let (incarnation, protocol) = (Incarnation(7), task::Protocol::Xla);
        let register = task::Command::Register { scope, task, incarnation, recoverable: false, protocol };
        service.gateway.submit(Command::Task(register)).await.expect("no outage").expect("not refused");
    }
    let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
    service.gateway.submit(Command::Level(raise)).await.expect("no outage").expect("not refused");
    let shown = async || jobs.get("default").await.expect("asked").expect("exists");
    jobs.note_host("default", 0, 7, "gpu-7").await.expect("noted");
    jobs.note_host("default", 1, 8, "gpu-8").await.expect("nobody is meant");
    let hosts: Vec<String> = shown().await.tasks.into_iter().map(|task| task.host).collect();
    assert_eq!(hosts, ["gpu-7", ""]);
    let (pid, launcher) = (4711, "Slurm 5".to_owned());
    let origin = wire::TaskOrigin { host: "gpu-7".into(), pid, launcher, ..Default::default() };
    jobs.note_origin("default", 0, 7, &origin).await.expect("noted");
    let shown_origin = shown().await.tasks.into_iter().next().and_then(|task| task.origin);
    assert_eq!(shown_origin, Some(origin));
    let long = jobs.note_host("default", 0, 7, &"h".repeat(256)).await.expect_err("is too long");
    assert!(
        matches!(long, Error::Refused { code: Code::ResourceExhausted | Code::InvalidArgument, .. }),
        "{long}"
    );
    jobs.end_task("default", 0, 8, None).await.expect("nobody is meant");
    jobs.end_task("default", 5, 7, None).await.expect("nobody is meant");
    assert_eq!((shown().await.tasks_connected, shown().await.tasks_in_error), (2, 0));
    jobs.end_task("default", 0, 7, None).await.expect("told");
    let first = shown().await.tasks.remove(0);
    assert_eq!((first.state.as_str(), first.reason.as_str()), ("error", "task-ended"));
    let refused = jobs.end_task("none", 0, 7, None).await.expect_err("there is no such job");
    assert!(matches!(refused, Error::Refused { code: Code::NotFound, .. }), "{refused}");
}

#[tokio::test]
async fn how_a_process_ended_is_shown_and_told_to_the_others() {
    let service = serve().await;
    let jobs = service.client.jobs();
    let job = service.backend.state().job_named("default").expect("created");
    let scope = Scope { job, service: None };
    let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
    service.gateway.submit(Command::Level(raise)).await.expect("no outage").expect("not refused");
    let register = async |task, incarnation| {
        let (task, incarnation, protocol) = (TaskId(task), Incarnation(incarnation), task::Protocol::Xla);
        let register = task::Command::Register { scope, task, incarnation, recoverable: false, protocol };
        service.gateway.submit(Command::Task(register)).await.expect("no outage").expect("not refused");
    };
    let standings = async || {
        let shown = jobs.get("default").await.expect("asked").expect("exists");
        shown.tasks.into_iter().map(|task| task.standing).collect::<Vec<_>>()
    };
    assert_eq!(standings().await, ["never-came", "never-came"]);
    register(0, 7).await;
    assert_eq!(standings().await, ["registering", "never-came"]);
    let killed = wire::ProcessEnd { signal: Some(9), out_of_memory: true, at_ms: 5, ..Default::default() };
    jobs.end_task("default", 0, 7, Some(killed.clone())).await.expect("told");
    assert_eq!(standings().await, ["ended", "never-came"], "nobody waits for it as if it had come");
    register(0, 8).await;
    register(1, 9).await;
    assert_eq!(standings().await, ["connected", "connected"]);
    let killed = wire::ProcessEnd { tail: "shard 1\nshard 2\n".into(), ..killed };
    jobs.end_task("default", 0, 8, Some(killed.clone())).await.expect("told");
    let shown = jobs.get("default").await.expect("asked").expect("exists");
    let told = "the process of task 0 was ended by SIGKILL, out of memory, as whoever started it saw; its last line: shard 2";
    let first = &shown.tasks[0];
    assert_eq!(
        (first.standing.as_str(), first.reason.as_str(), first.error.as_str()),
        ("ended", "task-ended", told)
    );
    assert_eq!(first.end, Some(killed));
    let second = &shown.tasks[1];
    assert_eq!((second.standing.as_str(), second.reason.as_str()), ("error", "task-error"));
    assert!(second.error.ends_with(told), "{}", second.error);
    let long = wire::ProcessEnd { tail: "t".repeat(1_025), ..Default::default() };
    let long = jobs.end_task("default", 1, 9, Some(long)).await.expect_err("is too long");
    assert!(matches!(long, Error::Refused { code: Code::ResourceExhausted, .. }), "{long}");
}

#[tokio::test]
async fn a_job_shows_who_was_lost_and_which_barrier_waited_for_whom() {
    let service = serve().await;
    let jobs = service.client.jobs();
    jobs.create("train", &spec(3)).await.expect("created");
    let job = service.backend.state().job_named("train").expect("created");
    let scope = Scope { job, service: None };
    let submit = async |command| {
        let outcome = service.gateway.submit(command).await;
        outcome.expect("no outage").expect("not refused");
    };
    for task in (0..3).map(TaskId) {
        let (incarnation, protocol) = (Incarnation(1), task::Protocol::Xla);
        let register = task::Command::Register { scope, task, incarnation, recoverable: false, protocol };
        submit(Command::Task(register)).await;
    }
    for task in (0..2).map(TaskId) {
        let (barrier, counter) = ("x".to_owned(), BarrierCounter(0));
        let arrive =
            barrier::Command::Arrive { scope, barrier, counter, timeout_ms: 60_000, tasks: Vec::new(), task };
        submit(Command::Barrier(arrive)).await;
    }
    let shown = async || jobs.get("train").await.expect("asked").expect("exists");
    let open = shown().await.barriers;
    assert_eq!(open.len(), 1);
    assert_eq!((open[0].id.as_str(), open[0].timeout_ms, &open[0].failure), ("x", 60_000, &None));
    assert_ne!(open[0].opened_ms, 0);

    submit(Command::Task(task::Command::Expire { job, silent: vec![(TaskId(2), Incarnation(1))] })).await;
    let failed = shown().await;
    let sample = |count, first: &[i32]| Some(wire::TaskSample { count, first: first.to_vec() });
    let barrier = &failed.barriers[0];
    assert_eq!(failed.barriers.len(), 1);
    assert_eq!((&barrier.arrived, &barrier.missing), (&sample(2, &[0, 1]), &sample(1, &[2])));
    let failure = barrier.failure.as_ref().expect("it has failed");
    assert_eq!(failure.reason, "barrier-member-lost");
    let text = "task 2 failed (task 2 was silent for longer than the heartbeat timeout)";
    assert_eq!(failure.text, text);
    let lost: Vec<_> = failed.tasks.iter().filter(|task| task.reason == "task-silent").collect();
    assert_eq!(lost.iter().map(|task| task.task_id).collect::<Vec<_>>(), [2]);

    let listed = jobs.list().await.expect("listed");
    assert!(listed.iter().all(|job| job.barriers.is_empty()), "only one job at a time is shown in full");
}

#[tokio::test]
async fn without_a_leader_a_job_is_shown_as_the_node_remembers_it_and_says_so() {
    let service = serve().await;
    let jobs = service.client.jobs();
    let led = jobs.get_or_remembered("default").await.expect("asked").expect("exists");
    assert_eq!((led.as_of, led.tasks.len()), (None, 2));
    service.backend.depose();
    let remembered = jobs.get_or_remembered("default").await.expect("asked").expect("exists");
    let as_of = remembered.as_of.expect("it says so");
    assert_eq!((as_of.node_id, remembered.tasks.len()), (1, 2));
    assert!(as_of.index > 0 && as_of.why.starts_with("no leader "), "{as_of:?}");
    assert_eq!(jobs.get_or_remembered("none").await.expect("asked"), None);
}

#[tokio::test]
async fn a_job_of_many_tasks_is_shown_whole_and_a_missing_one_is_told() {
    let service = serve().await;
    service.client.jobs().create("large", &spec(2_000)).await.expect("created");
    let job = service.client.jobs().get("large").await.expect("answered").expect("there");
    assert_eq!((job.name.as_str(), job.tasks.len()), ("large", 2_000));
    assert_eq!(service.client.jobs().get("larger").await.expect("answered"), None);
}

#[tokio::test]
async fn bad_jobs_are_refused_and_change_nothing() {
    let service = serve().await;
    let jobs = service.client.jobs();
    // Not the digest: the refusals themselves are remembered, for callers that ask again.
    let known = || service.backend.state().jobs();
    let before = known();
    for (name, tasks, wanted) in [
        ("Bad Name", 1, "job-name-invalid"),
        ("", 1, "job-name-invalid"),
        ("none", 0, "job-spec-invalid"),
        ("default", 1, "job-exists"),
    ] {
        let (_, reason, _) = refusal(jobs.create(name, &spec(tasks)).await);
        assert_eq!(reason, wanted, "{name:?} with {tasks} tasks");
    }
    assert_eq!(jobs.get("nobody").await.expect("asked"), None);
    assert_eq!(known(), before);
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_executed_once() {
    let service = serve().await;
    let kv = service.client.kv("");
    kv.put("n", Bytes::from("0"), Condition::Always).await.expect("written");
    let told = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&told);
    service.backend.set_mishaps(move |_| {
        if count.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            Mishap::UnknownButApplied
        } else {
            Mishap::Success
        }
    });
    for version in 1..=50 {
        let put = kv.put("n", Bytes::from("x"), Condition::Version(version)).await;
        assert_eq!(put.expect("written once").version, version + 1);
    }
    assert!(told.load(Ordering::Relaxed) >= 100, "no answer was lost");
}

#[tokio::test]
async fn a_closed_session_is_replaced_without_the_caller_noticing() {
    let service = serve().await;
    let kv = service.client.kv("");
    kv.put("a", Bytes::from("1"), Condition::Always).await.expect("written");
    service.client.close().await.expect("closed");
    kv.put("b", Bytes::from("2"), Condition::Always).await.expect("written");
    let page = kv.list("", "", 0, false).await.expect("listed");
    assert_eq!(page.entries.len(), 2);
}

#[tokio::test]
async fn f2_a_session_of_both_halves_is_used_by_its_client_and_a_node_s_by_nobody() {
    let service = serve().await;
    let raise = level::Command::Raise { to: level::NEWEST, heard: vec![NodeId(1)] };
    let raised = service.backend.propose(Envelope { stamp: None, command: Command::Level(raise) }).await;
    raised.expect("no outage").reply.expect("the only node supports it");
    let channel =
        Endpoint::from_shared(format!("http://{}", service.endpoint)).expect("an address").connect_lazy();
    let mut sessions = wire::sessions_client::SessionsClient::new(channel.clone());
    let mut kv = wire::kv_client::KvClient::new(channel);
    let opened = sessions.open(wire::OpenSessionRequest { wide: true }).await.expect("opened").into_inner();
    assert!(opened.session_high != 0 && opened.session_high >> 63 == 0, "{opened:?}");
    let stamp =
        |session, session_high| wire::Stamp { session, session_high, sequence: 1, acknowledged_below: 1 };
    let mut put = async |value: &'static str, stamp| {
        let (key, value) = ("k".to_owned(), Bytes::from(value));
        let put = kv.put(wire::PutRequest { key, value, stamp: Some(stamp), ..Default::default() }).await;
        put.map(|put| put.into_inner().version).map_err(|status| status.message().to_owned())
    };
    let mine = stamp(opened.session, opened.session_high);
    assert_eq!(put("mine", mine).await, Ok(1));
    assert_eq!(put("mine", mine).await, Ok(1), "the reply of the first time");
    let told = put("yours", mine).await.expect_err("another command");
    assert!(told.contains("used for another call"), "{told}");
    // A guess of one half, and the id with the node's bit, which is the same session to whoever reads it.
    let told = put("guessed", stamp(opened.session, 0)).await.expect_err("no such session");
    assert!(told.contains("unknown or was closed"), "{told}");
    assert_eq!(put("mine", stamp(opened.session, opened.session_high | 1 << 63)).await, Ok(1));
    let close = wire::CloseSessionRequest { session: opened.session, session_high: opened.session_high };
    sessions.close(close).await.expect("closed");
    assert!(put("mine", mine).await.expect_err("closed").contains("unknown or was closed"));
}

/// Sessions of before feature level 5 do not compare commands. It is the client's mistake, or guess, and no defect of ours.
#[tokio::test]
async fn a_number_that_was_another_kind_of_call_s_is_refused_in_a_session_of_before_too() {
    let service = serve().await;
    let channel =
        Endpoint::from_shared(format!("http://{}", service.endpoint)).expect("an address").connect_lazy();
    let mut sessions = wire::sessions_client::SessionsClient::new(channel.clone());
    let mut kv = wire::kv_client::KvClient::new(channel);
    let opened = sessions.open(wire::OpenSessionRequest::default()).await.expect("opened").into_inner();
    let stamp = wire::Stamp { session: opened.session, session_high: 0, sequence: 1, acknowledged_below: 1 };
    let (key, stamp) = ("k".to_owned(), Some(stamp));
    let put = wire::PutRequest { key: key.clone(), stamp, ..Default::default() };
    kv.put(put).await.expect("written");
    let delete = wire::DeleteRequest { key, stamp, ..Default::default() };
    let told = kv.delete(delete).await.expect_err("it was used for a write");
    assert_eq!(told.code(), Code::FailedPrecondition);
    assert!(told.message().contains("used for another call"), "{told}");
}

/// A new cluster's first leader creates it, a moment after it can serve.
#[tokio::test]
async fn a_write_that_is_faster_than_the_default_job_waits_for_it_and_for_no_other() {
    let service = without_jobs().await;
    let kv = service.client.kv("");
    let created = async {
        let other = service.client.kv("other").put("a", Bytes::from("1"), Condition::Always).await;
        assert_eq!(refusal(other).1, "job-unknown");
        assert_eq!(service.backend.state().jobs().len(), 0);
        service.client.jobs().create("default", &spec(2)).await.expect("created");
    };
    let (written, ()) = tokio::join!(kv.put("a", Bytes::from("1"), Condition::Always), created);
    assert_eq!(written.expect("written").version, 1);
}

#[tokio::test]
async fn status_needs_no_leader_but_writes_do() {
    let service = serve().await;
    service.backend.depose();
    let answers = service.client.status(Duration::from_secs(5), true).await;
    let status = answers[0].status.as_ref().expect("answered");
    assert_eq!(status.jobs, 1);
    assert_eq!(status.digest, service.backend.state().digest());
    assert_eq!(service.gateway.admin().status().cluster_id, status.cluster_id);

    let hurried = Config { endpoints: vec![service.endpoint.clone()], timeout: Duration::from_millis(300) };
    let hurried = Client::new(&hurried).expect("a good address");
    let read = hurried.kv("").get("k", Consistency::Linearizable).await;
    assert!(matches!(read, Err(Error::Unavailable { .. })), "{read:?}");
    assert_eq!(service.client.kv("").get("k", Consistency::Local).await.expect("read"), None);
}

/// Whoever compares nodes takes the index and the digest for one thing, and looks how far a node's log is
/// ahead of it. That the index is the one of what was hashed is tested where the state is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_is_never_behind_the_state_that_was_hashed() {
    let service = serve().await;
    let scope = Scope { job: service.backend.state().job_named("default").expect("created"), service: None };
    let gateway = service.gateway.clone();
    let writer = tokio::spawn(async move {
        for number in 0_u64.. {
            let value = Bytes::from(number.to_string());
            let insert = kv::Command::Insert { scope, key: "k".into(), value, overwrite: true };
            gateway.submit(Command::Kv(insert)).await.expect("no outage").expect("not refused");
            // In memory nothing waits, and what never waits cannot be ended.
            tokio::task::yield_now().await;
        }
    });
    let mut seen = BTreeSet::new();
    while seen.len() < 100 {
        let answers = service.client.status(Duration::from_secs(60), true).await;
        let status = answers[0].status.as_ref().expect("answered");
        let (last, committed, hashed) = (status.last_log_index, status.committed_index, status.applied_index);
        assert!(last >= hashed && committed >= hashed, "{hashed} of {last}, {committed} committed");
        seen.insert(hashed);
    }
    writer.abort();
}
