//! Tasks, objects, and the reports of workers and stores.

use tripod_state::ray::ids::{ObjectId, StoreId, WorkerId};
use tripod_state::ray::view::{Kind, TaskStatus};
use tripod_state::ray::{Answer, Argument, Previous, Request, Task};

use crate::upstream::{Owner, Upstream, Verdict};

impl Upstream {
    pub(super) fn execute(&mut self, client: Owner, request: &Request) -> Verdict {
        match request {
            Request::RegisterStore { address } => self.register_store(address),
            Request::RegisterWorker(asked) => self.register_worker(asked),
            Request::RegisterFunction { worker, name, results } => {
                self.register_function(*worker, name, *results)
            }
            Request::Submit { worker, task, .. } => self.submit(client, *worker, task),
            Request::Put { worker, hold, .. } => self.put(*worker, hold.then_some(client)),
            Request::Get { worker, object } => self.get(*worker, *object),
            Request::Alias { alias, target, .. } => self.alias(*alias, *target),
            Request::Ready { object, store, .. } => self.ready(*object, *store),
            Request::AddReferences { objects } => self.add_references(client, objects),
            Request::DropReferences { objects } => self.drop_references(client, objects),
            Request::Contain { object, contained } => self.contain(client, *object, contained),
            Request::Idle { worker, previous, .. } => self.idle_report(*worker, previous.as_ref()),
            Request::KillWorkers => self.kill_workers(),
            Request::ExportFunction { .. } => self.export(false),
            Request::ExportVariable { .. } => self.export(true),
            Request::Batch(requests) => Ok(Answer::Batch(self.batch(client, requests))),
            Request::FetchFailed { .. }
            | Request::GiveBack { .. }
            | Request::Leave { .. }
            | Request::SubmitWith { .. }
            | Request::RegisterWorkerWith { .. }
            | Request::Cancel { .. }
            | Request::Describe { .. } => {
                panic!("the original has no such call")
            }
        }
    }

    /// Only of calls that do not fail: what a batch says of failures is laid down elsewhere.
    fn batch(
        &mut self,
        client: Owner,
        requests: &[Request],
    ) -> Vec<Result<Answer, tripod_state::ray::Refusal>> {
        let mut answers = Vec::new();
        for request in requests {
            match self.execute(client, request) {
                Ok(answer) => answers.push(Ok(answer)),
                Err(faults) => panic!("a batch with {request:?}, which is refused with {faults:?}"),
            }
        }
        answers
    }

    fn submit(&mut self, client: Owner, worker: WorkerId, task: &Task) -> Verdict {
        let mut faults = self.faults_of_worker(worker);
        let results = self.function(&task.name).map(|function| function.results);
        if results.is_none() {
            faults.push("FunctionUnknown");
        }
        if task.results_given > 0 {
            faults.push("Invalid");
        }
        let mentioned = mentioned(&task.arguments);
        for id in &mentioned {
            faults.extend(self.faults_of(*id).into_iter().map(|fault| match fault {
                "ObjectUnknown" => "ArgumentUnknown",
                _ => "ArgumentDeallocated",
            }));
        }
        faults.extend(self.faults_of_giving(client, &mentioned));
        let Some(results) = results.filter(|_| faults.is_empty()) else { return Err(faults) };
        let results: Vec<_> = (0..results).map(|_| self.new_object()).collect();
        let kind = Kind::Task {
            name: task.name.clone(),
            arguments: task.arguments.clone(),
            results: results.clone(),
        };
        let id = self.record(worker, kind);
        for result in &results {
            self.hold(*result, client, 1);
            self.hold(*result, Owner::Task(id), 1);
        }
        for id_mentioned in mentioned {
            self.give(id_mentioned, client, Owner::Task(id));
        }
        self.queue.push_back(id);
        self.schedule();
        Ok(Answer::Submitted { results })
    }

