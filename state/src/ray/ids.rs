//! Ids of a scheduler, each counted up from 0 within its job and never reused.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

number! {
    /// An object, or an alias of one. 0 is an id like any other.
    ObjectId(u64)
}
number! {
    /// A task, a put or a get: its place in the computation graph.
    OperationId(u64)
}
number! {
    /// A worker or a driver. A process that registers again is another one, so this is its incarnation too.
    WorkerId(u64)
}
number! {
    /// An object store; like [`WorkerId`], its incarnation too.
    StoreId(u64)
}
number! {
    /// An exported function or reusable variable, in the order of the exports.
    ExportId(u64)
}
number! {
    /// Something that a worker or a store is to be told; see [`super::Order`].
    OrderId(u64)
}
number! {
    /// How often a task was begun, from 1.
    Attempt(u32)
}
number! {
    /// A client's session: 128 bits that its process draws at start.
    ClientSession(u128)
}

/// A function's name, `module.function`. Any bytes: a client of 2016 may send what is no UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FunctionName(pub Bytes);

impl fmt::Display for FunctionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}
