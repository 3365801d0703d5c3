//! What the clients of a run did and saw: the only thing that checkers look at.
//!
//! # Outcomes
//! A call ends in one of three ways: answered, surely without effect, or unknown. Whoever records is honest
//! in doubt: a call that was sent and not answered is unknown. A failure of the harness is none of the three;
//! it voids the run.
//!
//! # Time
//! Whoever records passes the time of the run's own clock, real or simulated. A call is invoked before its
//! first byte is sent and completed after its last byte was received, so that an operation that completed
//! before another one was invoked really came before it.
//!
//! # Modules
//! | module | what |
//! |---|---|
//! | `call`, `mars`, `mindspore`, `outcome`, `operation`, `ids` | the vocabulary |
//! | `fault` | what was injected meanwhile |
//! | `recorder` | shared by all clients of a run |
//! | `record`, `lines` | the whole, and its lines of JSON |

mod call;
mod fault;
mod ids;
mod lines;
mod mars;
mod mindspore;
mod operation;
mod outcome;
mod record;
mod recorder;
#[cfg(test)]
mod tests;

pub use call::Call;
pub use fault::Fault;
pub use ids::{
    Barrier, Cell, ClientId, Content, Element, Epoch, Fence, Generation, GraphName, Incarnation, Job, Key,
    LifeId, LogIndex, Micros, NodeId, NodeName, OperationId, Rank, Round, Sequence, SessionId, Stamp,
    StreamId, TaskId, TensorName, Timestamp, Value, Version, Work,
};
pub use mars::{GraphAct, GraphSeen, GraphState, TensorAct, TensorSeen, TensorState};
pub use mindspore::{Act, ClusterNode, ClusterRole, ListedNode};
pub use operation::Operation;
pub use outcome::{
    BarrierSeen, CoordinatedTaskState, Found, Guarded, LockSeen, Missing, NotMade, Outcome, Refusal, Reply,
    SchedulerSeen, TaskSeen,
};
pub use record::{Header, History};
pub use recorder::{OpenFault, Pending, Recorder};
