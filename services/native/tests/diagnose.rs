//! `tripod.v1.Diagnose` over a real connection and a gateway in memory: what each staged case is answered.

mod common;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tripod_client::{Client, Config, wire};
use tripod_gateway::{Gateway, MemoryBackend, Outage};
use tripod_state::ids::{BarrierCounter, DurationMs, Incarnation, JobId, TaskId, TimeMs};
use tripod_state::task::{End, How};
use tripod_state::{Command, Reply, Scope, Ticket, barrier, kv, level, task};
use tripod_wait::{until, until_async};

/// A job of one name, served.
struct Gang {
    client: Client,
    backend: Arc<MemoryBackend>,
    gateway: Gateway,
    job: JobId,
}

type Waiting = JoinHandle<Result<Reply, Outage>>;

impl Gang {
    async fn of(tasks: u32, heartbeat_timeout_ms: u64) -> Self {
        Self::on(Gateway::in_memory(), tasks, heartbeat_timeout_ms).await
    }

    async fn on(
        (gateway, backend): (Gateway, Arc<MemoryBackend>),
        tasks: u32,
        heartbeat_timeout_ms: u64,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let endpoint = listener.local_addr().expect("bound").to_string();
        let incoming = TcpIncoming::from(listener);
        tokio::spawn(Server::builder().add_routes(common::routes(&gateway)).serve_with_incoming(incoming));
        let client = Client::new(&Config::new(vec![endpoint])).expect("a good address");
        let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
        gateway.submit(Command::Level(raise)).await.expect("no outage").expect("not refused");
        let spec = wire::JobSpec { tasks, heartbeat_timeout_ms, ..Default::default() };
        client.jobs().create("train", &spec).await.expect("created");
        let job = backend.state().job_named("train").expect("created");
        Self { client, backend, gateway, job }
    }

    fn scope(&self) -> Scope {
        Scope { job: self.job, service: None }
    }

    fn call(&self, command: Command) -> Waiting {
        let gateway = self.gateway.clone();
        tokio::spawn(async move { gateway.call(command).await })
    }

    fn register(&self, task: i32) -> Waiting {
        let (scope, incarnation, protocol) = (self.scope(), Incarnation(7), task::Protocol::Xla);
        let task = TaskId(task);
        let register = task::Command::Register { scope, task, incarnation, recoverable: false, protocol };
        self.call(Command::Task(register))
    }

    async fn register_all(&self, tasks: i32) {
        let all: Vec<_> = (0..tasks).map(|task| self.register(task)).collect();
        for one in all {
            one.await.expect("no panic").expect("no outage").expect("not refused");
        }
    }

    fn arrive(&self, name: &str, task: i32) -> Waiting {
        let (barrier, counter, task) = (name.to_owned(), BarrierCounter(0), TaskId(task));
        let (scope, tasks, timeout_ms) = (self.scope(), Vec::new(), 600_000);
        self.call(Command::Barrier(barrier::Command::Arrive {
            scope,
            barrier,
            counter,
            timeout_ms,
            tasks,
            task,
        }))
    }

    fn get(&self, key: &str, task: i32) -> Waiting {
        let ticket = Ticket::Key { scope: self.scope(), asked: key.to_owned() };
        let gateway = self.gateway.clone();
        tokio::spawn(async move { gateway.wait_as(ticket, Some(TaskId(task))).await })
    }

    /// The answer once it has that code first, of one that blames after a moment.
    async fn found(&self, code: &str) -> (serde_json::Value, String) {
        until_async(code, || async {
            let after = Some(Duration::from_millis(1));
            let found = self.client.diagnose("train", false, after).await.expect("asked").expect("a job");
            let json: serde_json::Value = serde_json::from_str(&found.json).expect("JSON");
            assert_eq!(found.found, !json["verdict"].is_null());
            (json["verdict"]["code"] == code).then_some((json, found.text))
        })
        .await
    }

