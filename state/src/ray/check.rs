//! What must hold after every command, for tests.

use crate::ray::Ray;
use crate::ray::ids::ObjectId;
use crate::ray::object::{Object, Target};
use crate::ray::operation::Stage;
use crate::ray::order::{Order, Source};

impl Ray {
    /// Looks at everything, for tests; it takes long.
    ///
    /// * Each count is the sum over all owners, and every sum and index is what the records say.
    /// * An id that means nothing yet has references, so what ends in one is never deallocated. What is there is
    ///   referred to through at least one id that means it. An object that is on its way has references.
    /// * A task that runs is what its worker has, and nobody else has it. Idle workers are those that could be given
    ///   a task.
    /// * What a worker is to import is there, and only what lives has room beside its slots.
    /// * What is to end runs, and whoever watches a task has been told of its end.
    /// * Nothing refers to what is not there.
    ///
    /// # Errors
    /// The first thing that does not hold.
    pub fn check(&self) -> Result<(), String> {
        let mut again = Self::from_head(&self.head());
        for part in self.parts() {
            ensure(again.add(part), || "a part is out of place".to_owned())?;
        }
        again.derive()?;
        self.check_derived(&again)?;
        for (id, object) in &self.objects {
            self.check_object(*id, object)?;
        }
        self.check_workers()?;
        self.check_tasks()?;
        self.check_later()
    }

    /// What came with level 10.
    fn check_later(&self) -> Result<(), String> {
        ensure(self.ended.is_empty(), || format!("nobody was told of {:?}", self.ended))?;
        ensure(self.incidents.is_empty(), || format!("nobody was told of {:?}", self.incidents))?;
        for (operation, _) in self.demands.iter() {
            ensure(self.entry(*operation).is_some(), || format!("task {operation} needs something"))?;
        }
        for (operation, known) in &self.cancelling {
            let entry = self.entry(*operation);
            let runs = entry.is_some_and(|entry| matches!(entry.stage, Stage::Running { .. }));
            ensure(runs, || format!("task {operation} is to end and does not run"))?;
            let order = known.order.and_then(|order| self.outbox.get(order));
            let own = order.is_none_or(
                |order| matches!(order, Order::Cancel { run, .. } if run.operation == *operation),
            );
            ensure(own, || format!("task {operation} is to end by {order:?}"))?;
        }
        for (id, order) in self.outbox.iter() {
            let Order::Cancel { run, .. } = order else { continue };
            let known = self.cancelling.get(&run.operation).and_then(|known| known.order);
            ensure(known == Some(*id), || format!("order {id} ends {run:?}, which nobody wants"))?;
        }
        for object in self.descriptions.keys() {
            ensure(self.objects.contains_key(object), || format!("object {object} is gone and described"))?;
        }
        for operation in self.watched.keys() {
            let entry = self.entry(*operation).filter(|entry| !entry.is_finished());
            ensure(entry.is_some(), || format!("task {operation} is watched and has ended"))?;
        }
        Ok(())
    }

    fn check_derived(&self, again: &Self) -> Result<(), String> {
        for (id, object) in &self.objects {
            let owned = again.objects[id].count;
            ensure(object.count == owned, || {
                format!("object {id} has count {} and its owners have {owned}", object.count)
            })?;
        }
        let (mine, derived) = (&self.index, &again.index);
        ensure(mine.trees == derived.trees, || format!("trees: {:?} {:?}", mine.trees, derived.trees))?;
        ensure(mine.queue == derived.queue, || format!("queue: {:?} {:?}", mine.queue, derived.queue))?;
        ensure(mine.lineage == derived.lineage, || {
            format!("lineage: {:?} {:?}", mine.lineage, derived.lineage)
        })?;
        ensure(mine.locations == derived.locations, || {
            format!("locations: {:?} {:?}", mine.locations, derived.locations)
        })?;
        ensure(mine == derived, || format!("index: {mine:?} {derived:?}"))?;
        ensure(self == again, || "what the records do not hold".to_owned())
    }