    /// Our own field: the caller has a reference from the beginning.
    fn put(&mut self, worker: WorkerId, holder: Option<Owner>) -> Verdict {
        let faults = self.faults_of_worker(worker);
        if !faults.is_empty() {
            return Err(faults);
        }
        let object = self.new_object();
        self.record(worker, Kind::Put(object));
        if let Some(holder) = holder {
            self.hold(object, holder, 1);
        }
        self.schedule();
        Ok(Answer::Object { object, present: false })
    }

    fn get(&mut self, worker: WorkerId, object: ObjectId) -> Verdict {
        let faults = [self.faults_of_worker(worker), self.faults_of(object)].concat();
        if !faults.is_empty() {
            return Err(faults);
        }
        self.record(worker, Kind::Get(object));
        self.gets.push((worker, object));
        self.schedule();
        Ok(Answer::Done)
    }

    fn alias(&mut self, alias: ObjectId, target: ObjectId) -> Verdict {
        let known = |id: ObjectId| self.objects.get(id.0 as usize);
        if known(alias).is_some_and(|object| object.target == Some(target)) && alias != target {
            return Ok(Answer::Done);
        }
        let mut faults = [self.faults_of(alias), self.faults_of(target)].concat();
        if alias == target {
            faults.push("AliasOfItself");
        }
        match known(alias).and_then(|object| object.target) {
            Some(own) if own == alias => faults.push("AliasOfValue"),
            Some(_) => faults.push("AliasedAlready"),
            None => {}
        }
        let mut at = target;
        while let Some(next) = known(at).and_then(|object| object.target)
            && next != at
        {
            at = next;
        }
        if at == alias && alias != target {
            faults.push("AliasCycle");
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        self.object_mut(alias).target = Some(target);
        self.object_mut(target).reverse.push(alias);
        self.release(alias, Owner::Creation);
        self.schedule();
        Ok(Answer::Done)
    }

    fn ready(&mut self, object: ObjectId, store: StoreId) -> Verdict {
        let mut faults = self.faults_of(object);
        if store.0 >= self.stores.len() as u64 {
            faults.push("StoreUnknown");
        }
        let target = self.objects.get(object.0 as usize).and_then(|object| object.target);
        if target.is_some_and(|target| target != object) {
            faults.push("ReadyAlias");
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        self.object_mut(object).target = Some(object);
        let locations = &mut self.object_mut(object).locations;
        if !locations.contains(&store) {
            locations.push(store);
            locations.sort();
        }
        self.stores[store.0 as usize].in_transit.retain(|other| *other != object);
        // The original takes one reference for each report; a report that nothing waits for takes none.
        let owner = [Owner::Creation, Owner::Delivery(store)]
            .into_iter()
            .find(|owner| self.object(object).held_by(*owner) > 0);
        if let Some(owner) = owner {
            self.release(object, owner);
        }
        self.schedule();
        Ok(Answer::Done)
    }

    fn idle_report(&mut self, worker: WorkerId, previous: Option<&Previous>) -> Verdict {
        let mut faults = self.faults_of_worker(worker);
        if self.workers.get(worker.0 as usize).is_some_and(|worker| worker.driver) {
            faults.push("IsDriver");
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        if !self.worker(worker).initialised {
            self.initialise(worker);
        }
        if let Some(operation) = self.worker(worker).current {
            // The original would have given it a second task at the same time.
            let Some(previous) = previous else { return Ok(Answer::Done) };
            let status = TaskStatus {
                operation,
                name: self.task(operation).0.clone(),
                worker: self.worker(worker).address.clone(),
                error: previous.error.clone(),
            };
            self.workers[worker.0 as usize].current = None;
            if previous.succeeded {
                self.succeeded += 1;
            } else {
                self.failed.push(status);
            }
        }
        if !self.idle.contains(&worker) {
            self.idle.push(worker);
        }
        self.schedule();
        Ok(Answer::Done)
    }
}

/// Every occurrence of an object in the arguments, by reference or inside of a value.
pub(crate) fn mentioned(arguments: &[Argument]) -> Vec<ObjectId> {
    let of = |argument: &Argument| match argument {
        Argument::Object(id) => vec![*id],
        Argument::Value { nested, .. } => nested.clone(),
    };
    arguments.iter().flat_map(of).collect()
}
