//! What workers and stores are to be told. An order stays in the state until somebody says that it was carried out,
//! so a new leader gives it again: at least once.

use serde::{Deserialize, Serialize};

use crate::ids::DurationMs;
use crate::ray::command::{Peer, Run};
use crate::ray::ids::{ExportId, ObjectId, StoreId, WorkerId};

/// An order. Those for one peer are given in the order of their ids.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Order {
    Execute {
        worker: WorkerId,
        run: Run,
    },
    Import {
        worker: WorkerId,
        export: ExportId,
    },
    Die {
        worker: WorkerId,
    },
    /// The store is to fetch the object.
    Deliver {
        store: StoreId,
        from: Source,
        object: ObjectId,
    },
    /// An id means an object that the store holds.
    NotifyAlias {
        store: StoreId,
        alias: ObjectId,
        canonical: ObjectId,
    },
    Deallocate {
        store: StoreId,
        object: ObjectId,
    },
    /// The worker is to end this run, and itself if that takes longer. From level 10 on.
    Cancel {
        worker: WorkerId,
        run: Run,
        grace_ms: DurationMs,
    },
}

/// Where an object is fetched from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Source {
    Store(StoreId),
    /// The nodes themselves: why the object cannot be had any more.
    Coordinator,
}

impl Order {
    /// To whom it goes.
    #[must_use]
    pub fn to(&self) -> Peer {
        match self {
            Self::Execute { worker, .. }
            | Self::Import { worker, .. }
            | Self::Die { worker }
            | Self::Cancel { worker, .. } => Peer::Worker(*worker),
            Self::Deliver { store, .. }
            | Self::NotifyAlias { store, .. }
            | Self::Deallocate { store, .. } => Peer::Store(*store),
        }
    }
}
