//! References to objects, counted by the cluster.

use std::fmt;
use std::sync::Arc;

use crate::ObjectId;
use crate::outbox::{Outbox, decrement};

/// A reference to an object. The object stays as long as one is left, anywhere in the cluster. Clones count as one.
#[derive(Clone)]
pub struct ObjectRef(Arc<Counted>);

struct Counted {
    id: ObjectId,
    outbox: Outbox,
}

impl ObjectRef {
    /// Takes over one reference that this process owns.
    pub(crate) fn owned(id: u64, outbox: &Outbox) -> Self {
        Self(Arc::new(Counted { id: ObjectId(id), outbox: outbox.clone() }))
    }

    /// The object's id, which may stand inside of values. By itself it keeps nothing.
    #[must_use]
    pub fn id(&self) -> ObjectId {
        self.0.id
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.outbox.tell(vec![decrement(vec![self.id.0])]);
    }
}

impl fmt::Debug for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectRef").field(&self.0.id.0).finish()
    }
}