    /// Waits until so many calls wait.
    async fn wait(&self, calls: u64) {
        until(format!("{calls} calls to wait"), || (self.gateway.waiting_calls() == calls).then_some(()))
            .await;
    }

    async fn is_well(&self) -> String {
        let found = self.client.diagnose("train", false, None).await.expect("asked").expect("a job");
        assert!(!found.found, "{}", found.text);
        found.text
    }
}

#[tokio::test]
async fn v1_who_never_registered_is_named_and_a_job_that_is_not_there_is_none() {
    let gang = Gang::of(4, 100_000).await;
    let _waiting: Vec<_> = (0..3).map(|task| gang.register(task)).collect();
    gang.wait(3).await;
    let (json, text) = gang.found("T7101").await;
    assert_eq!(
        (&json["verdict"]["tasks"], &json["verdict"]["where"]),
        (&serde_json::json!([3]), &"launcher".into())
    );
    assert_eq!((&json["missing"][0]["state"], &json["told_by"]), (&"never-came".into(), &1.into()));
    assert!(text.starts_with("T7101 never-came: task 3 has not registered; 3 wait for it "), "{text}");
    gang.is_well().await;
    assert_eq!(gang.client.diagnose("none", false, None).await.expect("asked"), None);
}

#[tokio::test]
async fn v15_who_registered_and_hung_up_is_told_as_gone() {
    let gang = Gang::of(3, 100_000).await;
    let [_stays, goes] = [0, 1].map(|task| gang.register(task));
    gang.wait(2).await;
    gang.found("T7101").await;
    goes.abort();
    let (json, text) = gang.found("T7102").await;
    assert_eq!(json["verdict"]["tasks"], serde_json::json!([1]), "{text}");
    assert!(json["findings"].as_array().expect("a list").iter().any(|found| found["code"] == "T7101"));
}

#[tokio::test]
async fn v2_v3_who_computes_and_who_waits_for_a_key_are_told_apart() {
    let gang = Gang::of(4, 100_000).await;
    gang.register_all(4).await;
    for one in (0..4).map(|task| gang.arrive("sync_6", task)).collect::<Vec<_>>() {
        one.await.expect("no panic").expect("no outage").expect("passed");
    }
    let text = gang.is_well().await;
    assert!(text.starts_with("nobody waits at the coordinator"), "{text}");
    let _waiting: Vec<_> = [0, 1, 3].map(|task| gang.arrive("sync_7", task)).into();
    gang.wait(3).await;
    let (json, _) = gang.found("T7105").await;
    let missing = &json["missing"][0];
    assert_eq!((&missing["task"], &missing["call"]), (&2.into(), &serde_json::Value::Null));
    let last = &missing["last_call"];
    assert_eq!(
        (&last["kind"], &last["subject"], &last["outcome"]),
        (&"barrier".into(), &"sync_6".into(), &"passed".into())
    );
    assert_eq!(json["verdict"]["sure"], "certain");

    let put = kv::Command::Insert {
        scope: gang.scope(),
        key: "ckpt/shard/1".into(),
        value: Bytes::from_static(b"x"),
        overwrite: false,
    };
    gang.gateway.submit(Command::Kv(put)).await.expect("no outage").expect("written");
    let _gets = gang.get("ckpt/shard/2", 2);
    let (json, text) = gang.found("T7104").await;
    let call = &json["missing"][0]["call"];
    assert_eq!(
        (&call["kind"], &call["subject"], &call["node"]),
        (&"key".into(), &"ckpt/shard/2".into(), &1.into())
    );
    assert!(text.contains("nobody wrote it; 1 key beside it exists"), "{text}");
}

