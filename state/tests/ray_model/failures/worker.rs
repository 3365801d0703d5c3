//! How workers execute what they were told.

use bytes::Bytes;
use tripod_state::ray::ids::{ObjectId, StoreId, WorkerId};
use tripod_state::ray::view::Execution;
use tripod_state::ray::{Answer, Argument, Previous, Request, Run, TaskCall};

use crate::failures::world::World;

impl World {
    pub(super) fn work(&mut self) {
        if let Some(worker) = self.pick_process(false) {
            self.work_of(worker);
        }
    }

    /// One task of one worker, if it has one and can read its arguments; whether it had.
    pub(super) fn work_of(&mut self, worker: WorkerId) -> bool {
        let Some(process) = self.processes.get(&worker) else { return false };
        let (store, Some(run)) = (process.store, process.inbox.front().copied()) else { return false };
        let Some(execution) = self.machine.scheduler().execution(run) else {
            // It was told too late: the attempt is not the current one any more. It reports all the same.
            self.forget(worker, run);
            self.ask(worker, idle(worker, run, true));
            return true;
        };
        let mut failed = execution.name.0 == "boom";
        for argument in &execution.arguments {
            let Argument::Object(id) = argument else { continue };
            match self.read(store, *id) {
                None => return false,
                Some(error) => failed |= error,
            }
        }
        self.forget(worker, run);
        // The task's references are the worker's now.
        let mentioned = crate::upstream::mentioned(&execution.arguments);
        let held = [mentioned, execution.results.clone()].concat();
        self.own(worker, &held);
        if self.execute(worker, store, run, &execution, failed).is_none() {
            return true;
        }
        if self.give_up(worker, &held).is_some() {
            self.ask(worker, idle(worker, run, !failed));
        }
        true
    }

    fn forget(&mut self, worker: WorkerId, run: Run) {
        if let Some(process) = self.processes.get_mut(&worker) {
            process.inbox.retain(|other| *other != run);
        }
    }

    /// Whether a store has a value of that name, and whether it is an error.
    fn read(&self, store: StoreId, id: ObjectId) -> Option<bool> {
        let store = self.stores.get(&store)?;
        let canonical = store.aliases.get(&id).copied().unwrap_or(id);
        if store.errors.contains(&canonical) || store.errors.contains(&id) {
            return Some(true);
        }
        store.holds.contains(&canonical).then_some(false)
    }

    /// The body of the function. `None` if the worker died in it.
    fn execute(
        &mut self,
        worker: WorkerId,
        store: StoreId,
        run: Run,
        execution: &Execution,
        failed: bool,
    ) -> Option<()> {
        let results = &execution.results;
        let first = execution.arguments.iter().find_map(|argument| match argument {
            Argument::Object(id) => Some(*id),
            Argument::Value { .. } => None,
        });
        match (&execution.name.0[..], first) {
            (b"alias", Some(target)) if !failed => {
                let alias = Request::Alias { alias: results[0], target, run: Some(run) };
                self.ask(worker, alias)?.ok();
                return Some(());
            }
            (b"nest", _) if !failed => {
                let inner = self.submit(worker, "value", &[], Some(0))?;
                if self.numbers.one_in(6) {
                    self.processes.remove(&worker);
                    return None;
                }
                let alias = Request::Alias { alias: results[0], target: inner[0], run: Some(run) };
                self.ask(worker, alias)?.ok();
                return self.give_up(worker, &inner);
            }
            (b"write", _) if !failed => return self.write_in_task(worker, store, run, results[0]),
            _ => {}
        }
        for (place, result) in results.iter().enumerate() {
            if execution.store_output.get(place).copied().unwrap_or(true) {
                self.store_ready(store, *result, Some(run));
            }
        }
        if execution.name.0 == "box" && !failed {
            let mut inside: Vec<_> = first.into_iter().filter(|inside| *inside < results[0]).collect();
            if run.attempt.0 > 1 && self.numbers.one_in(2) {
                // Not the same as the first time.
                let put = self.must(worker, Request::Put { worker, child: None, hold: false })?;
                let Answer::Object { object, .. } = put else { self.broken("a put makes no object") };
                inside = vec![object];
            }
            if !inside.is_empty() {
                let add = Request::AddReferences { objects: inside.clone() };
                self.must(worker, add)?;
                if inside[0] > results[0] {
                    self.store_ready(store, inside[0], None);
                }
                // A later attempt may say it again, or something else.
                self.must(worker, Request::Contain { object: results[0], contained: inside })?;
            }
        }
        Some(())
    }

    /// Puts an object, and returns it in place of a value. Most of the workers tell that a later attempt's put is the
    /// same one. `None` if the worker died in it.
    fn write_in_task(&mut self, worker: WorkerId, store: StoreId, run: Run, result: ObjectId) -> Option<()> {
        let child = (!worker.0.is_multiple_of(4)).then_some(0);
        let Answer::Object { object, present } = self.must(
            worker,
            Request::Put { worker, child: child.map(|place| TaskCall { run: None, place }), hold: false },
        )?
        else {
            self.broken("a put is answered with no object")
        };
        self.must(worker, Request::AddReferences { objects: vec![object] })?;
        self.own(worker, &[object]);
        let early = self.numbers.one_in(2);
        if early {
            self.ask(worker, Request::Alias { alias: result, target: object, run: Some(run) })?.ok();
        }
        if self.numbers.one_in(4) {
            self.processes.remove(&worker);
            return None;
        }
        if !present {
            self.store_ready(store, object, Some(run));
        }
        if self.numbers.one_in(4) {
            self.processes.remove(&worker);
            return None;
        }
        if !early {
            self.ask(worker, Request::Alias { alias: result, target: object, run: Some(run) })?.ok();
        }
        self.give_up(worker, &[object])
    }
}

pub(super) fn idle(worker: WorkerId, run: Run, succeeded: bool) -> Request {
    let error = if succeeded { Bytes::new() } else { Bytes::from_static(b"boom") };
    Request::Idle { worker, previous: Some(Previous { succeeded, error }), run: Some(run) }
}
