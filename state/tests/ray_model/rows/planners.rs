//! F24: planners are not part of the log's meaning. Another build may choose otherwise, and whoever reads its log does
//! what it says.

use tripod_state::ids::TimeMs;
use tripod_state::ray::ids::{Attempt, WorkerId};
use tripod_state::ray::{Answer, Assignment, Decision, Request};

use crate::machine::Machine;
use crate::rows::stage::Stage;
use crate::rows::words::{Age, report, submission};

/// Everything is applied by two replicas, which must stay equal.
struct Replicas {
    one: Machine,
    other: Machine,
}

impl Replicas {
    fn ask(&mut self, request: &Request) -> Answer {
        let said = self.one.ask(None, request.clone());
        assert_eq!(self.other.ask(None, request.clone()), said);
        self.compare();
        said.unwrap_or_else(|refusal| panic!("{request:?} is refused: {refusal:?}"))
    }

    fn assign(&mut self, planned: &[Assignment]) -> u64 {
        let said = self.one.lead(Decision::Assign(planned.to_vec()));
        assert_eq!(self.other.lead(Decision::Assign(planned.to_vec())), said);
        self.compare();
        match said {
            Ok(Answer::Assigned { taken }) => taken,
            other => panic!("a plan is answered with {other:?}"),
        }
    }

    fn compare(&self) {
        assert_eq!(self.one.state.digest(), self.other.state.digest());
        assert_eq!(self.one.check(), Ok(()));
    }
}

/// The newest task for the worker that has waited least, and plans that cannot be carried out among the others.
fn newer_build(machine: &Machine) -> Vec<Assignment> {
    let ray = machine.scheduler();
    let (info, tasks) = (ray.info(), ray.tasks(None, usize::MAX));
    let begun = |operation| tasks.iter().find(|task| task.id == operation).map_or(0, |task| task.attempts);
    let mut planned = Vec::new();
    for worker in info.idle.iter().rev() {
        for operation in info.queue.iter().rev().copied() {
            let attempt = Attempt(begun(operation) + 1);
            planned.push(Assignment { operation, attempt, worker: *worker });
        }
    }
    planned
}

#[test]
fn f24_the_log_of_two_planners_is_applied_alike_by_everybody() {
    let mut stage = Stage::new();
    let store = stage.store(Age::Of2016);
    let driver = stage.driver(store);
    let workers = [(); 3].map(|()| stage.worker_of(Age::Of2016, store, &[("f", 1)]));
    let mut replicas = Replicas { one: stage.machine.clone(), other: stage.machine.clone() };
    for _ in 0..12 {
        replicas.ask(&submission(driver, "f", &[], Default::default(), None));
    }
    let mut chosen: Vec<WorkerId> = Vec::new();
    for leader in 0.. {
        replicas.one.now_ms += 3;
        replicas.other.now_ms += 3;
        let planned = if leader % 2 == 0 {
            replicas.one.scheduler().plan(TimeMs(replicas.one.now_ms), 1)
        } else {
            newer_build(&replicas.one)
        };
        let taken = replicas.assign(&planned);
        assert!(taken <= 3, "no worker has two");
        let busy = replicas.one.scheduler().workers().into_iter().find(|worker| !worker.running.is_empty());
        let Some(busy) = busy else { break };
        chosen.push(busy.id);
        let execution = replicas.one.scheduler().execution(busy.running[0]).expect("it is current");
        replicas.ask(&Request::Ready { object: execution.results[0], store, run: None });
        replicas.ask(&report(busy.id, busy.running[0], true));
    }
    assert_eq!(replicas.one.scheduler().task_info().succeeded, 12);
    assert!(workers.iter().all(|worker| chosen.contains(worker)), "{chosen:?}");
}
