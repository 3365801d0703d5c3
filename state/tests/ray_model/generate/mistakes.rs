//! Calls that are wrong, of each kind.

use bytes::Bytes;
use tripod_state::ray::ids::{FunctionName, ObjectId, StoreId, WorkerId};
use tripod_state::ray::{Argument, Request, Role, Task, TaskOptions};

use crate::generate::calls::registration;
use crate::generate::{Call, Here};

const NOWHERE: ObjectId = ObjectId(1_000);
const NOBODY: WorkerId = WorkerId(77);

impl Here<'_> {
    pub(super) fn mistake(&mut self) -> Vec<Call> {
        let request = match self.numbers.below(5) {
            0 => self.wrong_submit(),
            1 => self.wrong_alias(),
            2 => self.wrong_references(),
            3 => self.wrong_report(),
            _ => self.wrong_name(),
        };
        request.map(|request| (None, request)).into_iter().collect()
    }

    /// One that is gone, or never was.
    fn wrong_object(&mut self) -> ObjectId {
        let gone = self.objects(|id| self.model.object(id).deallocated);
        if self.numbers.one_in(3) { NOWHERE } else { self.numbers.pick(&gone).unwrap_or(NOWHERE) }
    }

    fn wrong_worker(&mut self) -> WorkerId {
        let dead: Vec<_> = (0..self.model.workers.len() as u64)
            .map(WorkerId)
            .filter(|id| !self.model.worker(*id).alive)
            .collect();
        self.numbers.pick(&dead).unwrap_or(NOBODY)
    }

    fn wrong_submit(&mut self) -> Option<Request> {
        let worker = self.workers(|_| true).first().copied()?;
        let unknown = || FunctionName(Bytes::from_static(b"no.such"));
        let known = self.model.functions.first().map_or_else(unknown, |function| function.name.clone());
        let object = self.wrong_object();
        let (mut name, mut arguments, mut results_given, mut submitter) = (known, Vec::new(), 0, worker);
        match self.numbers.below(5) {
            0 => name = unknown(),
            1 => results_given = 1,
            2 => arguments = vec![Argument::Object(object)],
            3 => arguments = vec![Argument::Value { bytes: Bytes::new(), nested: vec![object] }],
            _ => submitter = self.wrong_worker(),
        }
        let task = Task { name, arguments, results_given };
        let options = TaskOptions::default();
        Some(Request::Submit { worker: submitter, task, options, child: None, hint: None })
    }

    fn wrong_alias(&mut self) -> Option<Request> {
        let live = self.live_objects();
        let (one, other) = (self.numbers.pick(&live)?, self.numbers.pick(&live)?);
        let aliases = self.objects(|id| self.model.object(id).target.is_some_and(|target| target != id));
        let wrong = self.wrong_object();
        let (alias, target) = match self.numbers.below(6) {
            0 => (one, one),
            1 => (one, wrong),
            2 => (wrong, one),
            // From the end of a chain back to its begin.
            3 => {
                let begin = self.numbers.pick(&aliases)?;
                let mut end = begin;
                while let Some(target) = self.model.object(end).target
                    && target != end
                {
                    end = target;
                }
                (end, begin)
            }
            4 => (self.numbers.pick(&aliases)?, other),
            _ => {
                let alias = self.numbers.pick(&aliases)?;
                (alias, self.model.object(alias).target?)
            }
        };
        // Whether somebody who repeats himself is told that all is well when all is over, is not laid down.
        let over =
            |id: ObjectId| self.model.objects.get(id.0 as usize).is_some_and(|object| object.deallocated);
        let repeated =
            self.model.objects.get(alias.0 as usize).is_some_and(|object| object.target == Some(target));
        (!(repeated && over(alias))).then_some(Request::Alias { alias, target, run: None })
    }

    fn wrong_references(&mut self) -> Option<Request> {
        let live = self.live_objects();
        let wrong = self.wrong_object();
        let right = self.numbers.pick(&live)?;
        Some(match self.numbers.below(7) {
            0 => Request::AddReferences { objects: Vec::new() },
            1 => Request::DropReferences { objects: Vec::new() },
            2 => Request::AddReferences { objects: vec![right, wrong] },
            3 => Request::DropReferences { objects: vec![wrong] },
            4 => {
                let held = self.model.object(right).held_by(crate::upstream::Owner::Nobody);
                Request::DropReferences { objects: vec![right; held as usize + 1] }
            }
            5 => {
                let listed = self.objects(|id| {
                    let object = self.model.object(id);
                    !object.deallocated && object.listed.as_ref().is_some_and(|inside| !inside.is_empty())
                });
                let object = self.numbers.pick(&listed)?;
                let same = self.model.object(object).listed.clone()?;
                let contained = if self.numbers.one_in(2) { same } else { vec![right; same.len() + 1] };
                Request::Contain { object, contained }
            }
            _ => {
                let open = self.objects(|id| {
                    let object = self.model.object(id);
                    !object.deallocated && object.listed.is_none() && object.target == Some(id)
                });
                Request::Contain { object: self.numbers.pick(&open)?, contained: vec![wrong] }
            }
        })
    }

    fn wrong_report(&mut self) -> Option<Request> {
        let aliases = self.objects(|id| {
            let object = self.model.object(id);
            !object.deallocated && object.target.is_some_and(|target| target != id)
        });
        let drivers = self.workers(|id| self.model.worker(id).driver);
        let live = self.live_objects();
        let worker = self.wrong_worker();
        Some(match self.numbers.below(6) {
            0 => Request::Ready { object: NOWHERE, store: StoreId(0), run: None },
            1 => Request::Ready { object: self.numbers.pick(&live)?, store: StoreId(50), run: None },
            2 => Request::Ready { object: self.numbers.pick(&aliases)?, store: StoreId(0), run: None },
            3 => Request::Idle { worker: self.numbers.pick(&drivers)?, previous: None, run: None },
            4 => Request::Idle { worker, previous: None, run: None },
            _ => Request::Put { worker, child: None, hold: false },
        })
    }

    fn wrong_name(&mut self) -> Option<Request> {
        let object = self.wrong_object();
        let live = self.live_objects();
        let worker = self.wrong_worker();
        let name = FunctionName(Bytes::from_static(b"m.f0"));
        Some(match self.numbers.below(4) {
            0 => Request::Get { worker: self.workers(|_| true).first().copied()?, object },
            1 => Request::Get { worker, object: self.numbers.pick(&live)? },
            2 => Request::RegisterFunction { worker, name, results: 1 },
            _ => Request::RegisterWorker(registration("10.0.0.99:1".to_owned(), Role::Worker, false)),
        })
    }
}
