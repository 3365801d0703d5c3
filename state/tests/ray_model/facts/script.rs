//! A pair of schedulers with short words for what processes do.

use bytes::Bytes;
use tripod_state::ray::ids::{FunctionName, ObjectId, OperationId, StoreId, WorkerId};
use tripod_state::ray::{Algorithm, Answer, Argument, Registration, Request, Role, Task, TaskOptions};

use crate::drive::Pair;
use crate::upstream::{Sent, Verdict};

pub(super) struct Script {
    pub(super) pair: Pair,
    /// What the last call sent.
    pub(super) sent: Vec<Sent>,
}

pub(super) fn name(text: &str) -> FunctionName {
    FunctionName(Bytes::from(text.to_owned()))
}

pub(super) fn by_reference(objects: &[ObjectId]) -> Vec<Argument> {
    objects.iter().copied().map(Argument::Object).collect()
}

impl Script {
    pub(super) fn new() -> Self {
        Self::with(Algorithm::LocalityAware)
    }

    pub(super) fn with(algorithm: Algorithm) -> Self {
        Self { pair: Pair::new(algorithm), sent: Vec::new() }
    }

    pub(super) fn ask(&mut self, request: Request) -> Verdict {
        let (verdict, sent) = self.pair.step((None, request)).unwrap_or_else(|fault| panic!("{fault}"));
        self.sent = sent;
        verdict
    }

    fn done(&mut self, request: Request) {
        assert_eq!(self.ask(request), Ok(Answer::Done));
    }

    /// A store on a host of its own.
    pub(super) fn store(&mut self) -> StoreId {
        let address = format!("10.0.1.{}:9000", self.pair.model.stores.len() + 1);
        let Ok(Answer::Store(store)) = self.ask(Request::RegisterStore { address }) else {
            panic!("a store can always register");
        };
        store
    }

    pub(super) fn process(&mut self, role: Role, store: StoreId) -> WorkerId {
        let store = format!("10.0.1.{}:9000", store.0 + 1);
        let host = "10.0.0.7".to_owned();
        let asked = Registration { host, store, role, attributed: false, extended: false, slots: 1 };
        match self.ask(Request::RegisterWorker(asked)) {
            Ok(Answer::Worker { worker, .. }) => worker,
            other => panic!("a worker can always register: {other:?}"),
        }
    }

    pub(super) fn driver(&mut self, store: StoreId) -> WorkerId {
        self.process(Role::Driver, store)
    }

    /// One that can execute the functions and has none to execute yet.
    pub(super) fn worker(&mut self, store: StoreId, functions: &[(&str, u64)]) -> WorkerId {
        let worker = self.process(Role::Worker, store);
        for (function, results) in functions {
            self.function(worker, function, *results);
        }
        worker
    }

    pub(super) fn function(&mut self, worker: WorkerId, function: &str, results: u64) {
        self.done(Request::RegisterFunction { worker, name: name(function), results });
    }

    pub(super) fn idle(&mut self, worker: WorkerId) {
        self.done(Request::Idle { worker, previous: None, run: None });
    }

    /// What a client does to submit a task: it counts the arguments, calls, and gives up the references of the
    /// reply when it has handles of its own, which it keeps.
    pub(super) fn submit(&mut self, by: WorkerId, function: &str, arguments: &[Argument]) -> Vec<ObjectId> {
        let mentioned = crate::upstream::mentioned(arguments);
        self.add(&mentioned);
        let results = self.submit_only(by, function, arguments);
        self.add(&results);
        self.drop(&results);
        results
    }

    /// The call alone.
    pub(super) fn submit_only(
        &mut self,
        by: WorkerId,
        function: &str,
        arguments: &[Argument],
    ) -> Vec<ObjectId> {
        match self.try_submit(by, function, arguments) {
            Ok(Answer::Submitted { results }) => results,
            other => panic!("{function} is known: {other:?}"),
        }
    }

    pub(super) fn try_submit(&mut self, by: WorkerId, function: &str, arguments: &[Argument]) -> Verdict {
        let task = Task { name: name(function), arguments: arguments.to_vec(), results_given: 0 };
        let options = TaskOptions::default();
        self.ask(Request::Submit { worker: by, task, options, child: None, hint: None })
    }

    pub(super) fn put(&mut self, by: WorkerId) -> ObjectId {
        let Ok(Answer::Object { object, .. }) =
            self.ask(Request::Put { worker: by, child: None, hold: false })
        else {
            panic!("who lives can put");
        };
        object
    }

    /// A put whose value is in a store, and to which the putter has one handle.
    pub(super) fn value(&mut self, by: WorkerId, store: StoreId) -> ObjectId {
        let object = self.put(by);
        self.add(&[object]);
        self.ready(object, store);
        object
    }

    pub(super) fn get(&mut self, worker: WorkerId, object: ObjectId) {
        self.done(Request::Get { worker, object });
    }

    pub(super) fn ready(&mut self, object: ObjectId, store: StoreId) {
        self.done(Request::Ready { object, store, run: None });
    }

    pub(super) fn alias(&mut self, alias: ObjectId, target: ObjectId) {
        self.done(Request::Alias { alias, target, run: None });
    }

    pub(super) fn add(&mut self, objects: &[ObjectId]) {
        if !objects.is_empty() {
            self.done(Request::AddReferences { objects: objects.to_vec() });
        }
    }

    pub(super) fn drop(&mut self, objects: &[ObjectId]) {
        if !objects.is_empty() {
            self.done(Request::DropReferences { objects: objects.to_vec() });
        }
    }

    /// The counts of all objects; -1 is deallocated, as clients are shown it.
    pub(super) fn counts(&self) -> Vec<i64> {
        let shown = |count: Option<u64>| count.map_or(-1, |count| i64::try_from(count).expect("small"));
        self.pair.model.info().counts.into_iter().map(shown).collect()
    }

    /// The task that the last call gave to a worker.
    pub(super) fn executed(&self) -> Vec<(WorkerId, OperationId)> {
        let executed = self.sent.iter().filter_map(|sent| match sent {
            Sent::Execute(worker, operation) => Some((*worker, *operation)),
            _ => None,
        });
        executed.collect()
    }
}
