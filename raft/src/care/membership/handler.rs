//! Takes what is asked about members, and judges it.

use std::time::Duration;

use tokio::time::Instant;
use tripod_state::ids::{ChangeId, FeatureLevel, LogIndex, NodeId, Term};
use tripod_state::member::{self, Change, Finished, Open, Refusal};
use tripod_state::{Answer, ApplyContext, Command, Envelope, Fault, State};

use super::judge::{MembersView, Unwise};
use super::votes::Votes;
use super::{Effective, Members};
use crate::base::error::ProposeError;
use crate::peers::channels;

/// How long the arrival of a node may hold up a change that an operator wants.
const ARRIVAL_PATIENCE: Duration = Duration::from_secs(5);

/// What can be asked about members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MembersRequest {
    /// Who they are. Any node answers, the leader knows more.
    List,
    /// Begin a change.
    Change {
        change: Change,
        /// Who wants it, for people.
        by: String,
        /// Only tell what it would do.
        plan: bool,
        /// Even if too few of the voters that there will be answer.
        force: bool,
    },
    /// A node with an empty data directory wants an id.
    Join {
        /// `HOST:PORT` of its peer transport.
        peer: String,
        /// What it wrote down before it asked.
        token: u64,
        /// The highest feature level that its build supports.
        supports: FeatureLevel,
    },
    /// Give up on the change under way.
    Cancel { change: ChangeId },
    /// A node is to lead nothing and to have no clients, or to have both again.
    Drain { node: NodeId, drained: bool },
}

/// The answer to each of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MembersAnswer {
    List(MemberList),
    Change(Planned),
    Join { cluster_id: String, node: NodeId },
    Cancel,
    Drain,
}

/// The members, and the change under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberList {
    pub members: Vec<MemberView>,
    /// As the node that answers sees them.
    pub votes: Votes,
    /// The leader's word: who answers and who lags is known.
    pub by_leader: bool,
    pub open: Option<Open>,
    pub last: Option<Finished>,
}

/// One member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberView {
    pub node: NodeId,
    /// `HOST:PORT` of its peer transport.
    pub peer: String,
    pub voter: bool,
    /// It answers the node that tells this.
    pub answers: bool,
    /// It is to lead nothing and to have no clients.
    pub drained: bool,
    /// Committed entries that it is not known to hold; on the leader.
    pub lag_entries: Option<u64>,
}

/// What a change does, or would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    pub before: Votes,
    pub after: Votes,
    /// The node that it is about: of a replacement, the new one.
    pub node: NodeId,
    /// The change that began; `None` if it was only planned.
    pub change: Option<ChangeId>,
}

/// Why a change did not begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeError {
    /// Ask that node.
    NotLeader { leader: Option<NodeId> },
    /// The state refused; nothing has changed.
    Refused(Fault),
    /// The leader finds it unwise; nothing has changed.
    Unwise(Unwise),
    /// It may have begun.
    Unknown(String),
    /// It has not begun.
    Unavailable(String),
}

impl Members {
    pub(crate) async fn ask(&self, request: MembersRequest) -> Result<MembersAnswer, ChangeError> {
        match request {
            MembersRequest::List => self.list().await.map(MembersAnswer::List),
            MembersRequest::Change { change, by, plan, force } => {
                self.change(change, by, plan, force).await.map(MembersAnswer::Change)
            }
            MembersRequest::Join { peer, token, supports } => {
                self.check_level(supports)?;
                self.join(peer, token).await
            }
            MembersRequest::Cancel { change } => {
                self.check_leads()?;
                self.submit(member::Command::Cancel { change }).await?;
                Ok(MembersAnswer::Cancel)
            }
            MembersRequest::Drain { node, drained } => {
                self.drain(node, drained).await.map(|()| MembersAnswer::Drain)
            }
        }
    }

    fn check_leads(&self) -> Result<(), ChangeError> {
        let now = self.leadership.get();
        if now.ready_here {
            return Ok(());
        }
        Err(ChangeError::NotLeader { leader: now.leader.filter(|leader| leader.0 != self.calls.node()) })
    }

    /// A build that does not support the level in force would stop at the first entry that needs it.
    fn check_level(&self, supports: FeatureLevel) -> Result<(), ChangeError> {
        self.check_leads()?;
        let level = self.machine.read(State::level);
        if supports >= level {
            return Ok(());
        }
        Err(ChangeError::Unwise(Unwise::TooOld { supports, level }))
    }

    async fn list(&self) -> Result<MemberList, ChangeError> {
        let by_leader = self.leadership.leads_here();
        let Effective { configuration, .. } = self.effective().await.map_err(ChangeError::Unavailable)?;
        let answering = self.answering(&configuration).await;
        let lags = if by_leader { self.lags() } else { Default::default() };
        let voters = configuration.voters();
        let drained = self.drained(&configuration);
        let one = |(node, peer): (&u64, &String)| MemberView {
            node: NodeId(*node),
            peer: peer.clone(),
            voter: voters.contains(node),
            answers: answering.contains(node),
            drained: drained.contains(node),
            lag_entries: lags.get(node).copied(),
        };
        let (open, last) = self.machine.read(|state| {
            let registry = state.registry();
            (registry.open().cloned(), registry.last().cloned())
        });
        let members = configuration.nodes.iter().map(one).collect();
        Ok(MemberList { members, votes: Votes::of(&configuration, &answering), by_leader, open, last })
    }

