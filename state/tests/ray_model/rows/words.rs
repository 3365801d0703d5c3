//! What processes do, in short words. Each call is a step, after which the leader may die.

use bytes::Bytes;
use tripod_state::ray::ids::{FunctionName, ObjectId, OperationId, StoreId, WorkerId};
use tripod_state::ray::view::{Availability, Execution, ListedTask, Reason};
use tripod_state::ray::{
    Answer, Argument, Decision, FetchFailure, Peer, Previous, Refusal, Registration, Request, Role, Run,
    Source, Task, TaskCall, TaskOptions,
};

use crate::machine::Said;
use crate::rows::peers::{Client, Process, Shelf, StoredObject, computed};
use crate::rows::stage::Stage;

/// Whether a process says who it is, and calls exactly once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    Ours,
    Of2016,
}

/// In which order a worker's report and those of its results come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    ReadyFirst,
    ReportFirst,
}

pub(super) fn name(text: &str) -> FunctionName {
    FunctionName(Bytes::from(text.to_owned()))
}

pub(super) fn by_reference(objects: &[ObjectId]) -> Vec<Argument> {
    objects.iter().copied().map(Argument::Object).collect()
}

fn address(store: u64) -> String {
    format!("10.0.1.{}:9000", store + 1)
}

impl Stage {
    pub(super) fn store(&mut self, age: Age) -> StoreId {
        let mut session = (age == Age::Ours).then(|| self.session());
        // A store is the next one: so its address is its own.
        let next = self.machine.ray().map_or(0, |ray| ray.stores().len() as u64);
        match self.first_call(&mut session, Request::RegisterStore { address: address(next) }) {
            Ok(Answer::Store(store)) => {
                self.peers.stores.insert(store, Shelf::new(session));
                store
            }
            other => self.broken(&format!("a store cannot register: {other:?}")),
        }
    }

    pub(super) fn process(&mut self, role: Role, age: Age, store: StoreId) -> WorkerId {
        let ours = age == Age::Ours;
        let mut session = ours.then(|| self.session());
        let (host, store_address) = ("10.0.0.7".to_owned(), address(store.0));
        let (attributed, extended) = (ours, ours);
        let wanted = Registration { host, store: store_address, role, attributed, extended, slots: 1 };
        match self.first_call(&mut session, Request::RegisterWorker(wanted)) {
            Ok(Answer::Worker { worker, .. }) => {
                self.peers.processes.insert(worker, Process::new(store, session));
                worker
            }
            other => self.broken(&format!("a process cannot register: {other:?}")),
        }
    }

    pub(super) fn driver(&mut self, store: StoreId) -> WorkerId {
        self.process(Role::Driver, Age::Ours, store)
    }

    /// A worker of ours that waits for tasks.
    pub(super) fn worker(&mut self, store: StoreId, functions: &[(&str, u64)]) -> WorkerId {
        self.worker_of(Age::Ours, store, functions)
    }

    pub(super) fn worker_of(&mut self, age: Age, store: StoreId, functions: &[(&str, u64)]) -> WorkerId {
        let worker = self.process(Role::Worker, age, store);
        for (function, results) in functions {
            self.function(worker, function, *results);
        }
        self.must(worker, Request::Idle { worker, previous: None, run: None });
        worker
    }

    pub(super) fn function(&mut self, worker: WorkerId, function: &str, results: u64) {
        self.must(worker, Request::RegisterFunction { worker, name: name(function), results });
    }

    pub(super) fn ask(&mut self, process: WorkerId, request: Request) -> Said {
        self.call(Client::Process(process), request)
    }

    /// Something that must not be refused.
    pub(super) fn must(&mut self, process: WorkerId, request: Request) -> Answer {
        let text = format!("{request:?}");
        match self.ask(process, request) {
            Ok(answer) => answer,
            Err(refusal) => self.broken(&format!("{text} is refused: {refusal:?}")),
        }
    }

    pub(super) fn add(&mut self, process: WorkerId, objects: &[ObjectId]) {
        if !objects.is_empty() {
            self.must(process, Request::AddReferences { objects: objects.to_vec() });
        }
    }

    pub(super) fn drop(&mut self, process: WorkerId, objects: &[ObjectId]) {
        if !objects.is_empty() {
            self.must(process, Request::DropReferences { objects: objects.to_vec() });
        }
    }

    /// A task with the usual retries; its caller has one reference to each result.
    pub(super) fn submit(&mut self, by: WorkerId, function: &str, arguments: &[ObjectId]) -> Vec<ObjectId> {
        self.submit_as(by, function, arguments, TaskOptions::default(), None)
    }