#[tokio::test]
async fn the_last_one_at_a_barrier_is_told_to_have_passed_it() {
    let gang = Gang::of(4, 100_000).await;
    gang.register_all(4).await;
    for barrier in ["sync_5", "sync_6"] {
        let others: Vec<_> = [0, 1, 3].map(|task| gang.arrive(barrier, task)).into();
        gang.wait(3).await;
        for one in others.into_iter().chain([gang.arrive(barrier, 2)]) {
            one.await.expect("no panic").expect("no outage").expect("passed");
        }
    }
    let _waiting: Vec<_> = [0, 1, 3].map(|task| gang.arrive("sync_7", task)).into();
    gang.wait(3).await;
    let (json, text) = gang.found("T7105").await;
    let last = &json["missing"][0]["last_call"];
    assert_eq!((&last["subject"], &last["outcome"]), (&"sync_6".into(), &"passed".into()), "{text}");
}

/// The machine of the node that is asked may be ahead of the log: then everybody would seem to have waited for long.
#[tokio::test]
async fn how_long_somebody_waits_is_told_by_the_time_of_the_log() {
    let gang = Gang::on(Gateway::in_memory_at(TimeMs(5_000_000)), 2, 100_000).await;
    let _waiting = gang.register(0);
    gang.wait(1).await;
    let text = gang.is_well().await;
    assert!(text.contains("the registration since 01:2"), "{text}");
    let mut told = gang.client.status(Duration::from_secs(10), false).await;
    assert_eq!(told.remove(0).status.expect("it answers").jobs_waiting, 0);
}

#[tokio::test]
async fn places_that_were_not_looked_at_are_counted() {
    let gang = Gang::of(2, 100_000).await;
    gang.register_all(2).await;
    let _waiting: Vec<_> = (0..34).map(|number| gang.arrive(&format!("b{number}"), 0)).collect();
    gang.wait(34).await;
    let text = gang.is_well().await;
    assert!(text.contains("\n  places   2 more, opened later, were not looked at"), "{text}");
}

#[tokio::test]
async fn of_a_key_with_a_long_name_nothing_is_said_but_its_end() {
    let gang = Gang::of(2, 100_000).await;
    gang.register_all(2).await;
    let _waits = gang.arrive("sync_7", 0);
    let _gets = gang.get(&format!("{}/shard/2", "x".repeat(200)), 1);
    gang.wait(2).await;
    let (json, text) = gang.found("T7104").await;
    assert_eq!(
        (&json["verdict"]["tasks"], &json["verdict"]["sure"]),
        (&serde_json::json!([1]), &"likely".into())
    );
    assert!(
        text.contains("xxx/shard/2\" for ") && text.contains("what is beside it was not looked up"),
        "{text}"
    );
    assert!(!text.contains("nobody wrote it"), "{text}");
}

#[tokio::test]
async fn v4_two_places_that_wait_for_each_other_are_both_named() {
    let gang = Gang::of(4, 100_000).await;
    gang.register_all(4).await;
    let _waiting: Vec<_> = [0, 1, 3].map(|task| gang.arrive("sync_7", task)).into();
    let _elsewhere = gang.arrive("sync_8", 2);
    gang.wait(4).await;
    let (json, _) = gang.found("T7103").await;
    let verdict = &json["verdict"];
    assert_eq!(verdict["parties"], serde_json::json!({ "sync_7": [0, 1, 3], "sync_8": [2] }));
    assert_eq!((&verdict["tasks"], &verdict["sure"]), (&serde_json::json!([2]), &"certain".into()));
}

#[tokio::test]
async fn v6_an_end_is_the_first_finding_with_its_signal_and_its_last_line() {
    let gang = Gang::of(3, 100_000).await;
    gang.register_all(3).await;
    let how = How::Signalled { signal: 9, core_dumped: false, out_of_memory: true };
    let end = End { how, at: gang.backend.state().now_ms(), tail: "one\nloading shard 2\n".into() };
    gang.gateway.ended(gang.job, TaskId(2), Incarnation(7), end).await.expect("no outage").expect("told");
    let (json, text) = gang.found("T7109").await;
    assert_eq!(
        (&json["verdict"]["tasks"], &json["verdict"]["where"]),
        (&serde_json::json!([2]), &"host".into())
    );
    assert!(
        text.contains("was ended by SIGKILL, out of memory") && text.contains("last line: loading shard 2"),
        "{text}"
    );
}

