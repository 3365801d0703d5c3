//! What upstream does not check, and a service that is replicated and does not end must hold.

use std::time::Duration;

use tonic::{Code, Request};
use tripod_gateway::Options;
use tripod_proto::xla::coordination as pb;
use tripod_proto::xla::coordination::coordination_service_client::CoordinationServiceClient as ClientN;
use tripod_proto::xla::distributed_runtime_service_client::DistributedRuntimeServiceClient as ClientL;
use tripod_proto::{metadata, xla};
use tripod_state::job::{Poll, Spec};
use tripod_state::{Command, job};

use crate::support::SERVICE;
use crate::support::payloads::service_error;
use crate::support::stage::{Stage, plain, refused, register};
use crate::support::task::{Task, soon};

/// Upstream's code for "canceled", which clients take for the quiet end of a poll.
const CANCELLED: i32 = 1;

/// A message of the oldest dialect to the job of that name.
fn to_legacy<M>(message: M) -> Request<M> {
    let mut request = Request::new(message);
    request.metadata_mut().insert(metadata::JOB, "legacy".parse().expect("printable"));
    request
}

#[tokio::test(start_paused = true)]
async fn three_dialects_are_served_on_one_connection() {
    let (stage, [task]) = Stage::connected().await;
    let worker = stage.worker(0);
    assert_eq!(worker.register().await.expect("the same life"), SERVICE);
    assert_eq!(worker.beat().await.expect("alive"), SERVICE);
    assert_eq!(task.beat().await.expect("alive"), SERVICE);

    // A task of the oldest dialect is another life, so it is of another job.
    stage.served.create_named("legacy", plain(1)).await;
    let mut legacy = ClientL::new(stage.channel());
    let connect = xla::ConnectRequest {
        protocol_version: 3,
        timeout_milliseconds: 20_000,
        ..xla::ConnectRequest::default()
    };
    let connected = soon(legacy.connect(to_legacy(connect))).await.expect("all are here");
    let session_id = connected.session_id;
    assert_eq!(session_id, SERVICE);
    let (key, value) = ("key".into(), "old".into());
    let set = xla::KeyValueSetRequest { session_id, key, value };
    soon(legacy.key_value_set(to_legacy(set))).await.expect("stored");
    let get = xla::KeyValueGetRequest { session_id, key: "key".into(), timeout_milliseconds: 1000 };
    let found = soon(legacy.key_value_get(to_legacy(get))).await.expect("there");
    assert_eq!(found.value, "old");
    task.insert("key", "new").await.expect("new to this job");
    assert_eq!(task.get("key").await.expect("there"), "new");
}

#[tokio::test(start_paused = true)]
async fn no_poll_is_ever_answered_ok() {
    let options = Options { hold: Duration::from_millis(50), ..Options::default() };
    let stage = Stage::with_options(plain(3), options).await;
    let [first, second, third] = stage.tasks();
    refused(first.poll().await, Code::FailedPrecondition);
    register(&[first.clone(), second.clone(), third.clone()]).await;
    refused(stage.task(3).poll().await, Code::InvalidArgument);

    // Replaced by a newer one, and left behind.
    let old = stage.hold(first.poll()).await;
    let new = stage.hold(first.poll()).await;
    refused(old.end().await, Code::Cancelled);
    first.shut_down().await.expect("it leaves");
    refused(new.end().await, Code::Cancelled);

    // Without a leader; held, and before an error and after it.
    stage.served.backend.depose();
    refused(second.poll().await, Code::Cancelled);
    stage.served.backend.elect();
    let held = stage.hold(second.poll()).await;
    third.report(5, "boom").await.expect("accepted");
    refused(held.end().await, Code::NotFound);
    refused(second.poll().await, Code::NotFound);
    refused(third.poll().await, Code::FailedPrecondition);

    // No such job any more.
    let delete = Command::Job(job::Command::Delete { name: "job".to_owned() });
    stage.served.gateway.submit(delete).await.expect("in memory").expect("deleted");
    refused(second.poll().await, Code::NotFound);
}