    pub(super) fn submit_as(
        &mut self,
        by: WorkerId,
        function: &str,
        arguments: &[ObjectId],
        options: TaskOptions,
        child: Option<u32>,
    ) -> Vec<ObjectId> {
        self.add(by, arguments);
        match self.must(by, submission(by, function, arguments, options, child)) {
            Answer::Submitted { results } => results,
            other => self.broken(&format!("a task is answered with {other:?}")),
        }
    }

    /// An id for what a process will write; it has one reference besides the creation's.
    pub(super) fn put_only(&mut self, by: WorkerId, child: Option<u32>) -> (ObjectId, bool) {
        match self.must(by, Request::Put { worker: by, child: child.map(call), hold: false }) {
            Answer::Object { object, present } => {
                self.add(by, &[object]);
                (object, present)
            }
            other => self.broken(&format!("a put is answered with {other:?}")),
        }
    }

    /// A value that a process puts and writes to its store.
    pub(super) fn put(&mut self, by: WorkerId, value: u64) -> ObjectId {
        let (object, _) = self.put_only(by, None);
        self.write(self.store_of(by), object, value, None);
        object
    }

    /// A store has a whole value.
    pub(super) fn write(&mut self, store: StoreId, object: ObjectId, value: u64, run: Option<Run>) {
        let shelf = self.peers.stores.get_mut(&store).expect("it lives");
        shelf.held.insert(object, StoredObject::Value(value));
        self.ready(store, object, run);
    }

    fn ready(&mut self, store: StoreId, object: ObjectId, run: Option<Run>) {
        let said = self.call(Client::Store(store), Request::Ready { object, store, run });
        if said != Ok(Answer::Done) {
            self.broken(&format!("store {store} has {object}, and is told {said:?}"));
        }
    }

    pub(super) fn get(&mut self, by: WorkerId, object: ObjectId) {
        self.must(by, Request::Get { worker: by, object });
    }

    pub(super) fn alias(&mut self, by: WorkerId, alias: ObjectId, target: ObjectId, run: Option<Run>) {
        self.must(by, Request::Alias { alias, target, run });
    }

    pub(super) fn export(&mut self, by: WorkerId, body: &'static str) {
        self.must(by, Request::ExportFunction { body: Bytes::from_static(body.as_bytes()) });
    }

    /// Everything that stores were told to fetch, in order, until there is nothing left to be fetched.
    pub(super) fn fetch(&mut self) {
        loop {
            let due = self.peers.stores.iter().find_map(|(store, shelf)| {
                shelf.fetching.iter().next().map(|(object, from)| (*store, *object, *from))
            });
            let Some((store, object, from)) = due else { return };
            let found = match from {
                Source::Coordinator => Some(StoredObject::Error),
                Source::Store(from) => {
                    self.peers.stores.get(&from).and_then(|from| from.held.get(&object)).copied()
                }
            };
            let shelf = self.peers.stores.get_mut(&store).expect("it fetches");
            shelf.fetching.remove(&object);
            match found {
                Some(held) => {
                    shelf.held.insert(object, held);
                    self.ready(store, object, None);
                }
                None => {
                    let why = FetchFailure::Unfinished;
                    _ = self.call(Client::Store(store), Request::FetchFailed { object, store, why });
                }
            }
        }
    }

    /// The worker that was given something.
    pub(super) fn busy(&self, workers: &[WorkerId]) -> WorkerId {
        let inbox = |worker: &&WorkerId| {
            self.peers.processes.get(worker).is_some_and(|process| !process.inbox.is_empty())
        };
        let busy = workers.iter().find(inbox);
        *busy.unwrap_or_else(|| self.broken("nobody was given the task"))
    }

    /// The next task of a worker, which it must have been told.
    pub(super) fn takes(&mut self, worker: WorkerId) -> (Run, Execution) {
        let run = self.peers.processes.get_mut(&worker).and_then(|process| process.inbox.pop_front());
        let Some(run) = run else { self.broken(&format!("worker {worker} was given nothing")) };
        match self.machine.scheduler().execution(run) {
            Some(execution) => (run, execution),
            None => self.broken(&format!("worker {worker} was given {run:?}, which is over")),
        }
    }

    /// A worker's next task from its begin to its end.
    pub(super) fn runs(&mut self, worker: WorkerId, ends: Ends) -> Run {
        let (run, execution) = self.takes(worker);
        self.completes(worker, run, &execution, ends);
        run
    }

    /// What is left of a task that was taken: it reads, computes, stores, reports, and gives up its references.
    pub(super) fn completes(&mut self, worker: WorkerId, run: Run, execution: &Execution, ends: Ends) {
        if ends == Ends::ReportFirst {
            self.reports(worker, run, true);
        }
        self.stores_results(worker, run, execution);
        if ends == Ends::ReadyFirst {
            self.unpacks(worker, execution);
            self.reports(worker, run, true);
        } else {
            self.unpacks(worker, execution);
        }
    }

