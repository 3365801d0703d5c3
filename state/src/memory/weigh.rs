//! How much single things take.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;

use crate::canonical;
use crate::ids::{BarrierName, CallId, Incarnation, Key, Sequence, SessionId, TaskId};

/// Elements that fit one node of a tree: a table with a single element has room for as many.
const NODE_ELEMENTS: u64 = 16;
/// What a node of a tree, or anything else that is allocated, takes besides what is in it.
const ALLOCATION: u64 = 32;
/// How much room an element has for each byte of it in a tree whose nodes are half full.
const SLACK: u64 = 2;

/// Something that is kept.
pub(crate) trait Weigh {
    /// Bytes that it holds outside of itself.
    fn outside(&self) -> u64;

    /// Those of them that can become more or less while it stays where it is. Takes the same time however large it is.
    fn changing(&self) -> u64 {
        self.outside()
    }
}

/// An element of a tree, without what it holds outside of itself.
pub(crate) const fn of_entry<K, V>() -> u64 {
    SLACK * size_of::<(K, V)>() as u64
}

/// A table whose elements hold nothing outside of themselves.
pub(crate) const fn of_map<K, V>(elements: usize) -> u64 {
    match elements as u64 {
        0 => 0,
        few if few <= NODE_ELEMENTS => ALLOCATION + NODE_ELEMENTS * size_of::<(K, V)>() as u64,
        many => ALLOCATION.saturating_add(many.saturating_mul(of_entry::<K, V>())),
    }
}

/// As [`of_map`].
pub(crate) const fn of_set<K>(elements: usize) -> u64 {
    of_map::<K, ()>(elements)
}

/// A list in one piece.
pub(crate) const fn of_list<T>(elements: usize) -> u64 {
    match elements as u64 {
        0 => 0,
        some => ALLOCATION.saturating_add(some.saturating_mul(size_of::<T>() as u64)),
    }
}

/// A text, or any bytes.
pub(crate) const fn of_text(length: usize) -> u64 {
    of_list::<u8>(length)
}

/// Something behind a pointer, without what it holds outside of itself.
pub(crate) const fn of_shared<T>() -> u64 {
    ALLOCATION + size_of::<T>() as u64
}

/// A refusal or an answer, behind a pointer, by what it says.
pub(crate) fn of_faults(said: &impl Serialize) -> u64 {
    ALLOCATION + canonical::bytes_of(said)
}

macro_rules! all_inside {
    ($($id:ty),+ $(,)?) => {$(
        impl $crate::memory::Weigh for $id {
            fn outside(&self) -> u64 {
                0
            }
        }
    )+};
}
pub(crate) use all_inside;

all_inside!(TaskId, CallId, SessionId, Sequence, Incarnation);

impl Weigh for Key {
    fn outside(&self) -> u64 {
        of_text(self.as_str().len())
    }
}

impl Weigh for BarrierName {
    fn outside(&self) -> u64 {
        of_text(self.as_str().len())
    }
}

impl Weigh for Bytes {
    fn outside(&self) -> u64 {
        of_text(self.len())
    }
}

impl<T: Weigh> Weigh for Arc<T> {
    fn outside(&self) -> u64 {
        of_shared::<T>().saturating_add(T::outside(self))
    }

    fn changing(&self) -> u64 {
        T::changing(self)
    }
}
