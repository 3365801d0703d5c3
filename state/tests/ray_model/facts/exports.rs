//! Exports reach each worker ahead of its tasks; what is left when workers are ended.

use tripod_state::ray::ids::ExportId;
use tripod_state::ray::{Answer, Request};

use crate::facts::script::Script;
use crate::upstream::Sent;

#[test]
fn an_export_goes_to_who_is_there_and_to_who_comes_and_never_to_a_driver() {
    let mut script = Script::new();
    let store = script.store();
    script.driver(store);
    let live = [script.worker(store, &[]), script.worker(store, &[])];
    for worker in live {
        script.idle(worker);
    }
    let early = script.worker(store, &[]);
    script.export("one");
    assert_eq!(script.sent, live.map(|worker| Sent::Import(worker, ExportId(0))));
    script.export("two");
    let all = |worker| [Sent::Import(worker, ExportId(0)), Sent::Import(worker, ExportId(1))];
    script.idle(early);
    assert_eq!(script.sent, all(early));
    script.idle(early);
    assert_eq!(script.sent, []);
    let late = script.worker(store, &[]);
    script.idle(late);
    assert_eq!(script.sent, all(late));
}

#[test]
fn a_worker_that_comes_late_has_all_exports_ahead_of_its_first_task() {
    let mut script = Script::new();
    let store = script.store();
    let driver = script.driver(store);
    let worker = script.worker(store, &[("f", 0)]);
    let body = bytes::Bytes::from_static(b"v");
    let name = crate::facts::script::name("v");
    script.ask(Request::ExportVariable { name, body }).expect("anything can be exported");
    script.export("one");
    script.submit(driver, "f", &[]);
    script.idle(worker);
    let imports = [ExportId(1), ExportId(0)].map(|export| Sent::Import(worker, export));
    assert_eq!(script.sent[..2], imports);
    assert!(matches!(script.sent[2..], [Sent::Execute(..)]));
}

#[test]
fn workers_are_ended_only_when_there_is_nothing_to_do() {
    let mut script = Script::new();
    let store = script.store();
    let driver = script.driver(store);
    let worker = script.worker(store, &[("f", 0)]);
    script.submit(driver, "f", &[]);
    let kill = |script: &mut Script| script.ask(Request::KillWorkers);
    assert_eq!(kill(&mut script), Ok(Answer::Killed(false)), "a task is queued");
    script.idle(worker);
    assert_eq!(kill(&mut script), Ok(Answer::Killed(false)), "a worker is busy");
    script.finish(worker);
    let unready = script.worker(store, &[("g", 0)]);
    script.export("one");
    assert_eq!(kill(&mut script), Ok(Answer::Killed(true)));
    assert_eq!(script.sent, [Sent::Die(worker), Sent::Die(unready)]);
    assert!(script.pair.model.functions.is_empty() && script.pair.model.idle.is_empty());
    assert_eq!(script.try_submit(driver, "f", &[]), Err(vec!["FunctionUnknown"]));
    assert_eq!(kill(&mut script), Ok(Answer::Killed(true)), "there is nobody");
    assert_eq!(script.sent, []);
    let idle = Request::Idle { worker, previous: None, run: None };
    assert_eq!(script.ask(idle), Err(vec!["WorkerExpired"]));
    let next = script.worker(store, &[("f", 0)]);
    script.idle(next);
    assert_eq!(script.sent, [Sent::Import(next, ExportId(0))]);
}