    fn check_object(&self, id: ObjectId, object: &Object) -> Result<(), String> {
        let end = self.index.trees.end(id);
        ensure(id < self.next.object, || format!("object {id} was never given out"))?;
        ensure(self.objects.contains_key(&end), || format!("object {id} means {end}, which is gone"))?;
        ensure(object.target != Target::Unknown || object.count > 0, || format!("object {id} is orphaned"))?;
        ensure(object.transits.is_empty() || object.count > 0, || format!("object {id} is on its way"))?;
        let referenced = self.index.trees.referenced(id).unwrap_or(object.count > 0);
        ensure(referenced, || format!("nothing refers to object {id} or what means the same"))?;
        let plain = object.locations.is_empty() && object.transits.is_empty();
        ensure(plain || object.target == Target::Canonical, || format!("object {id} is somewhere"))?;
        for inner in object.contained.iter().flatten().filter(|inner| inner.held) {
            let there = self.objects.contains_key(&inner.object);
            ensure(there, || format!("object {id} contains {}, which is gone", inner.object))?;
        }
        let stores = object.locations.iter().map(|location| location.store);
        for store in stores.chain(object.transits.iter().map(|transit| transit.store)) {
            let alive = self.stores.get(&store).is_some_and(|store| store.is_alive());
            ensure(alive, || format!("object {id} is at store {store}, which is dead"))?;
        }
        for transit in &object.transits {
            let there = match transit.source {
                Source::Store(source) => object.is_available() && object.is_at(source),
                Source::Coordinator => object.failure.is_some(),
            };
            ensure(there, || format!("object {id} is fetched where it is not, {transit:?}"))?;
        }
        Ok(())
    }

    fn check_workers(&self) -> Result<(), String> {
        for (id, worker) in &self.workers {
            let listed = self.idle.iter().filter(|idle| *idle == id).count();
            ensure(listed == usize::from(self.is_free(*id)), || {
                format!("worker {id} is idle {listed} times")
            })?;
            for run in &worker.running {
                let entry = self.entry(run.operation).filter(|entry| entry.attempt == run.attempt);
                let here = entry.is_some_and(
                    |entry| matches!(entry.stage, Stage::Running { worker, .. } if worker == *id),
                );
                ensure(here && worker.is_alive(), || format!("worker {id} does not run {run:?}"))?;
            }
        }
        for (worker, most) in &self.beside {
            let known = self.executor(*worker).is_ok_and(|known| known.extended && known.slots < *most);
            ensure(known, || format!("worker {worker} has room for {most}"))?;
        }
        for (worker, offers) in &self.offers {
            let lives = self.executor(*worker).is_ok();
            ensure(lives && !offers.is_default(), || format!("worker {worker} offers {offers:?}"))?;
        }
        for (id, order) in self.outbox.iter() {
            let Order::Import { export, .. } = order else { continue };
            ensure(self.exports.get(*export).is_some(), || format!("order {id} is about export {export}"))?;
        }
        let running: usize = self.workers.values().map(|worker| worker.running.len()).sum();
        ensure(running as u64 == self.index.running, || format!("{running} tasks run"))
    }

    fn check_tasks(&self) -> Result<(), String> {
        for (id, found) in &self.operations {
            let Some(entry) = found.entry() else { continue };
            let queued = self.index.queue.waiting.contains_key(id);
            ensure(queued == (entry.stage == Stage::Queued), || format!("task {id} is {:?}", entry.stage))?;
            ensure(queued || entry.holds.is_empty(), || format!("task {id} owns references"))?;
            let most = entry.options.max_retries;
            ensure(most.is_none_or(|most| entry.spent <= most), || format!("task {id} was tried too often"))?;
            let runs = matches!(entry.stage, Stage::Queued | Stage::Running { .. });
            ensure(runs || entry.kept.is_empty(), || format!("task {id} keeps what its calls made"))?;
            for object in entry.holds.iter().chain(&entry.kept) {
                ensure(self.objects.contains_key(object), || {
                    format!("task {id} owns {object}, which is gone")
                })?;
            }
        }
        for (process, object) in self.references.keys() {
            let alive = self.living(*process).is_ok() && self.objects.contains_key(object);
            ensure(alive, || format!("process {process} owns object {object}"))?;
        }
        Ok(())
    }
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}