#[tokio::test(start_paused = true)]
async fn a_held_poll_is_not_answered_ok_when_its_job_is_deleted() {
    let (stage, [task]) = Stage::connected().await;
    let held = stage.hold(task.poll()).await;
    let delete = Command::Job(job::Command::Delete { name: "job".to_owned() });
    stage.served.gateway.submit(delete).await.expect("in memory").expect("deleted");
    refused(held.end().await, Code::NotFound);
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_could_not_be_repeated_is_not_answered_ok() {
    let (stage, [task]) = Stage::connected().await;
    let mut last = Request::new(pb::PollForErrorRequest {
        incarnations: Some(pb::Incarnations { service_incarnation: SERVICE, ..Default::default() }),
        source_task_id: task.id,
    });
    last.metadata_mut().insert("grpc-previous-rpc-attempts", "4".parse().expect("printable"));
    let mut client = ClientN::new(stage.channel());
    refused(soon(client.poll_for_error(last)).await, Code::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_released_poll_is_not_answered_ok() {
    let stage = Stage::set(Spec { poll: Poll::Release, ..plain(1) }).await;
    let [task] = stage.connect().await;
    refused(task.poll().await, Code::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn an_error_reported_as_cancelled_ends_the_polls_of_others_with_an_error() {
    let (stage, [first, second]) = Stage::connected().await;
    let poll = stage.hold(first.poll()).await;
    second.report(CANCELLED, "stop").await.expect("accepted");
    let status = refused(poll.end().await, Code::Aborted);
    assert_eq!(status.message(), "stop");
    let error = service_error(&status).expect("the service's error");
    assert_eq!((error.is_reported_error, error.source_task_id), (true, 1));
}

#[tokio::test(start_paused = true)]
async fn an_error_reported_as_cancelled_ends_the_heartbeats_of_others() {
    let stage = Stage::set(Spec { poll: Poll::Release, ..plain(2) }).await;
    let [first, second] = stage.connect().await;
    refused(first.poll().await, Code::Cancelled);
    second.report(CANCELLED, "stop").await.expect("accepted");
    assert_eq!(refused(first.beat().await, Code::Aborted).message(), "stop");
}

#[tokio::test(start_paused = true)]
async fn a_report_without_a_code_is_refused_and_the_service_goes_on() {
    let (_stage, [first, second]) = Stage::connected().await;
    refused(first.report(0, "fine").await, Code::InvalidArgument);
    first.beat().await.expect("still alive");
    second.beat().await.expect("still alive");
}

#[tokio::test(start_paused = true)]
async fn a_barrier_call_is_repeated_through_another_port() {
    let (stage, [first, second]) = Stage::connected().await;
    let port = stage.served.beside();
    // The connection ends under the call, and the task calls again elsewhere.
    let channel = stage.served.connect().await;
    let cut = stage.hold(Task::new(&channel, first.id).arrive("b", 0, &[])).await;
    cut.hang_up().await;
    let again = Task::new(&port.connect().await, first.id);
    let waiting = stage.hold(again.arrive("b", 0, &[])).await;
    assert_eq!(second.arrive("b", 0, &[]).await.expect("both are here"), 0);
    assert_eq!(waiting.end().await.expect("both are here"), 0);
    assert_eq!(again.arrive("b", 0, &[]).await.expect("it has passed"), 0);
}

#[tokio::test(start_paused = true)]
async fn every_port_tells_the_same_service_incarnation() {
    let (stage, [task]) = Stage::connected().await;
    let port = stage.served.beside();
    let elsewhere = Task::new(&port.connect().await, task.id);
    let told = [task.register().await, task.beat().await, elsewhere.register().await, elsewhere.beat().await];
    for service in told {
        assert_eq!(service.expect("alive"), SERVICE);
    }
}

/// More keys than are looked through while apply waits.
#[tokio::test(start_paused = true)]
async fn a_directory_of_a_job_of_many_keys_is_whole() {
    let (_stage, [task]) = Stage::connected().await;
    for number in 0..4_100 {
        task.insert(&format!("dir/{number:04}"), "value").await.expect("new");
    }
    task.insert("other/0000", "value").await.expect("new");
    let found = task.directory("dir").await.expect("a list");
    let keys: Vec<&str> = found.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!((keys.len(), keys[0], keys[4_099]), (4_100, "dir/0000", "dir/4099"));
}
