//! What a snapshot is made of, before it is written.

use tripod_state::State;

use super::{Form, Header};
use crate::base::types::{LogId, Membership};

/// The state as it was at one entry, and what a snapshot says of it.
pub(crate) struct Frozen {
    pub(crate) cluster_id: String,
    pub(crate) state: State,
    pub(crate) last_applied: Option<LogId>,
    pub(crate) membership: Membership,
}

impl Frozen {
    /// The snapshot's header, for which all of the state is read.
    pub(crate) fn into_header(self) -> (Header, State) {
        let header = Header {
            cluster_id: self.cluster_id,
            last_log_id: self.last_applied,
            membership: self.membership,
            digest: self.state.digest(),
            form: Form::of(&self.state),
        };
        (header, self.state)
    }
}
