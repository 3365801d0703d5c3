//! Tasks of which an argument cannot come to some store: what a planner makes of having heard of it. The original knew
//! nothing of that.

use tripod_state::ids::TimeMs;
use tripod_state::ray::ids::{Attempt, ObjectId, OperationId, StoreId, WorkerId};
use tripod_state::ray::{
    Answer, Argument, Decision, Peer, Registration, Request, Role, Run, Task, TaskOptions, Unfit,
};

use crate::facts::script::name;
use crate::machine::Machine;

/// Two stores with a worker each that can do `f`, the second one idle; an object at the first, and a task that needs
/// another name of it.
struct Site {
    machine: Machine,
    stores: [StoreId; 2],
    workers: [WorkerId; 2],
    driver: WorkerId,
    object: ObjectId,
    needs_it: OperationId,
}

fn ask(machine: &mut Machine, request: Request) -> Answer {
    machine.ask(None, request).expect("taken")
}

fn process(machine: &mut Machine, role: Role, store: &str) -> WorkerId {
    let (host, store) = ("10.0.0.7".to_owned(), store.to_owned());
    let asked = Registration { host, store, role, attributed: false, extended: false, slots: 1 };
    match ask(machine, Request::RegisterWorker(asked)) {
        Answer::Worker { worker, .. } => worker,
        other => panic!("{other:?}"),
    }
}

fn put(machine: &mut Machine, by: WorkerId) -> ObjectId {
    match ask(machine, Request::Put { worker: by, child: None, hold: true }) {
        Answer::Object { object, .. } => object,
        other => panic!("{other:?}"),
    }
}

impl Site {
    fn new() -> Self {
        let mut machine = Machine::started();
        let addresses = ["10.0.1.1:9000", "10.0.1.2:9000"];
        let stores = addresses.map(|address| {
            match ask(&mut machine, Request::RegisterStore { address: address.to_owned() }) {
                Answer::Store(store) => store,
                other => panic!("{other:?}"),
            }
        });
        let workers = addresses.map(|address| {
            let worker = process(&mut machine, Role::Worker, address);
            ask(&mut machine, Request::RegisterFunction { worker, name: name("f"), results: 0 });
            worker
        });
        let driver = process(&mut machine, Role::Driver, addresses[0]);
        let [object, alias] = [put(&mut machine, driver), put(&mut machine, driver)];
        ask(&mut machine, Request::Ready { object, store: stores[0], run: None });
        ask(&mut machine, Request::Alias { alias, target: object, run: None });
        ask(&mut machine, Request::AddReferences { objects: vec![alias] });
        let needs_it = OperationId(2);
        let mut site = Self { machine, stores, workers, driver, object, needs_it };
        site.submit(vec![Argument::Object(alias)]);
        site.idle(1);
        site
    }

    fn submit(&mut self, arguments: Vec<Argument>) {
        let task = Task { name: name("f"), arguments, results_given: 0 };
        let options = TaskOptions::default();
        ask(
            &mut self.machine,
            Request::Submit { worker: self.driver, task, options, child: None, hint: None },
        );
    }

    fn idle(&mut self, place: usize) {
        ask(&mut self.machine, Request::Idle { worker: self.workers[place], previous: None, run: None });
    }

    fn expire(&mut self, place: usize) {
        let peers = vec![Peer::Worker(self.workers[place])];
        self.machine.lead(Decision::Expire { peers }).expect("taken");
    }

    /// That the object cannot come to these stores.
    fn unfit(&self, places: &[usize]) -> Unfit {
        places.iter().map(|place| (self.object, self.stores[*place])).collect()
    }

    /// Which task is planned for which of the two workers.
    fn plan(&self, places: &[usize]) -> Vec<(OperationId, usize)> {
        let now = TimeMs(self.machine.now_ms);
        let planned = self.machine.scheduler().plan_around(now, 10, &self.unfit(places));
        let place = |worker| self.workers.iter().position(|known| *known == worker).expect("one of them");
        planned.into_iter().map(|planned| (planned.operation, place(planned.worker))).collect()
    }

    /// Whether the worker that runs the task is to give it back if the object does not come.
    fn goes_back(&self, places: &[usize]) -> bool {
        let run = Run { operation: self.needs_it, attempt: Attempt(1) };
        self.machine.scheduler().may_go_elsewhere(run, &self.unfit(places))
    }
}

#[test]
fn a_task_is_left_to_the_workers_of_stores_that_its_arguments_can_come_to() {
    let mut site = Site::new();
    assert_eq!(site.plan(&[]), [(site.needs_it, 1)]);
    assert_eq!(site.plan(&[1]), [], "the other worker can do it when it is idle");
    site.idle(0);
    assert_eq!(site.plan(&[1]), [(site.needs_it, 0)]);
    // Where the object is, it has come, whatever was said.
    let (object, store) = (site.object, site.stores[1]);
    ask(&mut site.machine, Request::Ready { object, store, run: None });
    assert_eq!(site.plan(&[1]), [(site.needs_it, 1)], "the first of the list");
}

#[test]
fn a_task_that_is_left_to_others_keeps_nothing_else_from_being_done() {
    let mut site = Site::new();
    site.submit(vec![]);
    site.submit(vec![]);
    let younger = OperationId(site.needs_it.0 + 1);
    assert_eq!(site.plan(&[1]), [(younger, 1)]);
}

#[test]
fn a_task_that_nobody_else_can_do_is_done_where_it_fails() {
    let mut site = Site::new();
    assert_eq!(site.plan(&[0, 1]), [], "the store that holds it has it, whatever was said");
    site.expire(0);
    assert_eq!(site.plan(&[1]), [(site.needs_it, 1)]);
}

#[test]
fn a_task_is_to_come_back_if_others_may_be_able_to_do_it() {
    let mut site = Site::new();
    let planned = site.machine.scheduler().plan(TimeMs(site.machine.now_ms), 1);
    site.machine.lead(Decision::Assign(planned)).expect("taken");
    assert!(site.goes_back(&[]) && site.goes_back(&[1]));
    site.expire(0);
    assert!(!site.goes_back(&[]) && !site.goes_back(&[1]), "there is nobody else");
    let mut simple = Site::new();
    simple.expire(1);
    simple.idle(0);
    simple.submit(vec![]);
    simple.machine.schedule().expect("it holds");
    assert!(!simple.goes_back(&[0]), "the only other worker is dead");
}
