//! Objects that a store brings although no process put them and no task makes them: chunks of tileables that were written in
//! place.

use crate::ids::{FeatureLevel, TimeMs};
use crate::ray::Ray;
use crate::ray::act::{Act, Owner};
use crate::ray::apply::Moment;
use crate::ray::ids::{ObjectId, WorkerId};
use crate::ray::object::Producer;
use crate::ray::view::Reason;

/// The level with which they came: what commands about them mean is what it means there.
const LEVEL: FeatureLevel = FeatureLevel(10);
/// In the place of the process that puts them. Ids are counted up from 0, and this one is never reached.
const NOBODY: WorkerId = WorkerId(u64::MAX);

impl Ray {
    /// The id of an object that a store is to bring, and to call ready as it does any other. It has one reference of nobody,
    /// which `drop_for_graph` gives up once the object is there. No copy of it can be made again.
    pub(crate) fn promise_for_graph(&mut self) -> ObjectId {
        let id = self.new_object(Producer::Put { by: NOBODY, run: None });
        self.index.unwritten.insert((NOBODY, id));
        self.own(Owner::Nobody, id);
        self.grow(id);
        id
    }

    /// Whether an object was brought once, or will not be.
    pub(crate) fn came_to_be(&self, object: ObjectId) -> bool {
        self.objects.get(&object).is_none_or(|object| !object.creation)
    }

    /// Nobody brings these objects any more: their references go, and what was brought of them.
    pub(crate) fn break_promises_for_graph(&mut self, now: TimeMs, objects: &[ObjectId]) {
        let mut act = Act::new(self, Moment { now, level: LEVEL });
        for object in objects {
            act.fail_object(*object, Reason::PutObject);
            if act.ray.owned(Owner::Nobody, *object) > 0 {
                act.ray.disown(Owner::Nobody, *object);
                act.drop_one(*object);
            }
        }
        act.settle();
    }
}
