//! What callers try who are somebody, but not the one.

mod support;

use support::{job, owner, proved};
use tripod_gate::{
    Call, Caller, Check, Checks, Decision, Grant, Jobs, Kv, PeerRaft, Port, Ray, RayObjStore, RayScheduler,
    RayWorkerService, Reason, Rpc, Subject, TensorflowCoordinationService as T, XlaCoordinationService as N,
    XlaDistributedRuntimeService as L, decide,
};
use tripod_identity::TaskNumber;

fn on_client_port(caller: &Caller, rpc: Rpc, about: Option<&str>, subject: Subject<'_>) -> Decision {
    let about = about.map(job);
    decide(caller, &Call { rpc, at: Port::Client, job: about.as_ref(), subject })
}

#[test]
fn a_task_speaks_for_itself_and_for_no_other_task() {
    let caller = proved("job/own/task/3", Grant::Nothing);
    let task = |number| Subject::Task(TaskNumber::new(number).unwrap());
    let said = [
        Rpc::XlaCoordinationService(N::Heartbeat),
        Rpc::XlaCoordinationService(N::ShutdownTask),
        Rpc::XlaCoordinationService(N::ReportErrorToService),
        Rpc::TensorflowCoordinationService(T::Heartbeat),
        Rpc::TensorflowCoordinationService(T::ShutdownTask),
        Rpc::TensorflowCoordinationService(T::ReportErrorToTask),
        Rpc::XlaDistributedRuntimeService(L::Heartbeat),
        Rpc::XlaDistributedRuntimeService(L::Shutdown),
    ];
    for rpc in said {
        let of = |subject| on_client_port(&caller, rpc, Some("own"), subject);
        assert_eq!(of(task(3)), Decision::Allowed, "{}", rpc.path());
        assert_eq!(of(task(4)), Decision::Refused(Reason::OtherTask), "{}", rpc.path());
        let later = Decision::InApply(Checks::NONE.and(Check::OwnTask));
        assert_eq!(of(Subject::Unread), later, "{}", rpc.path());
        let elsewhere = on_client_port(&caller, rpc, Some("other"), task(3));
        assert_eq!(elsewhere, Decision::Refused(Reason::OtherJob), "{}", rpc.path());
    }
}

#[test]
fn an_agent_speaks_for_every_task_of_its_job() {
    let caller = proved("job/own/agent", Grant::Nothing);
    let heartbeat = Rpc::XlaCoordinationService(N::Heartbeat);
    for number in [0, 4] {
        let subject = Subject::Task(TaskNumber::new(number).unwrap());
        assert_eq!(on_client_port(&caller, heartbeat, Some("own"), subject), Decision::Allowed);
    }
    let elsewhere = on_client_port(&caller, heartbeat, Some("other"), Subject::Unread);
    assert_eq!(elsewhere, Decision::Refused(Reason::OtherJob));
}

#[test]
fn whoever_belongs_to_a_job_is_refused_in_another_and_checked_later_if_it_is_not_known() {
    let refused = Decision::Refused(Reason::OtherJob);
    for (path, rpc) in [
        ("job/own/task", Rpc::Kv(Kv::Get)),
        ("job/own/agent", Rpc::Jobs(Jobs::Create)),
        ("job/own/driver", Rpc::RayScheduler(RayScheduler::KillWorkers)),
        ("job/own/worker", Rpc::Ray(Ray::Batch)),
    ] {
        let caller = proved(path, Grant::Nothing);
        assert_eq!(on_client_port(&caller, rpc, Some("other"), Subject::Unread), refused, "{path}");
        match on_client_port(&caller, rpc, None, Subject::Unread) {
            Decision::InApply(checks) => assert!(checks.has(Check::OwnJob), "{path}"),
            other => panic!("{path}: {other:?}"),
        }
    }
    let listener = Caller::Listener(job("own"));
    assert_eq!(on_client_port(&listener, Rpc::Kv(Kv::Get), Some("other"), Subject::Unread), refused);
}

#[test]
fn an_owner_operates_its_own_jobs_and_no_other() {
    let delete = Rpc::Jobs(Jobs::Delete);
    for (name, decision) in [
        ("own", Decision::Allowed),
        ("more", Decision::Allowed),
        ("other", Decision::Refused(Reason::OtherJob)),
    ] {
        assert_eq!(on_client_port(&owner(), delete, Some(name), Subject::Unread), decision, "{name}");
    }
    let nothing = proved("operator/olga", Grant::of_jobs([]).unwrap());
    let refused = Decision::Refused(Reason::OtherJob);
    assert_eq!(on_client_port(&nothing, delete, Some("own"), Subject::Unread), refused);
}

#[test]
fn each_part_of_a_batch_is_left_to_be_judged() {
    let caller = proved("job/own/driver", Grant::Nothing);
    let expected = Checks::NONE.and(Check::OwnProcess).and(Check::EachPart);
    let decided = on_client_port(&caller, Rpc::Ray(Ray::Batch), Some("own"), Subject::Unread);
    assert_eq!(decided, Decision::InApply(expected));
}

#[test]
fn only_nodes_speak_as_peers_and_nodes_are_no_operators() {
    for (name, caller) in support::every_caller() {
        let vote = Rpc::PeerRaft(PeerRaft::Vote);
        let decided =
            decide(&caller, &Call { rpc: vote, at: Port::Peer, job: None, subject: Subject::Unread });
        let is_let_through = ["node", "legacy"].contains(&name);
        assert_eq!(decided == Decision::Allowed, is_let_through, "{name}");
    }
    let node = proved("node/n1", Grant::Operator);
    let drain = Rpc::Cluster(tripod_gate::Cluster::DrainNode);
    let decided = on_client_port(&node, drain, None, Subject::Unread);
    assert_eq!(decided, Decision::Refused(Reason::Role));
}

#[test]
fn a_node_joins_under_its_own_name_only() {
    let (own, other) = ("n1".parse().unwrap(), "n2".parse().unwrap());
    let node = proved("node/n1", Grant::Nothing);
    let join = Rpc::Cluster(tripod_gate::Cluster::Join);
    let as_named = |name| on_client_port(&node, join, None, Subject::Node(name));
    assert_eq!(as_named(&own), Decision::InApply(Checks::NONE.and(Check::OwnNode)));
    assert_eq!(as_named(&other), Decision::Refused(Reason::OtherNode));
}

#[test]
fn workers_and_stores_obey_nodes_only() {
    let orders = [
        (Port::Worker, Rpc::RayWorkerService(RayWorkerService::ImportFunction)),
        (Port::Worker, Rpc::RayWorkerService(RayWorkerService::Die)),
        (Port::Store, Rpc::RayObjStore(RayObjStore::StartDelivery)),
    ];
    for (at, rpc) in orders {
        for (name, caller) in support::every_caller() {
            let own = job("own");
            let decided = decide(&caller, &Call { rpc, at, job: Some(&own), subject: Subject::Unread });
            assert_eq!(decided == Decision::Allowed, ["node", "legacy"].contains(&name), "{name}");
        }
    }
    let streamed = |path, at| {
        let (rpc, own) = (Rpc::RayObjStore(RayObjStore::StreamObjTo), job("own"));
        let call = Call { rpc, at, job: Some(&own), subject: Subject::Unread };
        decide(&proved(path, Grant::Nothing), &call) == Decision::Allowed
    };
    assert!(streamed("job/own/store", Port::Store) && !streamed("job/own/driver", Port::Store));
    assert!(streamed("job/own/store", Port::Client) && streamed("job/own/driver", Port::Client));
}