    pub(super) fn stores_results(&mut self, worker: WorkerId, run: Run, execution: &Execution) {
        let store = self.store_of(worker);
        let mut arguments = Vec::new();
        for argument in &execution.arguments {
            let Argument::Object(id) = argument else { continue };
            match self.peers.stores[&store].read(*id) {
                Some(StoredObject::Value(value)) => arguments.push(value),
                other => self.broken(&format!("{run:?} reads {id} at store {store} and finds {other:?}")),
            }
        }
        for (place, result) in execution.results.iter().enumerate() {
            if execution.store_output.get(place).copied().unwrap_or(true) {
                self.write(store, *result, computed(&execution.name, &arguments, place), Some(run));
            }
        }
    }

    /// The task's references were the worker's.
    pub(super) fn unpacks(&mut self, worker: WorkerId, execution: &Execution) {
        let mentioned = crate::upstream::mentioned(&execution.arguments);
        self.drop(worker, &[mentioned, execution.results.clone()].concat());
    }

    pub(super) fn reports(&mut self, worker: WorkerId, run: Run, succeeded: bool) {
        self.must(worker, report(worker, run, succeeded));
    }

    /// The report names no attempt.
    pub(super) fn reports_of_2016(&mut self, worker: WorkerId) {
        let previous = Some(Previous { succeeded: true, error: Bytes::new() });
        self.must(worker, Request::Idle { worker, previous, run: None });
    }

    /// Its process ends, and after a while the leader gives it up.
    pub(super) fn worker_dies(&mut self, worker: WorkerId) {
        self.peers.processes.remove(&worker);
        self.decide(&Decision::Expire { peers: vec![Peer::Worker(worker)] });
    }

    /// A store ends with the workers of its machine.
    pub(super) fn store_dies(&mut self, store: StoreId) {
        self.peers.stores.remove(&store);
        let workers: Vec<WorkerId> = self
            .machine
            .scheduler()
            .workers()
            .into_iter()
            .filter(|worker| worker.role == Role::Worker && worker.store == store)
            .map(|worker| worker.id)
            .collect();
        self.peers.processes.retain(|id, _| !workers.contains(id));
        self.decide(&Decision::Expire { peers: vec![Peer::Store(store)] });
    }

    pub(super) fn store_of(&self, process: WorkerId) -> StoreId {
        self.peers.processes[&process].store
    }

    /// What a process finds in its store under an id.
    pub(super) fn reads(&self, process: WorkerId, object: ObjectId) -> Option<StoredObject> {
        self.peers.stores[&self.store_of(process)].read(object)
    }

    pub(super) fn availability(&self, object: ObjectId) -> Option<Availability> {
        self.machine.scheduler().availability(object)
    }

    /// Why an object cannot be had.
    pub(super) fn reason(&self, object: ObjectId) -> Option<Reason> {
        match self.availability(object) {
            Some(Availability::Failed(failure)) => Some(failure.reason),
            _ => None,
        }
    }

    pub(super) fn task(&self, operation: u64) -> ListedTask {
        let tasks = self.machine.scheduler().tasks(None, usize::MAX);
        let found = tasks.into_iter().find(|task| task.id == OperationId(operation));
        found.unwrap_or_else(|| self.broken(&format!("there is no task {operation}")))
    }

    /// The attempts that every task has had.
    pub(super) fn attempts(&self) -> Vec<u32> {
        let mut tasks = self.machine.scheduler().tasks(None, usize::MAX);
        tasks.sort_by_key(|task| task.id);
        tasks.into_iter().map(|task| task.attempts).collect()
    }

    /// All counts as clients are shown them; -1 is deallocated.
    pub(super) fn counts(&self) -> Vec<i64> {
        let shown = |count: Option<u64>| count.map_or(-1, |count| i64::try_from(count).expect("small"));
        self.machine.scheduler().info().counts.into_iter().map(shown).collect()
    }

    /// Whether a refusal is that of a worker that was given up.
    pub(super) fn is_fenced(said: &Said, id: WorkerId) -> bool {
        matches!(said, Err(Refusal::WorkerExpired { worker }) if *worker == id)
    }
}

pub(super) fn submission(
    worker: WorkerId,
    function: &str,
    arguments: &[ObjectId],
    options: TaskOptions,
    child: Option<u32>,
) -> Request {
    let task = Task { name: name(function), arguments: by_reference(arguments), results_given: 0 };
    Request::Submit { worker, task, options, child: child.map(call), hint: None }
}

/// The call of the first of the tasks that its worker was given.
fn call(place: u32) -> TaskCall {
    TaskCall { run: None, place }
}

pub(super) fn report(worker: WorkerId, run: Run, succeeded: bool) -> Request {
    let error = if succeeded { Bytes::new() } else { Bytes::from_static(b"no") };
    Request::Idle { worker, previous: Some(Previous { succeeded, error }), run: Some(run) }
}