#[tokio::test]
async fn v7_a_process_that_does_not_run_is_named_by_the_word_of_who_started_it() {
    let gang = Gang::of(4, 100_000).await;
    gang.register_all(4).await;
    let jobs = gang.client.jobs();
    let state = |letter: &str| wire::ProcessState { state: letter.into(), waits_in: String::new() };
    let place = ("train", "a3-7");
    jobs.note_process(place, 2, 7, state("T")).await.expect("told");
    jobs.note_process(place, 9, 7, state("T")).await.expect("there is no such task");
    jobs.note_process(place, 1, 8, state("T")).await.expect("it is of another life");
    let (json, text) = gang.found("T7107").await;
    assert_eq!(
        (&json["verdict"]["tasks"], &json["verdict"]["sure"]),
        (&serde_json::json!([2]), &"certain".into()),
        "{text}"
    );
    assert_eq!(json["missing"][0]["held"]["state"], "stopped");
    jobs.note_process(place, 2, 7, state("")).await.expect("told");
    gang.is_well().await;
}

#[tokio::test]
async fn a_task_that_reports_an_error_is_named_before_those_that_end_of_it() {
    let gang = Gang::of(4, 100_000).await;
    gang.register_all(4).await;
    let (scope, task, code, message) = (gang.scope(), TaskId(3), 13, "boom".to_owned());
    let report = Command::Task(task::Command::ReportError { scope, task, code, message });
    gang.call(report).await.expect("no panic").expect("no outage").expect("taken");
    let (json, text) = gang.found("T7113").await;
    assert_eq!(json["verdict"]["tasks"], serde_json::json!([3]), "{text}");
    assert!(
        text.starts_with("T7113 in-error: task 3 is in error: task 3 reported error 13: boom "),
        "{text}"
    );
    assert!(text.contains("because of others: 0-2"), "{text}");
}

#[tokio::test]
async fn v13_time_outs_that_disagree_are_told_before_anybody_is_given_up() {
    let gang = Gang::of(2, 10_000).await;
    gang.register_all(2).await;
    for task in (0..2).map(TaskId) {
        let beat = gang.gateway.heartbeat(gang.scope(), task, Incarnation(7), Some(DurationMs(50_000))).await;
        beat.expect("no outage").expect("heard");
    }
    let (json, text) = gang.found("T7111").await;
    assert_eq!(json["verdict"]["tasks"], serde_json::json!([0, 1]));
    assert!(text.contains("gives tasks up after 10 s; its clients send heartbeats every 50 s"), "{text}");
}

#[tokio::test]
async fn without_a_leader_it_is_told_from_memory_and_nobody_is_blamed() {
    let gang = Gang::of(2, 100_000).await;
    let _waiting = gang.register(0);
    gang.wait(1).await;
    gang.found("T7101").await;
    gang.backend.depose();
    let (json, text) = gang.found("T7202").await;
    assert!(json["from_memory"]["index"].as_u64().expect("an index") > 0);
    assert_eq!(json["findings"].as_array().expect("a list").len(), 1, "{text}");
    assert!(text.contains("told from the memory of node 1: as of "), "{text}");
}

#[tokio::test]
async fn v16_of_5000_tasks_one_is_missing_in_few_lines_and_bytes() {
    let gang = Gang::of(5_000, 100_000).await;
    let _waiting: Vec<_> = (0..5_000).filter(|task| *task != 4_321).map(|task| gang.register(task)).collect();
    gang.wait(4_999).await;
    let (json, text) = gang.found("T7101").await;
    assert_eq!(json["verdict"]["tasks"], serde_json::json!([4_321]));
    assert!(text.lines().count() <= 24 && json.to_string().len() <= 200_000, "{text}");
    assert!(text.contains("0-4320, 4322-4999 at the registration"), "{text}");
}
