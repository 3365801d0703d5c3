//! Names for openraft over this state machine.

use crate::apply::state_machine::StateMachine;
use crate::base::types::Types;

pub(crate) type Raft = openraft::Raft<Types, StateMachine>;
/// The part of the metrics that changes with elections only.
pub(crate) type ServerMetrics = openraft::metrics::RaftServerMetrics<Types>;
pub(crate) type Metrics = openraft::RaftMetrics<Types>;
