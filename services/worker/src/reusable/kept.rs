//! The variables of one life of a worker.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tripod_proto::ray::{Obj, ReusableVar};

use crate::caught::caught;
use crate::reusable::declared::{Declared, Instance};
use crate::reusable::export;

/// Every variable that the worker's program declares. A task takes an instance out; while it waits for others, and a
/// further task runs, that one is given an instance of its own.
pub(crate) struct Reusables {
    variables: Vec<Variable>,
}

pub(super) struct Variable {
    pub(super) declared: Declared,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// What a driver exported last, or why it is no value.
    exported: Option<Arc<Result<Obj, String>>>,
    /// How many exports came. An instance of an earlier one is not kept.
    exports: u64,
    state: State,
}

/// What the next task finds.
#[derive(Default)]
enum State {
    /// Nothing: it makes one.
    #[default]
    Absent,
    Ready(Instance),
    Failed(String),
}

/// An instance that a task has taken out.
pub(super) struct Taken {
    pub(super) instance: Instance,
    /// The task panicked while it used it.
    pub(super) spoiled: bool,
    exports: u64,
}

impl Reusables {
    pub(crate) fn new(declared: &[Declared]) -> Self {
        let variable = |declared: &Declared| Variable { declared: declared.clone(), kept: Mutex::default() };
        Self { variables: declared.iter().map(variable).collect() }
    }

    pub(super) fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// Makes the variables that wait for no driver, on a thread of its own: one that is never made holds up the worker,
    /// and nothing that ends the worker.
    pub(crate) async fn prepare(self: &Arc<Self>) {
        if self.variables.iter().all(|variable| variable.declared.is_exported()) {
            return;
        }
        let (done, prepared) = oneshot::channel::<()>();
        let kept = Arc::clone(self);
        let work = move || {
            let own = kept.variables.iter().filter(|variable| !variable.declared.is_exported());
            own.for_each(Variable::make);
            drop(done);
        };
        match std::thread::Builder::new().name("tripod-variables".to_owned()).spawn(work) {
            // It answers by ending.
            Ok(_) => drop(prepared.await),
            Err(error) => tracing::warn!(%error, "there is no thread for variables: tasks make them"),
        }
    }

    /// Takes what the scheduler sent. Variables of other languages, and those that this program does not declare as
    /// exported, are left alone.
    pub(crate) fn import(&self, variable: &ReusableVar) {
        let Some(value) = export::read(variable) else { return };
        let declared = |known: &&Variable| known.declared.name.as_bytes() == &*variable.name;
        match self.variables.iter().find(declared) {
            Some(known) if known.declared.is_exported() => known.import(value),
            Some(Variable { declared: Declared { name, .. }, .. }) => {
                tracing::warn!(name, "a driver exports a reusable variable that workers make by themselves");
            }
            None => {}
        }
    }
}

impl Variable {
    fn import(&self, value: Result<Obj, String>) {
        let replaced = {
            let mut kept = self.kept.lock();
            kept.exported = Some(Arc::new(value));
            kept.exports += 1;
            std::mem::take(&mut kept.state)
        };
        self.discard(replaced);
        self.make();
    }

    /// Takes an instance out, or makes one.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub(super) fn take(&self) -> Result<Taken, String> {
        let (exported, exports) = {
            let mut kept = self.kept.lock();
            let exports = kept.exports;
            match std::mem::take(&mut kept.state) {
                State::Ready(instance) => return Ok(Taken { instance, spoiled: false, exports }),
                State::Failed(why) => {
                    kept.state = State::Failed(why.clone());
                    return Err(why);
                }
                State::Absent => (kept.exported.clone(), exports),
            }
        };
        let instance = self.declared.make(exported.as_deref())?;
        Ok(Taken { instance, spoiled: false, exports })
    }

    /// Makes the variable anew that a task has used; without an instance, that could not be made for it.
    pub(super) fn renew(&self, used: Option<Taken>) {
        let Some(Taken { instance, spoiled, exports }) = used else { return self.make() };
        if self.declared.is_renewed() && !spoiled && self.wants(exports) {
            self.keep(self.declared.renew(instance), exports);
        } else {
            self.discard(instance);
            self.make();
        }
    }

    /// Makes an instance from the beginning, unless there is one.
    fn make(&self) {
        let (exported, exports) = {
            let kept = self.kept.lock();
            if matches!(kept.state, State::Ready(_)) {
                return;
            }
            (kept.exported.clone(), kept.exports)
        };
        self.keep(self.declared.make(exported.as_deref()), exports);
    }

    /// Whether an instance of that export would be kept.
    fn wants(&self, exports: u64) -> bool {
        let kept = self.kept.lock();
        kept.exports == exports && !matches!(kept.state, State::Ready(_))
    }

    fn keep(&self, made: Result<Instance, String>, exports: u64) {
        let state = match made {
            Ok(instance) => State::Ready(instance),
            Err(why) => {
                let name = &self.declared.name;
                tracing::warn!(name, why, "a reusable variable could not be made: tasks that use it fail");
                State::Failed(why)
            }
        };
        let unwanted = {
            let mut kept = self.kept.lock();
            if kept.exports == exports && !matches!(kept.state, State::Ready(_)) {
                std::mem::replace(&mut kept.state, state)
            } else {
                state
            }
        };
        self.discard(unwanted);
    }

    /// Drops what may panic when it is dropped.
    fn discard<T>(&self, unwanted: T) {
        let dropped = caught(|| {
            drop(unwanted);
            Ok(())
        });
        if let Err(why) = dropped {
            tracing::warn!(name = self.declared.name, why, "the end of a reusable variable failed");
        }
    }
}
