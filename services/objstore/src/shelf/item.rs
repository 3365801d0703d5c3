//! Where the bytes of ready objects are, and which of them were used least lately.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::ids::ObjectId;
use crate::spill::Spilled;
use crate::value::Value;

/// Where an object's bytes are.
#[derive(Debug)]
pub(super) enum Location {
    Memory(Arc<Value>),
    /// They are being written to disk; until then they can be read.
    Spilling(Arc<Value>),
    Disk(Arc<Spilled>),
    /// They are being read from disk.
    Restoring(Arc<Spilled>),
}

#[derive(Debug)]
struct Item {
    location: Location,
    /// Its key in `order`, if it is in memory.
    touched: u64,
}

/// The bytes of all ready objects.
#[derive(Debug, Default)]
pub(super) struct Items {
    items: HashMap<ObjectId, Item>,
    /// Those in memory, the one first that was used least lately.
    order: BTreeMap<u64, ObjectId>,
    touches: u64,
}

/// Pinned objects that are passed over before an attempt to make room is given up. They are counted as used just
/// now, so that the next attempt begins behind them.
const PASSED_OVER_MAX: usize = 4096;

impl Items {
    /// The place of an object, as used just now.
    pub(super) fn touch(&mut self, id: ObjectId) -> Option<&mut Location> {
        let item = self.items.get_mut(&id)?;
        if matches!(item.location, Location::Memory(_)) {
            self.order.remove(&item.touched);
            self.touches += 1;
            item.touched = self.touches;
            self.order.insert(item.touched, id);
        }
        Some(&mut item.location)
    }

    pub(super) fn location(&self, id: ObjectId) -> Option<&Location> {
        self.items.get(&id).map(|item| &item.location)
    }

    pub(super) fn set(&mut self, id: ObjectId, location: Location) {
        self.remove(id);
        self.touches += 1;
        let in_memory = matches!(location, Location::Memory(_));
        self.items.insert(id, Item { location, touched: self.touches });
        if in_memory {
            self.order.insert(self.touches, id);
        }
    }

    pub(super) fn remove(&mut self, id: ObjectId) {
        if let Some(item) = self.items.remove(&id) {
            self.order.remove(&item.touched);
        }
    }

    /// The object in memory that was used least lately, is not pinned, and takes memory.
    pub(super) fn coldest(&mut self) -> Option<(ObjectId, Arc<Value>)> {
        for _ in 0..self.order.len().min(PASSED_OVER_MAX) {
            let (_, id) = self.order.first_key_value()?;
            let id = *id;
            match &self.items.get(&id)?.location {
                Location::Memory(value) if Arc::strong_count(value) == 1 && value.size_bytes > 0 => {
                    return Some((id, Arc::clone(value)));
                }
                _ => _ = self.touch(id),
            }
        }
        None
    }
}
