//! The scheduler of August 2016, written directly: vectors, scans and swap-removes in the original's order.
//!
//! Where the original stopped its process, the model refuses. References have owners, since what may be dropped
//! depends on who drops it; an object's count is their sum, and that is the original's count.

mod calls;
mod references;
mod registration;
mod schedule;

use std::collections::{BTreeMap, VecDeque};

use tripod_state::ray::ids::{ExportId, FunctionName, ObjectId, OperationId, StoreId, WorkerId};
use tripod_state::ray::view::{Creator, Info, Kind, Operation, TaskInfo, TaskStatus};
use tripod_state::ray::{Algorithm, Argument, Order, Request};

pub(crate) use calls::mentioned;

use crate::machine::Said;

/// What the model says to a call: an answer, or the names of the refusals that would be right. There are several
/// when a request has several faults, because which of them is found first is not laid down.
pub(crate) type Verdict = Result<tripod_state::ray::Answer, Vec<&'static str>>;

/// Who holds a reference to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// A process that does not name itself.
    Nobody,
    Process(WorkerId),
    /// A task that no worker has yet.
    Task(OperationId),
    Container(ObjectId),
    /// A store that the object is on its way to.
    Delivery(StoreId),
    /// That the object was made and is not there yet.
    Creation,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Object {
    pub(crate) target: Option<ObjectId>,
    /// The aliases that point here.
    pub(crate) reverse: Vec<ObjectId>,
    pub(crate) holds: BTreeMap<Owner, u64>,
    pub(crate) deallocated: bool,
    /// What is inside and is held for it.
    pub(crate) contained: Vec<ObjectId>,
    /// What was said to be inside.
    pub(crate) listed: Option<Vec<ObjectId>>,
    pub(crate) locations: Vec<StoreId>,
}

impl Object {
    pub(crate) fn count(&self) -> u64 {
        self.holds.values().sum()
    }

    pub(crate) fn held_by(&self, owner: Owner) -> u64 {
        self.holds.get(&owner).copied().unwrap_or(0)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Worker {
    pub(crate) driver: bool,
    pub(crate) attributed: bool,
    pub(crate) address: String,
    pub(crate) store: StoreId,
    pub(crate) alive: bool,
    /// It got all exports.
    pub(crate) initialised: bool,
    pub(crate) current: Option<OperationId>,
}

#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) address: String,
    /// Objects on their way to it.
    pub(crate) in_transit: Vec<ObjectId>,
}

#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub(crate) name: FunctionName,
    pub(crate) results: u64,
    /// Ascending.
    pub(crate) workers: Vec<WorkerId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exported {
    Function(ExportId),
    Variable(ExportId),
}

#[derive(Debug, Clone)]
pub(crate) struct Upstream {
    pub(crate) algorithm: Algorithm,
    pub(crate) operations: Vec<Operation>,
    /// By name.
    pub(crate) functions: Vec<Function>,
    pub(crate) idle: Vec<WorkerId>,
    pub(crate) queue: VecDeque<OperationId>,
    pub(crate) gets: Vec<(WorkerId, ObjectId)>,
    /// A store that is to be told what an alias means, the alias, and what it means.
    pub(crate) notices: Vec<(StoreId, ObjectId, ObjectId)>,
    pub(crate) objects: Vec<Object>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) stores: Vec<Store>,
    pub(crate) exports: Vec<Exported>,
    pub(crate) failed: Vec<TaskStatus>,
    pub(crate) succeeded: u64,
    /// What the current call sent. The source of a delivery is not the model's to choose.
    sent: Vec<Sent>,
}

/// What workers and stores are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sent {
    Execute(WorkerId, OperationId),
    Import(WorkerId, ExportId),
    Die(WorkerId),
    Deliver(StoreId, ObjectId),
    NotifyAlias(StoreId, ObjectId, ObjectId),
    Deallocate(StoreId, ObjectId),
}

impl From<&Order> for Sent {
    fn from(order: &Order) -> Self {
        match *order {
            Order::Execute { worker, run } => Self::Execute(worker, run.operation),
            Order::Import { worker, export } => Self::Import(worker, export),
            Order::Die { worker } => Self::Die(worker),
            Order::Deliver { store, object, .. } => Self::Deliver(store, object),
            Order::NotifyAlias { store, alias, canonical } => Self::NotifyAlias(store, alias, canonical),
            Order::Deallocate { store, object } => Self::Deallocate(store, object),
            Order::Cancel { .. } => panic!("the original gave no such order"),
        }
    }
}

