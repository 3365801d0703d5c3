//! What no honest peer says, and what upstream ended its process for.

use tonic::{Code, Status};
use tripod_proto::metadata;
use tripod_proto::ray as pb;
use tripod_state::ray::view::Availability;

use crate::support::store::Call;
use crate::support::worker::Worker;
use crate::support::{Cluster, by_id, reason, submission, until, with};

const SESSION: &str = "0123456789abcdef0123456789abcdef";

fn refused<R>(answer: Result<R, Status>) -> Code {
    answer.err().map_or(Code::Ok, |status| status.code())
}

fn success() -> Option<pb::ready_for_new_task_request::PreviousTaskInfo> {
    Some(pb::ready_for_new_task_request::PreviousTaskInfo { task_succeeded: true, ..Default::default() })
}

/// The store tells those who wait there; here it must be forgotten, by every name, and nothing else must change.
#[tokio::test(start_paused = true)]
async fn an_object_larger_than_a_store_does_not_come_there_and_stays_where_it_is() {
    let cluster = Cluster::start().await;
    let (near, far) = (cluster.store().await, cluster.store().await);
    let (driver, putter) = (cluster.driver(&near).await, cluster.driver(&far).await);
    let [object, alias] = [cluster.put(putter).await, cluster.put(putter).await];
    cluster.inc(&[object, alias]).await;
    far.hold(object);
    cluster.ready(object, &far).await;
    cluster.alias(alias, object).await.expect("aliased");
    cluster.get(driver, alias).await;
    assert_eq!(near.fetches().await, object);
    assert_eq!(cluster.count(object).await, 2, "the putter's and the delivery's");
    assert_eq!(cluster.fetch_failed(object, near.id, "", true).await.code, 0);
    assert_eq!(near.calls.next().await, Call::Alias { alias, canonical: object });
    assert_eq!(cluster.count(object).await, 1);
    assert_eq!(cluster.availability(object), Some(Availability::Ready));
    // Who asks once more may have it fetched once more; who never was to fetch it changes nothing.
    cluster.get(driver, object).await;
    assert_eq!(near.fetches().await, object);
    cluster.settled().await;
    let before = cluster.seen();
    assert_eq!(cluster.fetch_failed(object, far.id, "", true).await.code, 0);
    assert_eq!(cluster.fetch_failed(99, near.id, &far.address, false).await.code, 0);
    let nobody = cluster.fetch_failed(object, 77, "", true).await;
    assert_eq!((nobody.code, &*nobody.reason), (Code::NotFound as i32, "no-store"));
    assert!(cluster.seen() == before, "it changed something");
}

