//! What drivers do, and what tasks do like drivers.

use tripod_state::ray::ids::{ObjectId, WorkerId};
use tripod_state::ray::{Answer, Argument, Request, Task, TaskCall, TaskOptions};

use crate::failures::world::{FUNCTIONS, World, name};

impl World {
    pub(super) fn client_calls(&mut self) {
        let Some(driver) = self.pick_process(true) else { return };
        match self.numbers.below(10) {
            0..5 => self.submit_something(driver),
            5 => self.put(driver),
            6 => self.write(driver),
            7 => self.get(driver),
            _ => self.drop_some(driver),
        }
    }

    fn handles(&self, process: WorkerId) -> Vec<ObjectId> {
        self.processes
            .get(&process)
            .map(|process| process.handles.keys().copied().collect())
            .unwrap_or_default()
    }

    fn submit_something(&mut self, driver: WorkerId) {
        let handles = self.handles(driver);
        let (function, _) = FUNCTIONS[self.numbers.below(FUNCTIONS.len())];
        let mut arguments = Vec::new();
        for _ in 0..self.numbers.below(3) {
            let Some(object) = self.numbers.pick(&handles) else { break };
            arguments.push(if self.numbers.one_in(5) {
                Argument::Value { bytes: bytes::Bytes::new(), nested: vec![object] }
            } else {
                Argument::Object(object)
            });
        }
        self.submit(driver, function, &arguments, None);
    }

    /// Counts the arguments and submits; the caller owns the references of the reply.
    pub(super) fn submit(
        &mut self,
        by: WorkerId,
        function: &str,
        arguments: &[Argument],
        child: Option<u32>,
    ) -> Option<Vec<ObjectId>> {
        let mentioned = crate::upstream::mentioned(arguments);
        if !mentioned.is_empty() {
            self.must(by, Request::AddReferences { objects: mentioned.clone() })?;
        }
        let retries = self.numbers.below(4) as u32;
        let task = Task { name: name(function), arguments: arguments.to_vec(), results_given: 0 };
        let options = TaskOptions { max_retries: Some(retries), retry_exceptions: self.numbers.one_in(4) };
        let child = child.map(|place| TaskCall { run: None, place });
        let submit = Request::Submit { worker: by, task, options, child, hint: None };
        let before = self.machine.scheduler().info().graph.len();
        match self.ask(by, submit)? {
            Ok(Answer::Submitted { results }) => {
                if let Some(operation) = self.machine.scheduler().info().graph.get(before) {
                    self.budgets.insert(operation.id, retries + 1);
                }
                self.own(by, &results);
                Some(results)
            }
            // All workers are gone, and their functions with them: the client keeps what it packed, and drops it.
            Err(tripod_state::ray::Refusal::FunctionUnknown { .. }) => {
                if !mentioned.is_empty() {
                    self.must(by, Request::DropReferences { objects: mentioned })?;
                }
                None
            }
            other => self.broken(&format!("a task was refused: {other:?}")),
        }
    }

    /// Notes that a process has one more reference to each.
    pub(super) fn own(&mut self, process: WorkerId, objects: &[ObjectId]) {
        let Some(process) = self.processes.get_mut(&process) else { return };
        for object in objects {
            *process.handles.entry(*object).or_default() += 1;
        }
    }

    /// Gives up one reference to each.
    pub(super) fn give_up(&mut self, process: WorkerId, objects: &[ObjectId]) -> Option<()> {
        if objects.is_empty() {
            return Some(());
        }
        let body = self.processes.get_mut(&process)?;
        for object in objects {
            let held = body.handles.get_mut(object).expect("only what is owned is given up");
            *held -= 1;
            if *held == 0 {
                body.handles.remove(object);
            }
        }
        self.must(process, Request::DropReferences { objects: objects.to_vec() })?;
        Some(())
    }

    fn put(&mut self, driver: WorkerId) {
        let Some(Answer::Object { object, .. }) =
            self.must(driver, Request::Put { worker: driver, child: None, hold: false })
        else {
            return;
        };
        self.processes.get_mut(&driver).expect("it was answered").unwritten.insert(object);
        if self.must(driver, Request::AddReferences { objects: vec![object] }).is_some() {
            self.own(driver, &[object]);
        }
        if !self.numbers.one_in(3) {
            self.write(driver);
        }
    }

    /// Writes what was put; it may have ids of other objects inside.
    pub(super) fn write(&mut self, driver: WorkerId) {
        let Some(process) = self.processes.get_mut(&driver) else { return };
        let Some(object) = process.unwritten.pop_first() else { return };
        let store = process.store;
        let lower: Vec<_> = self.handles(driver).into_iter().filter(|inside| *inside < object).collect();
        if !self.store_ready(store, object, None) {
            return;
        }
        if let Some(inside) = self.numbers.pick(&lower)
            && self.numbers.one_in(3)
            && self.must(driver, Request::AddReferences { objects: vec![inside] }).is_some()
        {
            self.must(driver, Request::Contain { object, contained: vec![inside] });
        }
    }

    fn get(&mut self, driver: WorkerId) {
        let handles = self.handles(driver);
        if let Some(object) = self.numbers.pick(&handles) {
            self.must(driver, Request::Get { worker: driver, object });
        }
    }

    fn drop_some(&mut self, driver: WorkerId) {
        let handles = self.handles(driver);
        if let Some(object) = self.numbers.pick(&handles) {
            self.give_up(driver, &[object]);
        }
    }
}
