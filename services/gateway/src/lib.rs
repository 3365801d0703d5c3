//! What every front end stands on: commands that take effect exactly once, reads, waits and
//! heartbeats that outlive a leader.
//!
//! Does not know: any wire protocol of clients (no status code, no message text, no port; only `class` has the codes of
//! gRPC, which several of them share, for what none of them has a code of its own, and `call_guard` those of its refusals), how
//! commands are replicated (that is behind [`Replica`]), or any rule about tasks, keys and barriers
//! (those are in the state).
//!
//! Invariants:
//! * A call is held while there is no leader; it is never refused for that before its patience ends.
//! * A command is sent again only with the stamp of its first attempt, or when every earlier attempt
//!   certainly had no effect.
//! * A waiter listens before it looks, so no wake-up is lost; what it waits for is resolved from the
//!   replicated state, so a change of leaders does not end a wait.
//! * No connection and no address keeps the calls of others waiting for longer than its turn takes.
//! * A heartbeat is never answered with an error for a reason of the cluster's own.
//! * A beat is answered before its client gives up on it, whatever is suspected of other tasks; held
//!   or not, it does not bring its own task nearer to its deadline.
//! * Timers only propose. A new leader starts all of them anew, and a pause of this process puts all
//!   of them off.
//!
//! Map: [`Gateway`] is what front ends call; `parts` is what must exist before the node, `backend` the seam to it
//! and `memory` its double; `aside` is where long work goes, `forks` what long looks are taken of, `awake` the time that this process lived. `submit`, `session` and `hold` send
//! commands, `renewal` has the session follow the feature level; `fairness` lets the calls of clients take turns, by the connections that `tripod-port` tells apart; `hub` and `calls` wait; `liveness` is how peers of any kind are told the leader and given up; `pulse` asks it about heartbeats of tasks, one by one or in sets, and `keeper` is the
//! leader's memory of those; `contact` finds out when a node is cut off,
//! `readiness` whether it can serve. `job` finds the job that a call is about, `call_guard` whether its caller may make it, `proposers` what the log is told of that caller, `job_names` remembers which job a name means, `tokens` which tokens there are, `bearers` who calls by one, and `token_tally` which were refused. `front_end` is what a node speaks, as a value. `peers` asks the leader what a front end of its node keeps in memory, `ages` when it heard tasks and `leader_clock` what time it is there. `open_calls` is which calls of which task wait here, `node_events` what a node has seen itself, `held_processes` which processes do not run, as whoever started them says, and `sight` what all members tell of that and of themselves. `last_backup` says when one was made.

mod ages;
mod aside;
mod awake;
mod backend;
mod bearers;
mod call_guard;
mod calls;
mod class;
mod clock;
mod contact;
mod fairness;
mod forks;
mod front_end;
mod gateway;
mod held_processes;
mod hold;
mod hub;
mod job;
mod job_names;
mod keeper;
mod last_backup;
mod leader_clock;
mod liveness;
mod memory;
mod node_events;
mod open_calls;
mod opening;
mod options;
mod outage;
mod parts;
mod peers;
mod proposers;
mod pulse;
mod readiness;
mod renewal;
mod session;
mod sight;
mod submit;
mod token_tally;
mod tokens;

pub use ages::HeartbeatAges;
pub use aside::aside;
pub use awake::{Awake, Moment};
pub use backend::{Admin, Future, Replica};
pub use bearers::Bearers;
pub use call_guard::CallGuard;
pub use class::by_class;
pub use clock::Clock;
pub use fairness::TurnCounts;
pub use front_end::{FrontEnd, FrontEnds, PortKind};
pub use gateway::{Consistency, Gateway, PRESENT_EVERY};
pub use held_processes::{HELD_BELIEVED_FOR, HeldProcess, HeldState};
pub use hub::Watch;
pub use job::JobBinding;
pub use keeper::{BarrierEnding, GangCounts, WhyLost};
pub use last_backup::LastBackup;
pub use leader_clock::LeaderClock;
pub use liveness::{Batches, BeatAnswer, Conversation, Deafness, Liveness, Rules, Silence};
pub use memory::{MemoryBackend, Mishap};
pub use node_events::{NodeEvent, NodeEventsSeen};
pub use open_calls::{CallKind, CallOutcome, JobCalls, ShownCall, TaskCalls, meeting};
pub use opening::IdWidth;
pub use options::Options;
pub use outage::Outage;
pub use parts::Parts;
pub use peers::{Channel, PeersHandler};
pub use pulse::{BEATS_OF_A_SET_MAX, BeatCounts, BeatSession, BeatSetId, SetBeat, SetWord};
pub use readiness::{Check, Readiness};
pub use sight::NodeSight;
pub use token_tally::TokenTally;
// Front ends do not see the raft crate; these are the words in which the gateway speaks of a node.
pub use tripod_raft::backup::{SaveError, Saving};
pub use tripod_raft::{
    Chance, ChangeError, Comparisons, DiskStatus, ElectionCounts, FlushTimes, GivenUp, HistogramView,
    Leadership, LevelError, LevelRequest, Levels, Measures, MemberLevel, MemberList, MemberStatus,
    MemberView, MembersAnswer, MembersRequest, NodeSilence, Planned, ProposeError, Role, SnapshotCounts,
    StageTimes, StateLimits, Status, Unwise, Votes,
};