impl Upstream {
    pub(crate) fn new(algorithm: Algorithm) -> Self {
        Self {
            algorithm,
            operations: Vec::new(),
            functions: Vec::new(),
            idle: Vec::new(),
            queue: VecDeque::new(),
            gets: Vec::new(),
            notices: Vec::new(),
            objects: Vec::new(),
            workers: Vec::new(),
            stores: Vec::new(),
            exports: Vec::new(),
            failed: Vec::new(),
            succeeded: 0,
            sent: Vec::new(),
        }
    }

    /// One call of `process`, or of nobody who says who he is; what is sent because of it, in that order.
    pub(crate) fn ask(&mut self, process: Option<WorkerId>, request: &Request) -> (Verdict, Vec<Sent>) {
        let client = self.client(process);
        let verdict = self.execute(client, request);
        (verdict, std::mem::take(&mut self.sent))
    }

    pub(crate) fn object(&self, id: ObjectId) -> &Object {
        &self.objects[id.0 as usize]
    }

    fn object_mut(&mut self, id: ObjectId) -> &mut Object {
        &mut self.objects[id.0 as usize]
    }

    pub(crate) fn worker(&self, id: WorkerId) -> &Worker {
        &self.workers[id.0 as usize]
    }

    /// What an id means, if that is known.
    pub(crate) fn canonical(&self, id: ObjectId) -> Option<ObjectId> {
        let mut at = id;
        loop {
            match self.object(at).target {
                None => return None,
                Some(target) if target == at => return Some(at),
                Some(target) => at = target,
            }
        }
    }

    /// Where a value of that name can be had.
    pub(crate) fn locations(&self, id: ObjectId) -> &[StoreId] {
        self.canonical(id).map_or(&[], |canonical| &self.object(canonical).locations)
    }

    /// The function, name and arguments of a task.
    pub(crate) fn task(&self, id: OperationId) -> (&FunctionName, &[Argument], &[ObjectId]) {
        match &self.operations[id.0 as usize].kind {
            Kind::Task { name, arguments, results } => (name, arguments, results),
            other => panic!("{other:?} was queued"),
        }
    }

    pub(crate) fn function(&self, name: &FunctionName) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == *name)
    }

    /// Adds an operation to the computation graph.
    fn record(&mut self, creator: WorkerId, kind: Kind) -> OperationId {
        let worker = self.worker(creator);
        let creator = match worker.current {
            Some(task) => Creator::Task(task),
            None if worker.driver => Creator::Root,
            None => Creator::Nobody,
        };
        let id = OperationId(self.operations.len() as u64);
        self.operations.push(Operation { id, creator, kind });
        id
    }

    pub(crate) fn info(&self) -> Info {
        let count = |object: &Object| (!object.deallocated).then(|| object.count());
        Info {
            queue: self.queue.iter().copied().collect(),
            idle: self.idle.clone(),
            functions: self
                .functions
                .iter()
                .map(|function| (function.name.clone(), function.results, function.workers.clone()))
                .collect(),
            base_object: 0,
            targets: self.objects.iter().map(|object| object.target).collect(),
            counts: self.objects.iter().map(count).collect(),
            base_operation: 0,
            graph: self.operations.clone(),
        }
    }

    pub(crate) fn task_info(&self) -> TaskInfo {
        let running = self.workers.iter().filter_map(|worker| {
            let operation = worker.current?;
            let name = self.task(operation).0.clone();
            Some(TaskStatus { operation, name, worker: worker.address.clone(), error: bytes::Bytes::new() })
        });
        TaskInfo { failed: self.failed.clone(), running: running.collect(), succeeded: self.succeeded }
    }
}

/// Whether what was said is what the model says.
pub(crate) fn agrees(verdict: &Verdict, said: &Said) -> bool {
    match (verdict, said) {
        (Ok(expected), Ok(got)) => expected == got,
        (Err(names), Err(refusal)) => {
            let text = format!("{refusal:?}");
            let name = text.split([' ', '{']).next().unwrap_or_default();
            names.contains(&name)
        }
        _ => false,
    }
}
