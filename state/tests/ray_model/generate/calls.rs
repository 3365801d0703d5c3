//! The calls that processes make when nothing is wrong.

use bytes::Bytes;
use tripod_state::ray::ids::{FunctionName, ObjectId, StoreId, WorkerId};
use tripod_state::ray::view::Kind;
use tripod_state::ray::{Argument, Previous, Registration, Request, Role, Task, TaskOptions};

use crate::generate::{Call, Here};
use crate::upstream::Owner;

const STORES_MOST: usize = 4;
const WORKERS_MOST: usize = 9;
const FUNCTIONS: usize = 3;

pub(super) fn function(number: usize) -> FunctionName {
    FunctionName(Bytes::from(format!("m.f{number}")))
}

pub(super) fn store_address(number: usize) -> String {
    format!("10.0.0.{}:9{number}", 1 + number / 2)
}

pub(super) fn registration(store: String, role: Role, attributed: bool) -> Registration {
    Registration { host: "10.0.0.7".to_owned(), store, role, attributed, extended: false, slots: 1 }
}

impl Here<'_> {
    pub(super) fn calls(&mut self, what: u32) -> Vec<Call> {
        if self.model.workers.is_empty() || !self.numbers.one_in(5) {
            let missing = self.set_up();
            if !missing.is_empty() {
                return missing;
            }
        }
        match what % 100 {
            0 => self.register_store(),
            1..4 => self.register_worker(Role::Worker),
            4 => self.register_worker(Role::Driver),
            5..9 => self.register_function(),
            9..30 => self.idle(),
            30..52 => self.submit(),
            52..56 => self.put(),
            56..69 => self.ready(),
            69..74 => self.alias(),
            74..79 => self.get(),
            79 => self.add(),
            80..90 => self.drop_some(),
            90..93 => self.contain(),
            93 => self.export(),
            94 => self.kill(),
            95 => self.add_and_drop(),
            _ => self.mistake(),
        }
    }

    /// What is missing for much to happen: two stores, a driver, three workers that know functions and have asked
    /// for a task.
    fn set_up(&mut self) -> Vec<Call> {
        if self.model.stores.len() < 2 {
            return self.register_store();
        }
        if self.model.workers.is_empty() {
            return self.register_worker(Role::Driver);
        }
        let workers = self.workers(|id| !self.model.worker(id).driver);
        if workers.len() < 3 {
            return self.register_worker(Role::Worker);
        }
        let idle = |worker: WorkerId| vec![(None, Request::Idle { worker, previous: None, run: None })];
        for worker in workers {
            let able = self.model.functions.iter().any(|function| function.workers.contains(&worker));
            if !able {
                let number = self.numbers.below(FUNCTIONS);
                let (name, results) = (function(number), number as u64);
                return vec![(None, Request::RegisterFunction { worker, name, results })];
            }
            if !self.model.worker(worker).initialised {
                return idle(worker);
            }
        }
        Vec::new()
    }

    fn register_store(&mut self) -> Vec<Call> {
        let number = self.model.stores.len();
        if number >= STORES_MOST {
            return Vec::new();
        }
        vec![(None, Request::RegisterStore { address: store_address(number) })]
    }

    fn register_worker(&mut self, role: Role) -> Vec<Call> {
        if self.model.workers.len() >= WORKERS_MOST {
            return Vec::new();
        }
        let store = self.numbers.below(self.model.stores.len());
        let attributed = self.numbers.one_in(3);
        vec![(None, Request::RegisterWorker(registration(store_address(store), role, attributed)))]
    }

    fn register_function(&mut self) -> Vec<Call> {
        let workers = self.workers(|id| !self.model.worker(id).driver);
        let Some(worker) = self.numbers.pick(&workers) else { return Vec::new() };
        let number = self.numbers.below(FUNCTIONS);
        let results = if self.numbers.one_in(6) { self.numbers.below(4) } else { number } as u64;
        vec![(None, Request::RegisterFunction { worker, name: function(number), results })]
    }

    fn idle(&mut self) -> Vec<Call> {
        let again = self.numbers.one_in(12);
        let workers =
            self.workers(|id| !self.model.worker(id).driver && (again || !self.model.idle.contains(&id)));
        let Some(worker) = self.numbers.pick(&workers) else { return Vec::new() };
        let busy = self.model.worker(worker).current.is_some();
        let told = if busy { !self.numbers.one_in(20) } else { self.numbers.one_in(20) };
        let succeeded = !self.numbers.one_in(4);
        let error = if succeeded { Bytes::new() } else { Bytes::from_static(b"boom") };
        let previous = told.then_some(Previous { succeeded, error });
        let sender = self.sender(worker);
        vec![(sender, Request::Idle { worker, previous, run: None })]
    }

    fn submit(&mut self) -> Vec<Call> {
        let Some(worker) = self.somebody() else { return Vec::new() };
        let names: Vec<_> = (0..self.model.functions.len()).collect();
        let Some(name) = self.numbers.pick(&names) else { return Vec::new() };
        let name = self.model.functions[name].name.clone();
        let mut arguments: Vec<Argument> = Vec::new();
        for _ in 0..self.numbers.below(4) {
            let Some(object) = self.live_object() else { break };
            let value =
                |times| Argument::Value { bytes: Bytes::from_static(b"v"), nested: vec![object; times] };
            match self.numbers.below(5) {
                0 => arguments.push(value(1)),
                1 => arguments.push(value(2)),
                2 => arguments.extend([Argument::Object(object), Argument::Object(object)]),
                _ => arguments.push(Argument::Object(object)),
            }
        }
        let objects = crate::upstream::mentioned(&arguments);
        let hint = self.hint(&name, &arguments);
        let task = Task { name, arguments, results_given: 0 };
        let submit = Request::Submit { worker, task, options: TaskOptions::default(), child: None, hint };
        self.with_references(worker, objects, submit)
    }

    /// A client takes a reference for each object that it is about to give away.
    fn with_references(&mut self, worker: WorkerId, objects: Vec<ObjectId>, then: Request) -> Vec<Call> {
        let sender = self.sender(worker);
        if objects.is_empty() {
            return vec![(sender, then)];
        }
        let add = Request::AddReferences { objects };
        if self.numbers.one_in(2) {
            return vec![(sender, Request::Batch(vec![add, then]))];
        }
        vec![(sender, add), (sender, then)]
    }

    /// None; or the right one; or one that can not be.
    fn hint(&mut self, name: &FunctionName, arguments: &[Argument]) -> Option<WorkerId> {
        match self.numbers.below(6) {
            0 | 1 => {
                let runnable = arguments.iter().all(|argument| match argument {
                    Argument::Object(id) => !self.model.locations(*id).is_empty(),
                    Argument::Value { .. } => true,
                });
                let able = &self.model.function(name)?.workers;
                let first = self.model.idle.iter().copied().find(|worker| able.contains(worker));
                first.filter(|_| runnable)
            }
            2 => Some(WorkerId(77)),
            3 => {
                let others: Vec<_> = (0..self.model.workers.len() as u64)
                    .map(WorkerId)
                    .filter(|id| !self.model.idle.contains(id))
                    .collect();
                self.numbers.pick(&others)
            }
            _ => None,
        }
    }

    fn put(&mut self) -> Vec<Call> {
        let Some(worker) = self.somebody() else { return Vec::new() };
        let sender = self.sender(worker);
        let hold = self.numbers.one_in(3);
        let mut calls = vec![(sender, Request::Put { worker, child: None, hold })];
        if !hold && !self.numbers.one_in(4) {
            let objects = vec![ObjectId(self.model.objects.len() as u64)];
            calls.push((sender, Request::AddReferences { objects }));
        }
        calls
    }

    /// Objects that were put, or that are results of tasks that a worker has or had.
    fn unfinished(&self) -> Vec<ObjectId> {
        let mut made = Vec::new();
        for operation in &self.model.operations {
            match &operation.kind {
                Kind::Put(object) => made.push(*object),
                Kind::Task { results, .. } if !self.model.queue.contains(&operation.id) => {
                    made.extend(results);
                }
                _ => {}
            }
        }
        made.retain(|id| self.model.object(*id).held_by(Owner::Creation) > 0);
        made
    }

    fn ready(&mut self) -> Vec<Call> {
        let stores = self.model.stores.len();
        let mut arriving = Vec::new();
        for (number, store) in self.model.stores.iter().enumerate() {
            arriving.extend(store.in_transit.iter().map(|object| (*object, StoreId(number as u64))));
        }
        let anywhere = StoreId(self.numbers.below(stores) as u64);
        let written = self.unfinished();
        let there = self.objects(|id| self.model.object(id).locations.len() == 1);
        let (object, store) = match self.numbers.below(12) {
            0 => match self.numbers.pick(&there) {
                Some(object) => (object, anywhere),
                None => return Vec::new(),
            },
            1..6 if !arriving.is_empty() => self.numbers.pick(&arriving).expect("there are some"),
            _ => match self.numbers.pick(&written) {
                Some(object) => (object, anywhere),
                None => return Vec::new(),
            },
        };
        vec![(None, Request::Ready { object, store, run: None })]
    }

    fn alias(&mut self) -> Vec<Call> {
        let unfinished = self.unfinished();
        let Some(alias) = self.numbers.pick(&unfinished) else { return Vec::new() };
        let Some(target) = self.live_object() else { return Vec::new() };
        vec![(None, Request::Alias { alias, target, run: None })]
    }

    fn get(&mut self) -> Vec<Call> {
        let (Some(worker), Some(object)) = (self.somebody(), self.live_object()) else { return Vec::new() };
        self.with_references(worker, vec![object], Request::Get { worker, object })
    }

    fn add(&mut self) -> Vec<Call> {
        let (Some(worker), Some(object)) = (self.somebody(), self.live_object()) else { return Vec::new() };
        let sender = self.sender(worker);
        let objects = vec![object; 1 + self.numbers.below(2)];
        vec![(sender, Request::AddReferences { objects })]
    }

    fn drop_some(&mut self) -> Vec<Call> {
        let mut held = Vec::new();
        // Who waits for an object keeps a reference to it.
        let waited = |id: &ObjectId| self.model.gets.iter().any(|(_, object)| object == id);
        for id in self.live_objects().into_iter().filter(|id| !waited(id)) {
            for (owner, times) in &self.model.object(id).holds {
                match owner {
                    Owner::Nobody => held.push((None, id, *times)),
                    Owner::Process(process) if self.model.worker(*process).alive => {
                        held.push((Some(*process), id, *times));
                    }
                    _ => {}
                }
            }
        }
        let Some((client, first, times)) = self.numbers.pick(&held) else { return Vec::new() };
        let one = self.numbers.one_in(3);
        let mut objects = vec![first; if one { 1 } else { times as usize }];
        let others: Vec<_> = held.iter().filter(|(owner, id, _)| *owner == client && *id != first).collect();
        if let Some((_, other, times)) = self.numbers.pick(&others) {
            objects.extend(vec![*other; 1 + self.numbers.below(*times as usize)]);
        }
        vec![(client, Request::DropReferences { objects })]
    }

    fn contain(&mut self) -> Vec<Call> {
        let open = self.objects(|id| {
            let object = self.model.object(id);
            object.listed.is_none() && object.target == Some(id)
        });
        let (Some(worker), Some(object)) = (self.somebody(), self.numbers.pick(&open)) else {
            return Vec::new();
        };
        let live = self.live_objects();
        let contained: Vec<_> = (0..self.numbers.below(5)).filter_map(|_| self.numbers.pick(&live)).collect();
        let contain = Request::Contain { object, contained: contained.clone() };
        self.with_references(worker, contained, contain)
    }

    fn export(&mut self) -> Vec<Call> {
        let number = self.model.exports.len();
        let body = Bytes::from(format!("export {number}"));
        let name = FunctionName(Bytes::from(format!("v{number}")));
        vec![(
            None,
            if self.numbers.one_in(2) {
                Request::ExportFunction { body }
            } else {
                Request::ExportVariable { name, body }
            },
        )]
    }

    /// Not while a worker waits for an object, has references of its own or may be writing what it put: what becomes of these the original does
    /// not say, since its killed workers never came back to it.
    fn kill(&mut self) -> Vec<Call> {
        let driver = |id: WorkerId| self.model.worker(id).driver;
        let waits = self.model.gets.iter().any(|(worker, _)| !driver(*worker));
        let holds = self.model.objects.iter().any(|object| {
            object.holds.keys().any(|owner| matches!(owner, Owner::Process(id) if !driver(*id)))
        });
        let writes = self.model.operations.iter().any(|operation| {
            matches!(operation.kind, Kind::Put(id) if self.model.object(id).held_by(Owner::Creation) > 0)
        });
        if waits || holds || writes { Vec::new() } else { vec![(None, Request::KillWorkers)] }
    }

    fn add_and_drop(&mut self) -> Vec<Call> {
        let (Some(worker), Some(object)) = (self.somebody(), self.live_object()) else { return Vec::new() };
        let sender = self.sender(worker);
        let add = Request::AddReferences { objects: vec![object, object] };
        let take = Request::DropReferences { objects: vec![object, object] };
        vec![(sender, Request::Batch(vec![add, take]))]
    }
}
