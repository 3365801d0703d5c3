//! What each member knows by itself of a job and of the cluster: asked of all of them at the same time, whoever leads.

mod wire;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures::future;
use tripod_raft::NodeSilence;
use tripod_state::ids::{Incarnation, JobId, LogIndex, NodeId, TaskId, Term};

use crate::backend::{Admin, Replica};
use crate::calls::Calls;
use crate::gateway::Gateway;
use crate::held_processes::{HeldProcess, HeldProcesses, HeldState};
use crate::keeper::Keeper;
use crate::open_calls::{JobCalls, OpenCalls};
use crate::peers::{Channel, on};

/// What a member knows without asking anybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSight {
    /// Whom it follows, or itself.
    pub leader: Option<NodeId>,
    pub term: Term,
    pub committed: LogIndex,
    pub applied: LogIndex,
    /// How long ago it knew what only a node in contact with a quorum can; `None`: not yet.
    pub contact_ago: Option<Duration>,
    /// Calls that wait there for a leader.
    pub held_calls: u64,
    /// Of the disk under its log, in the last minute.
    pub flush_p99: Option<Duration>,
    pub flush_under_way: Option<Duration>,
    /// On the leader: how long ago each other member answered last.
    pub heard: Vec<(NodeId, Duration)>,
    /// The calls of the job that was asked about.
    pub calls: JobCalls,
    /// The last time that this process led and did not run, if there was one: how long, and how long ago it ended.
    pub pause: Option<(Duration, Duration)>,
    /// Processes of the job's tasks that do not run, as whoever started them has told that node.
    pub held: BTreeMap<TaskId, HeldProcess>,
}

/// Where a node finds what it tells. It is held by the node.
struct Source {
    replica: Weak<dyn Replica>,
    admin: Weak<dyn Admin>,
    /// Weak, because it holds what answers.
    keeper: Weak<Keeper>,
    calls: Arc<Calls>,
    open_calls: Arc<OpenCalls>,
    held: Arc<HeldProcesses>,
}

/// Has a node answer such questions.
pub(crate) fn answer(
    keeper: &Arc<Keeper>,
    replica: &Arc<dyn Replica>,
    admin: &Arc<dyn Admin>,
    (calls, open_calls, held): (&Arc<Calls>, &Arc<OpenCalls>, &Arc<HeldProcesses>),
) {
    let source = Source {
        keeper: Arc::downgrade(keeper),
        replica: Arc::downgrade(replica),
        admin: Arc::downgrade(admin),
        calls: Arc::clone(calls),
        open_calls: Arc::clone(open_calls),
        held: Arc::clone(held),
    };
    let handler = move |question: Bytes| -> Result<Bytes, String> {
        let job = wire::question(question)?;
        let sight = source.look(job).ok_or("the node is stopping")?;
        Ok(wire::encode(&sight))
    };
    keeper.peers().handle(Channel::SIGHT, Arc::new(handler));
}

impl Source {
    fn look(&self, job: JobId) -> Option<NodeSight> {
        let (replica, admin) = (self.replica.upgrade()?, self.admin.upgrade()?);
        let (status, measures) = (admin.status(), admin.measures());
        Some(NodeSight {
            leader: status.leader,
            term: status.term,
            committed: status.committed,
            applied: status.applied,
            contact_ago: replica.last_contact().map(|at| at.elapsed()),
            held_calls: self.calls.held(),
            flush_p99: measures.flush.p99,
            flush_under_way: measures.flush.under_way,
            heard: measures.heard,
            calls: self.open_calls.of(job),
            pause: self.keeper.upgrade()?.last_pause(),
            held: self.held.of(job),
        })
    }
}

impl Gateway {
    /// Whoever started the process of that life of a task says that it does not run, for as long as
    /// [`crate::HELD_BELIEVED_FOR`], or with `None` that it runs again. This node alone remembers it.
    pub fn note_held(
        &self,
        (job, task, incarnation): (JobId, TaskId, Incarnation),
        held: Option<(HeldState, String)>,
    ) {
        match held {
            Some((state, waits_in)) => self.held.hold((job, task), (incarnation, state), waits_in),
            None => self.held.release((job, task), incarnation),
        }
    }

    /// What each of those members knows by itself of a job, or why it did not say so. Needs no leader. One that has not
    /// answered within `patience` is asked once more: a single late answer says nothing of a member.
    pub async fn sights(
        &self,
        job: JobId,
        members: &[NodeId],
        patience: Duration,
    ) -> Vec<(NodeId, Result<NodeSight, NodeSilence>)> {
        let question = on(Channel::SIGHT, &wire::ask(job));
        let question = &question;
        let asked = members.iter().copied().map(|node| {
            let ask = move || self.backend.ask_node(node, question.clone(), patience);
            async move {
                let answer = match ask().await {
                    Err(NodeSilence::Silent) => ask().await,
                    answer => answer,
                };
                (node, answer.and_then(|answer| wire::decode(answer).map_err(NodeSilence::Refuses)))
            }
        });
        future::join_all(asked).await
    }
}
