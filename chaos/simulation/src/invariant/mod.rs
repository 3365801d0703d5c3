//! The rules, one file each. None knows a node: they judge what was seen.
//!
//! | rule | what it judges |
//! |---|---|
//! | `election_safety`, `log_matching`, `leader_completeness`, `state_machine_safety` | the four of the Raft paper, from samples of nodes and of their logs |
//! | `term_covers_log` | that no promise is forgotten in a crash |
//! | `monotone_applied`, `equal_digests` | replicas |
//! | `one_membership`, `voters_decide` | who the members are, and that only voters decide |
//! | `acknowledged_work` | writes and what is there in the end |
//! | `scheduled_work` | tasks, their attempts and their results |
//! | `cluster_generations` | clusters of MindSpore in the states of nodes |
//! | `incarnation_fencing`, `barrier_all_or_none`, `heartbeat_rule` | what clients were told |

pub(crate) mod acknowledged_work;
pub(crate) mod barrier_all_or_none;
pub(crate) mod cluster_generations;
pub(crate) mod election_safety;
pub(crate) mod equal_digests;
pub(crate) mod heartbeat_rule;
pub(crate) mod incarnation_fencing;
pub(crate) mod leader_completeness;
pub(crate) mod log_matching;
pub(crate) mod monotone_applied;
pub(crate) mod one_membership;
pub(crate) mod scheduled_work;
pub(crate) mod state_machine_safety;
pub(crate) mod term_covers_log;
pub(crate) mod voters_decide;
