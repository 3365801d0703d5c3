//! References to objects, counted by the cluster.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ObjectId;
use crate::outbox::{Outbox, increment};

/// A reference to an object. The object stays as long as one is left, anywhere in the cluster. Clones count as one.
///
/// References may be inside of values: of arguments and results, and of what is put. Whoever reads such a value, as a
/// driver or within a task, gets references of its own.
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
        self.outbox.give_up(vec![self.id.0]);
    }
}

thread_local! {
    /// Where references go that are written, while somebody collects them.
    static WRITTEN: RefCell<Option<Vec<ObjectRef>>> = const { RefCell::new(None) };
    /// Whose references are read.
    static READER: RefCell<Option<Outbox>> = const { RefCell::new(None) };
}

/// Writes something, and keeps the references that were inside: until the object that they are in has its own.
pub(crate) fn collecting<T>(write: impl FnOnce() -> T) -> (T, Vec<ObjectRef>) {
    let outer = WRITTEN.replace(Some(Vec::new()));
    let written = write();
    (written, WRITTEN.replace(outer).unwrap_or_default())
}

/// Reads something for a process, whose the references will be that are inside. What they were inside of must still be
/// referred to.
pub(crate) fn reading<T>(outbox: &Outbox, read: impl FnOnce() -> T) -> T {
    /// A function may panic, and its thread runs another one.
    struct Restore(Option<Outbox>);

    impl Drop for Restore {
        fn drop(&mut self) {
            READER.set(self.0.take());
        }
    }

    let _restore = Restore(READER.replace(Some(outbox.clone())));
    read()
}

impl Serialize for ObjectRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        WRITTEN.with_borrow_mut(|written| {
            if let Some(written) = written {
                written.push(self.clone());
            }
        });
        self.id().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ObjectRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let id = ObjectId::deserialize(deserializer)?;
        READER.with_borrow(|reader| {
            let outbox = reader
                .as_ref()
                .ok_or_else(|| D::Error::custom("references are read by drivers and tasks"))?;
            // It comes before everything that this process gives up later.
            outbox.tell(vec![increment(vec![id.0])]);
            Ok(Self::owned(id.0, outbox))
        })
    }
}

impl fmt::Debug for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectRef").field(&self.0.id.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{from_obj, ids_inside, to_obj};

    #[test]
    fn references_inside_of_values_are_kept_when_written_and_new_ones_when_read() {
        let (outbox, _letters) = Outbox::scripted();
        let references: Vec<_> = [3, 5, 3].map(|id| ObjectRef::owned(id, &outbox)).into();
        let (object, kept) = collecting(|| to_obj(&references).unwrap());
        assert_eq!(ids_inside(&object), [3, 5, 3]);
        assert_eq!(kept.iter().map(|kept| kept.id().0).collect::<Vec<_>>(), [3, 5, 3]);
        assert!(from_obj::<Vec<ObjectRef>>(&object).is_err(), "nobody reads them");
        let read: Vec<ObjectRef> = reading(&outbox, || from_obj(&object).unwrap());
        assert_eq!(read.iter().map(ObjectRef::id).collect::<Vec<_>>(), [3, 5, 3].map(ObjectId));
        let panicked = std::panic::catch_unwind(|| reading(&Outbox::scripted().0, || panic!("on purpose")));
        assert!(panicked.is_err() && READER.with_borrow(Option::is_none));
    }
}
