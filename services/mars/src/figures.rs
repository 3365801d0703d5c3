//! How full object stores are, as the leader's front end of the scheduler knows it: whoever composes a node says how to ask.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tripod_gateway::Future;
use tripod_state::ids::JobId;
use tripod_state::ray::ids::StoreId;

/// What a store said of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreFigures {
    pub used_bytes: u64,
    pub capacity_bytes: u64,
    pub spilled_bytes: u64,
}

/// Asks for those of a job's stores. Empty: there are none, or nobody could say.
pub type Figures = Arc<dyn Fn(JobId) -> Future<HashMap<StoreId, StoreFigures>> + Send + Sync>;

/// How old figures are at most: a store that has not beaten for longer is given up.
pub(crate) const AGE_MAX: Duration = Duration::from_secs(15);

/// Where nobody knows any: for tests and simulations.
pub(crate) fn unknown() -> Figures {
    Arc::new(|_| Box::pin(async { HashMap::new() }))
}
