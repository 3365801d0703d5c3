//! One registration of the store: its id, and everything that ends with it.

use std::sync::Arc;

use tokio::sync::watch;

use crate::delivery::Deliveries;
use crate::ids::StoreId;
use crate::relay::Followers;
use crate::shelf::Shelf;

/// The store under one id.
#[derive(Debug)]
pub(crate) struct Incarnation {
    pub(crate) id: StoreId,
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) deliveries: Arc<Deliveries>,
    pub(crate) followers: Followers,
}

impl Drop for Incarnation {
    fn drop(&mut self) {
        self.deliveries.cancel_all();
    }
}

/// The present incarnation; `None` while the store registers.
pub(crate) type Current = watch::Receiver<Option<Arc<Incarnation>>>;
