//! Schedulers and workers, as they are shown.

use tonic::Code;
use tripod_proto::mars::v1 as pb;

use crate::support::{Machine, Node, sum_of_ones};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn the_members_of_the_cluster_are_its_schedulers() {
    let node = Node::start().await;
    let count = node.mars().count_schedulers(pb::CountSchedulersRequest {}).await.expect("told").into_inner();
    assert_eq!(count.count, 1);
    let all = node.mars().get_schedulers(pb::GetSchedulersRequest {}).await.expect("told").into_inner();
    let [scheduler] = &all.schedulers[..] else { panic!("{all:?}") };
    assert_eq!((scheduler.address.as_str(), scheduler.role()), ("10.0.0.1:7700", pb::SchedulerRole::Leader));
    let request = |addresses: &[&str], fields: &[&str]| pb::GetSchedulersInfoRequest {
        addresses: names(addresses),
        filter_fields: names(fields),
    };
    let asked = request(&["elsewhere:1", "10.0.0.1:7700"], &[]);
    let infos = node.mars().get_schedulers_info(asked).await.expect("told").into_inner().infos;
    assert_eq!(infos.iter().map(|info| info.found).collect::<Vec<_>>(), [false, true]);
    assert!(infos[1].applied_index > 0 && !infos[1].version.is_empty());
    let asked = request(&[], &["role"]);
    let infos = node.mars().get_schedulers_info(asked).await.expect("told").into_inner().infos;
    assert!(infos[0].role() == pb::SchedulerRole::Leader && infos[0].version.is_empty());
    let wrong = node.mars().get_schedulers_info(request(&[], &["colour"])).await.expect_err("no field");
    assert_eq!(wrong.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn object_stores_are_workers_and_their_processes_slots() {
    let node = Node::with_session().await;
    let machine = Machine::start(&node).await;
    let count = node.mars().count_workers(pb::CountWorkersRequest::default()).await.expect("told");
    assert_eq!(count.into_inner().count, 1);
    let stopped = pb::GetWorkersRequest { statuses: vec![pb::WorkerStatus::Stopped.into()] };
    assert!(node.mars().get_workers(stopped).await.expect("told").into_inner().workers.is_empty());
    let all = node.mars().get_workers(pb::GetWorkersRequest::default()).await.expect("told").into_inner();
    assert_eq!(all.workers[0].worker_id, machine.address);
    let request = |ids: &[&str], fields: &[&str]| pb::GetWorkersInfoRequest {
        worker_ids: names(ids),
        filter_fields: names(fields),
    };
    let asked = request(&["elsewhere:1", &machine.address], &[]);
    let infos = node.mars().get_workers_info(asked).await.expect("told").into_inner().infos;
    assert_eq!(infos.iter().map(|info| info.found).collect::<Vec<_>>(), [false, true]);
    assert_eq!((infos[1].slots, infos[1].slots_used), (1, 0));
    assert_eq!(infos[1].sessions, ["s"]);
    assert!(infos[1].statistics_age.is_none(), "nobody has said how full it is");
    let asked = request(&[], &["status"]);
    let infos = node.mars().get_workers_info(asked).await.expect("told").into_inner().infos;
    assert!(
        infos[0].slots == 0 && infos[0].worker.as_ref().expect("shown").status() == pb::WorkerStatus::Ready
    );
    let wrong = node.mars().get_workers_info(request(&[], &["colour"])).await.expect_err("no field");
    assert!(wrong.code() == Code::InvalidArgument && wrong.message().contains("storage"));
}

#[tokio::test]
async fn a_worker_that_executes_something_has_no_slot_left_and_its_session_is_not_idle() {
    let node = Node::with_session().await;
    let machine = Machine::holding(&node).await;
    node.submit("g", sum_of_ones()).await.expect("submitted");
    tripod_wait::until("it has something to do", || (!machine.keys().is_empty()).then_some(())).await;
    let infos = node.mars().get_workers_info(pb::GetWorkersInfoRequest::default()).await.expect("told");
    let [info] = &infos.into_inner().infos[..] else { panic!("one worker") };
    assert_eq!((info.slots, info.slots_used), (1, 1));
    assert_eq!((info.resource["cpu_total"], info.resource["cpu_avail"]), (1.0, 0.0));
    assert_eq!(info.env["cpus"], "1", "as every worker has that says nothing");
    let listed = node.mars().list_sessions(pb::ListSessionsRequest {}).await.expect("listed").into_inner();
    assert!(listed.sessions[0].last_idle_time.is_none(), "something runs");
    let progress = node.info("g", &["progress", "subtask_counts"]).await.expect("told");
    let counts = progress.subtask_counts.expect("counts");
    assert!(progress.progress == 0.0 && counts.succeeded == 0 && counts.running > 0, "{counts:?}");
}