#[tokio::test(start_paused = true)]
async fn whatever_ended_upstreams_process_is_refused_and_changes_nothing() {
    let cluster = Cluster::at_rest().await;
    let store = cluster.store().await;
    let worker = cluster.worker(&store, &[("f", 1)]).await;
    let driver = cluster.driver(&store).await;
    let [value, alias, gone, container] = [
        cluster.put(driver).await,
        cluster.put(driver).await,
        cluster.put(driver).await,
        cluster.put(driver).await,
    ];
    cluster.inc(&[value, alias, container]).await;
    for object in [value, gone, container] {
        cluster.ready(object, &store).await;
    }
    cluster.alias(alias, value).await.expect("aliased");
    cluster.contain(container, &[]).await.expect("contained");
    let before = cluster.seen();
    let nobody = 77;
    let mut calls = cluster.scheduler();
    let submit = |from, arg| submission(from, "f", arg);
    let with_results = {
        let mut request = submit(driver, vec![]);
        request.task.as_mut().expect("a task").result = vec![0];
        request
    };
    let ready = |objectid, objstoreid| pb::ObjReadyRequest { objectid, objstoreid };
    let means =
        |alias_objectid, target_objectid| pb::AliasObjectIDsRequest { alias_objectid, target_objectid };
    let idle = |workerid| pb::ReadyForNewTaskRequest { workerid, previous_task_info: None };
    let list = |objectid: &[u64]| pb::IncrementRefCountRequest { objectid: objectid.to_vec() };
    let function =
        |workerid| pb::RegisterFunctionRequest { workerid, fnname: "g".into(), num_return_vals: 1 };
    let get = |workerid, objectid| pb::RequestObjRequest { workerid, objectid };
    let answers = [
        ("submit by nobody", refused(calls.submit_task(submit(nobody, vec![])).await)),
        ("submit without a task", {
            refused(calls.submit_task(pb::SubmitTaskRequest { workerid: driver, task: None }).await)
        }),
        ("submit with results", refused(calls.submit_task(with_results).await)),
        ("submit of an unknown object", refused(calls.submit_task(submit(driver, vec![by_id(99)])).await)),
        ("submit of one that is gone", refused(calls.submit_task(submit(driver, vec![by_id(gone)])).await)),
        ("put by nobody", refused(calls.put_obj(pb::PutObjRequest { workerid: nobody, hold: false }).await)),
        ("get by nobody", refused(calls.request_obj(get(nobody, value)).await)),
        ("get of an unknown object", refused(calls.request_obj(get(driver, 99)).await)),
        ("alias of itself", refused(calls.alias_object_i_ds(means(value, value)).await)),
        ("alias of an unknown object", refused(calls.alias_object_i_ds(means(99, value)).await)),
        ("a cycle of aliases", refused(calls.alias_object_i_ds(means(value, alias)).await)),
        ("another alias", refused(calls.alias_object_i_ds(means(alias, container)).await)),
        ("ready at no store", refused(calls.obj_ready(ready(value, nobody)).await)),
        ("ready of an unknown object", refused(calls.obj_ready(ready(99, store.id)).await)),
        ("ready of an alias", refused(calls.obj_ready(ready(alias, store.id)).await)),
        ("ready of one that is gone", refused(calls.obj_ready(ready(gone, store.id)).await)),
        ("no increments", refused(calls.increment_ref_count(list(&[])).await)),
        ("increment of one that is gone", refused(calls.increment_ref_count(list(&[gone])).await)),
        ("no decrements", refused(cluster.try_dec(&[]).await)),
        ("a decrement too many", refused(cluster.try_dec(&[value, value]).await)),
        ("contained twice", refused(cluster.contain(container, &[value]).await)),
        ("contained in nothing", refused(cluster.contain(99, &[value]).await)),
        ("a driver that is ready", refused(calls.ready_for_new_task(idle(driver)).await)),
        ("nobody is ready", refused(calls.ready_for_new_task(idle(nobody)).await)),
        ("a function of nobody", refused(calls.register_function(function(nobody)).await)),
        ("a function of a driver", refused(calls.register_function(function(driver)).await)),
        ("no function", refused(calls.export_function(pb::ExportFunctionRequest { function: None }).await)),
    ];
    for (what, code) in answers {
        let kinds = [Code::NotFound, Code::FailedPrecondition, Code::InvalidArgument];
        assert!(kinds.contains(&code), "{what} is answered with {code:?}");
    }
    assert!(cluster.seen() == before, "nothing has changed");
    drop(worker);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_reports_a_task_that_it_never_had_ends_nobodys_task() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let busy = cluster.worker(&store, &[("f", 0)]).await;
    let driver = cluster.driver(&store).await;
    cluster.submit(driver, "f", vec![]).await;
    assert_eq!(busy.executes().await, "f");
    let liar = cluster.worker(&store, &[]).await;
    let report = || pb::ReadyForNewTaskRequest { workerid: liar.id, previous_task_info: success() };
    // Without an attempt, of another worker's attempt, of an attempt to come, and of no task at all.
    cluster.scheduler().ready_for_new_task(report()).await.expect("it has none, so it is idle");
    for (operation, attempt) in [("0", "1"), ("0", "2"), ("99", "1")] {
        let headers = [(metadata::RAY_OP, operation), (metadata::RAY_ATTEMPT, attempt)];
        let said = cluster.scheduler().ready_for_new_task(with(report(), &headers)).await;
        assert_eq!(said.is_ok(), (operation, attempt) == ("0", "1"), "{said:?}");
    }
    let told = cluster.task_info().await;
    assert_eq!((told.num_succeeded, told.running_task.len()), (0, 1));
    cluster.done(busy.id).await;
    assert_eq!(cluster.task_info().await.num_succeeded, 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_claims_what_it_does_not_have_misleads_nobody_for_long() {
    let cluster = Cluster::start().await;
    // The liar has the lower id, so it is asked first.
    let (near, liar, far) = (cluster.store().await, cluster.store().await, cluster.store().await);
    let driver = cluster.driver(&near).await;
    let putter = cluster.driver(&far).await;
    let [object, pending] = [cluster.put(putter).await, cluster.put(putter).await];
    cluster.inc(&[object, pending]).await;
    cluster.ready(object, &far).await;
    for claimed in [object, 99, u64::MAX] {
        liar.hold(claimed);
    }
    cluster.fail_over();
    until("it is believed at first", || {
        cluster.backend.state().ray(cluster.job).is_some_and(|ray| ray.stores()[1].objects == 1)
    })
    .await;
    let bad = liar.address.clone();
    near.calls.answer(move |call| match call {
        Call::Deliver { from, .. } if *from == bad => Err(Status::not_found("it is not there")),
        _ => Ok(()),
    });
    cluster.get(driver, object).await;
    assert_eq!(near.calls.next().await, Call::Deliver { from: liar.address.clone(), object });
    assert_eq!(near.calls.next().await, Call::Deliver { from: far.address.clone(), object });
    cluster.ready(object, &near).await;
    assert_eq!(cluster.availability(pending), Some(Availability::Pending));
    assert_eq!(cluster.availability(99), None, "what nobody made is nothing");
    cluster.settled().await;
}

#[tokio::test(start_paused = true)]
async fn a_place_in_a_session_that_was_used_for_another_call_is_answered_as_that_was() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let headers = |seq: &'static str| [(metadata::RAY_SESSION, SESSION), (metadata::RAY_SEQ, seq)];
    let worker = Worker::start(&cluster, &store, &headers("1")).await;
    let put = with(pb::PutObjRequest { workerid: worker.id, hold: false }, &headers("2"));
    assert_eq!(cluster.scheduler().put_obj(put).await.expect("put").into_inner().objectid, 0);
    let before = cluster.seen();
    let another = with(pb::KillWorkersRequest {}, &headers("2"));
    let said = cluster.scheduler().kill_workers(another).await;
    let said = said.unwrap_err();
    assert_eq!((said.code(), reason(&said)), (Code::FailedPrecondition, "sequence-reused"));
    let inc = pb::IncrementRefCountRequest { objectid: vec![0] };
    drop(cluster.scheduler().increment_ref_count(with(inc, &headers("2"))).await);
    assert_eq!(cluster.count(0).await, 1);
    let same = |ray: Option<tripod_state::ray::Ray>| ray.map(|ray| (ray.info(), ray.workers(), ray.totals()));
    assert_eq!(same(cluster.seen()), same(before), "nothing was executed");
    // Once it is known to be answered, the place is used up for good.
    let [session, seq] = headers("3");
    let next = with(
        pb::PutObjRequest { workerid: worker.id, hold: false },
        &[session, seq, (metadata::RAY_ACKED, "2")],
    );
    cluster.scheduler().put_obj(next).await.expect("put");
    let late = with(pb::PutObjRequest { workerid: worker.id, hold: false }, &headers("2"));
    let late = cluster.scheduler().put_obj(late).await.unwrap_err();
    assert_eq!(late.code(), Code::FailedPrecondition, "{}", reason(&late));
}
