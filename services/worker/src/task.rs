//! A task before it is submitted.

use bytes::Bytes;
use serde::Serialize;
use tripod_client::wire::{RayCall, RayRun, RayTaskOptions, ray_call::Call};
use tripod_proto::ray::{self, IncrementRefCountRequest, Obj, SubmitTaskRequest, Value};

use crate::outbox::call;
use crate::reference::{ObjectRef, collecting};
use crate::value::{ValueError, ids_inside, to_obj};

/// A call of a function that is to run somewhere.
#[derive(Debug, Clone)]
pub struct Task {
    name: Bytes,
    arguments: Vec<Argument>,
    options: RayTaskOptions,
}

#[derive(Debug, Clone)]
enum Argument {
    /// Kept until the task is submitted.
    Object(ObjectRef),
    /// With the references inside.
    Value(Box<Obj>, #[expect(dead_code, reason = "kept until the task is submitted")] Vec<ObjectRef>),
}

impl Task {
    /// A call of the function of this name, `module.function`.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let name = Bytes::copy_from_slice(name.as_bytes());
        Self { name, arguments: Vec::new(), options: RayTaskOptions::default() }
    }

    /// The next argument, by value. Objects of which only ids are inside, and no references, must be referred to by this
    /// process until the task is submitted.
    ///
    /// # Errors
    /// The value is no object.
    pub fn arg<T: Serialize + ?Sized>(mut self, value: &T) -> Result<Self, ValueError> {
        let (value, inside) = collecting(|| to_obj(value));
        self.arguments.push(Argument::Value(Box::new(value?), inside));
        Ok(self)
    }

    /// The next argument, by reference: the task waits for the object.
    #[must_use]
    pub fn object(mut self, object: &ObjectRef) -> Self {
        self.arguments.push(Argument::Object(object.clone()));
        self
    }

    /// How often it is tried again after its worker died; without it 3.
    #[must_use]
    pub fn max_retries(mut self, times: u32) -> Self {
        self.options.max_retries = Some(i32::try_from(times).unwrap_or(i32::MAX));
        self
    }

    /// It is tried again however often its worker dies, but for what kills every worker.
    #[must_use]
    pub fn retry_for_ever(mut self) -> Self {
        self.options.max_retries = Some(-1);
        self
    }

    /// A function that fails is tried again, too.
    #[must_use]
    pub fn retry_failures(mut self) -> Self {
        self.options.retry_exceptions = true;
        self
    }

    /// Of tasks that can run, one of the highest priority is the next; without a word 0. This and what follows needs
    /// feature level 10.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.options.priority = priority;
        self
    }

    /// It runs only in a worker that has so many processors, in thousandths.
    #[must_use]
    pub fn cpus_milli(mut self, amount: u64) -> Self {
        self.options.cpus_milli = amount;
        self
    }

    /// It runs only in a worker that has so many bytes of memory for its tasks.
    #[must_use]
    pub fn memory_bytes(mut self, amount: u64) -> Self {
        self.options.memory_bytes = amount;
        self
    }

    /// It runs only in a worker that has so much of something, in thousandths.
    #[must_use]
    pub fn resource_milli(mut self, name: &str, amount: u64) -> Self {
        self.options.resources_milli.insert(name.to_owned(), amount);
        self
    }

    /// The calls that submit it for a process, and whether there are two: what a task refers to is counted before the
    /// task takes the references over.
    pub(crate) fn calls(&self, process: u64, child: Option<u32>, run: Option<RayRun>) -> Vec<RayCall> {
        let mut referred = Vec::new();
        let arg = self.arguments.iter().map(|argument| match argument {
            Argument::Object(object) => {
                referred.push(object.id().0);
                Value { id: object.id().0, obj: None }
            }
            Argument::Value(value, _) => {
                referred.extend(ids_inside(value));
                Value { id: 0, obj: Some(Obj::clone(value)) }
            }
        });
        let task = ray::Task { name: self.name.clone(), arg: arg.collect(), result: Vec::new() };
        let submit = SubmitTaskRequest { workerid: process, task: Some(task) };
        let submit =
            RayCall { options: Some(self.options.clone()), child, run, ..call(Call::Submit(submit)) };
        if referred.is_empty() {
            return vec![submit];
        }
        vec![call(Call::Increment(IncrementRefCountRequest { objectid: referred })), submit]
    }

    /// The objects that the task takes over with its last call.
    pub(crate) fn referred(&self) -> Vec<u64> {
        match &self.calls(0, None, None)[..] {
            [RayCall { call: Some(Call::Increment(counted)), .. }, _] => counted.objectid.clone(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn name(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }
}