    /// Waits for nodes that are arriving: an operator who starts a node and changes the members next is not
    /// to know that this is two changes.
    async fn change(
        &self,
        change: Change,
        by: String,
        plan: bool,
        force: bool,
    ) -> Result<Planned, ChangeError> {
        let deadline = Instant::now() + ARRIVAL_PATIENCE;
        loop {
            let refused = match self.change_now(change.clone(), by.clone(), plan, force).await {
                Err(ChangeError::Refused(fault)) => fault,
                answer => return answer,
            };
            match &refused {
                Fault::Member(Refusal::InProgress { open }) if open.is_arrival() => {
                    if tokio::time::timeout_at(deadline, self.has_ended(open.id)).await.is_err() {
                        return Err(ChangeError::Refused(refused));
                    }
                }
                _ => return Err(ChangeError::Refused(refused)),
            }
        }
    }

    /// Waits for the end of a change, and no longer than this node leads.
    async fn has_ended(&self, change: ChangeId) {
        let mut applied = self.machine.applied();
        let goes_on =
            || self.machine.read(|state| state.registry().open().is_some_and(|open| open.id == change));
        while goes_on() {
            tokio::select! {
                changed = applied.changed() => if changed.is_err() { return },
                () = self.leadership.deposed() => return,
            }
        }
    }

    async fn change_now(
        &self,
        change: Change,
        by: String,
        plan: bool,
        force: bool,
    ) -> Result<Planned, ChangeError> {
        self.check_leads()?;
        if let Some(peer) = change.peer() {
            channels::parse(peer).map_err(|reason| ChangeError::Unwise(Unwise::Address(reason)))?;
        }
        let _turn = self.turn.lock().await;
        let begin = member::Command::Begin { change: change.clone(), by };
        let rehearsed = open_of(self.rehearse(&begin)?)?;
        // One that goes on was judged when it began, and may be half done.
        let goes_on = self.machine.read(|state| state.registry().open() == Some(&rehearsed));
        let Effective { configuration, .. } = self.effective().await.map_err(ChangeError::Unavailable)?;
        let (answering, lags) = (self.answering(&configuration).await, self.lags());
        let view = MembersView { configuration: &configuration, answering: &answering, lags: &lags };
        let before = Votes::of(&configuration, &answering);
        let after = match view.judge(&change, rehearsed.node, force) {
            Ok(after) => after,
            Err(_) if goes_on => before.clone(),
            Err(unwise) => return Err(ChangeError::Unwise(unwise)),
        };
        if let Some(peer) = change.peer()
            && let Some(reason) = self.stranger(rehearsed.node.0, peer).await
        {
            return Err(ChangeError::Unwise(Unwise::Stranger { peer: peer.to_owned(), reason }));
        }
        if plan {
            return Ok(Planned { before, after, node: rehearsed.node, change: None });
        }
        let begun = open_of(self.begin(begin).await?)?;
        Ok(Planned { before, after, node: begun.node, change: Some(begun.id) })
    }

    /// Refused if nobody would be left to lead.
    async fn drain(&self, node: NodeId, drained: bool) -> Result<(), ChangeError> {
        self.check_leads()?;
        let _turn = self.turn.lock().await;
        let command = member::Command::Drain { node, drained };
        self.rehearse(&command)?;
        if drained {
            let Effective { configuration, .. } = self.effective().await.map_err(ChangeError::Unavailable)?;
            let (answering, out) = (self.answering(&configuration).await, self.drained(&configuration));
            let leads = |other: &u64| *other != node.0 && answering.contains(other) && !out.contains(other);
            if !configuration.voters().iter().any(leads) {
                return Err(ChangeError::Unwise(Unwise::NobodyElse { node }));
            }
        }
        self.begin(command).await.map(|_| ())
    }

    async fn join(&self, peer: String, token: u64) -> Result<MembersAnswer, ChangeError> {
        self.check_leads()?;
        channels::parse(&peer).map_err(|reason| ChangeError::Unwise(Unwise::Address(reason)))?;
        match self.begin(member::Command::Join { peer, token }).await? {
            Answer::Node(node) => {
                Ok(MembersAnswer::Join { cluster_id: self.calls.own().cluster_id.clone(), node })
            }
            other => Err(ChangeError::Unknown(format!("the state answered {other:?}"))),
        }
    }

    /// What the state would answer. It costs nothing: a copy of it shares everything.
    fn rehearse(&self, command: &member::Command) -> Result<Answer, ChangeError> {
        let mut copy = self.machine.read(State::clone);
        let context = ApplyContext { index: LogIndex(u64::MAX), term: Term(0), now_ms: copy.now_ms() };
        let envelope = Envelope { stamp: None, command: Command::Member(command.clone()) };
        copy.apply(&context, envelope).reply.map_err(ChangeError::Refused)
    }

    /// Has the command replicated, which wakes the driver. Whoever stops waiting cancels nothing.
    async fn begin(&self, command: member::Command) -> Result<Answer, ChangeError> {
        let this = self.clone();
        let begun = tokio::spawn(async move { this.submit(command).await });
        begun.await.unwrap_or_else(|_| Err(ChangeError::Unknown("this node is stopping".into())))
    }

    pub(super) async fn submit(&self, command: member::Command) -> Result<Answer, ChangeError> {
        match self.submitter.propose(Command::Member(command)).await {
            Ok(applied) => applied.reply.map_err(ChangeError::Refused),
            Err(ProposeError::Unknown(why)) => Err(ChangeError::Unknown(why)),
            Err(error) => Err(ChangeError::Unavailable(error.to_string())),
        }
    }
}

fn open_of(answer: Answer) -> Result<Open, ChangeError> {
    match answer {
        Answer::Change(open) => Ok(*open),
        other => Err(ChangeError::Unknown(format!("the state answered {other:?}"))),
    }
}
