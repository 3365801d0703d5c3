//! The open sessions and the replies they remember.

use std::hash::{Hash, Hasher};

use imbl::OrdMap;
use xxhash_rust::xxh3::Xxh3;

use super::owned::Owned;
use super::owners::Owners;
use crate::command::{Answer, Command as AnyCommand, Reply, Stamp};
use crate::context::ApplyContext;
use crate::fault::Fault;
use crate::identity::Identity;
use crate::ids::{FeatureLevel, Sequence, SessionId, TimeMs};
use crate::level::Rule;
use crate::limits::{NODE_SESSIONS_MAX, SESSION_WINDOW, SESSIONS_MAX, within};
use crate::memory::{Weigh, Weighed, of_faults, of_map};
use crate::session::{Command, Owner};
use crate::{canonical, job, kv, mindspore, runtime, task};

/// One client's memory of replies of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Session<R: Clone + Weigh = Reply> {
    /// The log time of the last command that bore its stamp.
    pub(crate) last_used: TimeMs,
    /// The client has every reply below this.
    pub(crate) floor: Sequence,
    /// The replies from the floor on, of the commands that came.
    pub(crate) replies: Weighed<Sequence, R>,
}

/// What a session says about a sequence number.
pub(crate) enum Judgement<R> {
    New,
    Known(R),
    /// It was used, and its client has said that it has the reply.
    Forgotten,
    /// More are unacknowledged than may be.
    TooFar,
}

/// All sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Table {
    sessions: Weighed<SessionId, Session>,
    /// Of those that were opened from feature level 5 on.
    owned: OrdMap<SessionId, Owned>,
    owners: Owners,
}

/// Without owned sessions a table has the digest that it has for a build that knows none.
impl Hash for Table {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Self { sessions, owned, owners: _ } = self;
        sessions.hash(hasher);
        if !owned.is_empty() {
            owned.hash(hasher);
        }
    }
}

/// What a stamp says about its command.
pub(crate) enum Verdict {
    /// It is new: execute it, then [`Table::remember`] the reply with this mark.
    Execute(Option<u64>),
    /// It was executed, or must not be: this is the reply.
    Reply(Reply),
}

impl Table {
    /// Judges a stamp and forgets what its client has acknowledged.
    pub(crate) fn admit(
        &mut self,
        level: FeatureLevel,
        stamp: Stamp,
        command: &AnyCommand,
        now: TimeMs,
    ) -> Verdict {
        let Self { sessions, owned, owners } = self;
        let Some(mut session) = sessions.edit(&stamp.session) else {
            return Verdict::Reply(Err(Fault::SessionExpired));
        };
        let Some(owned) = owned.get_mut(&stamp.session) else {
            // One whose id can be guessed is not kept by being used: its client will have to open another one.
            if !Rule::OwnedSessions.holds_at(level) {
                session.last_used = now;
            }
            return verdict(session.judge(stamp.sequence, stamp.acknowledged_below, SESSION_WINDOW), None);
        };
        session.last_used = now;
        if !owned.is_client() {
            return verdict(session.judge(stamp.sequence, stamp.acknowledged_below, SESSION_WINDOW), None);
        }
        let mark = mark_of(command);
        // Before anything is acknowledged: a stamp that is used twice is somebody's mistake.
        if owned.mark(stamp.sequence).is_some_and(|before| before != mark) {
            return Verdict::Reply(Err(Fault::StampReused));
        }
        let judgement = session.judge(stamp.sequence, stamp.acknowledged_below, SESSION_WINDOW);
        let before = owned.bytes();
        owned.forget_below(session.floor);
        owners.change_bytes(owned.owner, before, owned.bytes());
        match owners.check_bytes(owned.owner) {
            Err(full) if matches!(judgement, Judgement::New) => Verdict::Reply(Err(full)),
            _ => verdict(judgement, Some(mark)),
        }
    }

    /// Keeps the reply of an executed command, unless the command closed its own session.
    pub(crate) fn remember(&mut self, stamp: Stamp, mark: Option<u64>, reply: &Reply) {
        let Some(mut session) = self.sessions.edit(&stamp.session) else { return };
        session.replies.insert(stamp.sequence, reply.clone());
        if let (Some(mark), Some(owned)) = (mark, self.owned.get_mut(&stamp.session)) {
            let before = owned.bytes();
            owned.keep(stamp.sequence, mark, reply);
            self.owners.change_bytes(owned.owner, before, owned.bytes());
        }
    }

    /// Whether it was opened by somebody else. Of a session of which it is not known who opened it that is not said, and of a
    /// caller of whom nothing is known only if that is `strict`.
    pub(crate) fn is_of_another(&self, session: SessionId, by: Option<&Identity>, strict: bool) -> bool {
        let opener = self.owned.get(&session).and_then(Owned::opener);
        opener.is_some_and(|opener| by.map_or(strict, |by| by != opener))
    }

    /// `by`: who proposed it, if that is known.
    pub(crate) fn apply(
        &mut self,
        level: FeatureLevel,
        context: &ApplyContext,
        command: &Command,
        by: Option<&Identity>,
    ) -> Reply {
        match command {
            // Whoever proposed it did so at an earlier level, and proposes another one.
            Command::Open if Rule::OwnedSessions.holds_at(level) => Err(Fault::SessionExpired),
            Command::Open => {
                within("open sessions", self.sessions.len() as u64 + 1, SESSIONS_MAX as u64)?;
                let id = SessionId(u128::from(context.index.0));
                self.sessions.insert(id, Session::new(context.now_ms));
                Ok(Answer::Session(id))
            }
            Command::OpenFor { id, owner } => {
                let opened = self.open_for(*id, *owner, context.now_ms)?;
                if let (Some(owned), Some(by)) = (self.owned.get_mut(id), by) {
                    owned.opened_by(by.clone());
                }
                Ok(opened)
            }
            Command::Close { session } => {
                self.remove(*session).then_some(Answer::Done).ok_or(Fault::SessionExpired)
            }
            Command::ExpireIdle { before_ms } => {
                self.expire(|session, _| session.last_used < *before_ms);
                Ok(Answer::Done)
            }
            Command::ExpireOwned { clients_before_ms, nodes_before_ms } => {
                self.expire(|session, owned| {
                    if owned.is_some_and(|owned| !owned.is_client()) {
                        return session.last_used < *nodes_before_ms;
                    }
                    // A call that waits, for a barrier say, may be sent again after hours: its node may die as late as that.
                    // Looked for only in those that rest: a session remembers many replies.
                    let may_stay = owned.is_some() && session.last_used >= *nodes_before_ms;
                    session.last_used < *clients_before_ms && !(may_stay && session.waits())
                });
                Ok(Answer::Done)
            }
        }
    }

    fn open_for(&mut self, id: SessionId, owner: Owner, now: TimeMs) -> Reply {
        let fits = id.is_node() == matches!(owner, Owner::Node(_));
        if !fits || self.sessions.contains_key(&id) {
            return Err(Fault::SessionExpired);
        }
        self.owners.check_session(owner)?;
        if let Owner::Node(_) = owner {
            while self.owners.sessions_of(owner) >= NODE_SESSIONS_MAX {
                self.close_oldest(owner);
            }
        }
        self.sessions.insert(id, Session::new(now));
        self.owned.insert(id, Owned::new(owner));
        self.owners.add(owner, 0);
        Ok(Answer::Session(id))
    }

    /// Closes the session of an owner that was used least lately.
    fn close_oldest(&mut self, owner: Owner) {
        let of_owner = self.owned.iter().filter(|(_, owned)| owned.owner == owner).map(|(id, _)| *id);
        let oldest = of_owner.min_by_key(|id| (self.sessions[id].last_used, *id));
        self.remove(oldest.expect("it has so many"));
    }

    fn expire(&mut self, due: impl Fn(&Session, Option<&Owned>) -> bool) {
        let sessions = self.sessions.iter();
        let idle: Vec<SessionId> =
            sessions.filter(|(id, session)| due(session, self.owned.get(*id))).map(|(id, _)| *id).collect();
        for id in idle {
            self.remove(id);
        }
    }

    /// Whether it was there.
    fn remove(&mut self, id: SessionId) -> bool {
        if let Some(owned) = self.owned.remove(&id) {
            self.owners.take(owned.owner, owned.bytes());
        }
        self.sessions.remove(&id).is_some()
    }

    /// Closes everything that a build below feature level 5 could not read.
    pub(crate) fn close_owned(&mut self) {
        let owned: Vec<SessionId> = self.owned.keys().copied().collect();
        for id in owned {
            self.remove(id);
        }
    }

    /// Forgets what replies say, and not that there were some: whoever sends one of those commands again is told that nobody knows
    /// any more what became of it, and nothing is executed twice.
    pub(crate) fn forget_replies(&mut self, is_gone: impl Fn(&Reply) -> bool) {
        let of_session = |(id, session): (&SessionId, &Session)| {
            let gone = session.replies.iter().filter(|(_, reply)| is_gone(reply));
            gone.map(|(sequence, _)| (*id, *sequence)).collect::<Vec<_>>()
        };
        let gone: Vec<(SessionId, Sequence)> = self.sessions.iter().flat_map(of_session).collect();
        // That one is known to all builds.
        let forgotten: Reply = Err(Fault::ReplyForgotten);
        for (id, sequence) in gone {
            if let Some(mut session) = self.sessions.edit(&id) {
                session.replies.insert(sequence, forgotten.clone());
            }
            if let Some(owned) = self.owned.get_mut(&id) {
                let before = owned.bytes();
                owned.change(sequence, &forgotten);
                self.owners.change_bytes(owned.owner, before, owned.bytes());
            }
        }
    }

    /// From now on nobody is known to have opened any of them.
    pub(crate) fn forget_openers(&mut self) {
        let opened: Vec<SessionId> = self.openers().map(|(id, _)| id).collect();
        for id in opened {
            if let Some(owned) = self.owned.get_mut(&id) {
                owned.forget_opener();
            }
        }
    }

    /// Who opened sessions, where that is known.
    pub(crate) fn openers(&self) -> impl Iterator<Item = (SessionId, &Identity)> {
        self.owned.iter().filter_map(|(id, owned)| Some((*id, owned.opener()?)))
    }

    /// Puts back who opened a session; `false` unless that is there, a client's, and of nobody yet.
    pub(crate) fn restore_opener(&mut self, id: SessionId, by: Identity) -> bool {
        let Some(owned) = self.owned.get_mut(&id) else { return false };
        let fits = owned.is_client() && owned.opener().is_none() && by.check().is_ok();
        owned.opened_by(by);
        fits
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&SessionId, &Session)> {
        self.sessions.iter()
    }

    /// Whether the command of that stamp was executed, and its reply is remembered.
    pub(crate) fn remembers(&self, stamp: Stamp) -> bool {
        self.sessions.get(&stamp.session).is_some_and(|session| session.replies.contains_key(&stamp.sequence))
    }

    /// Whether the command of that stamp will not be executed any more: it was, as far as is known, or its session is gone.
    pub(crate) fn is_settled(&self, stamp: Stamp) -> bool {
        self.sessions.get(&stamp.session).is_none_or(|session| {
            stamp.sequence < session.floor || session.replies.contains_key(&stamp.sequence)
        })
    }

    pub(crate) fn owned(&self) -> impl Iterator<Item = (&SessionId, &Owned)> {
        self.owned.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// What they take, roughly.
    pub(crate) fn bytes(&self) -> u64 {
        self.sessions.bytes().saturating_add(of_map::<SessionId, Owned>(self.owned.len()))
    }

    /// The same from all of them.
    pub(crate) fn recounted(&self) -> u64 {
        self.sessions.recounted().saturating_add(of_map::<SessionId, Owned>(self.owned.len()))
    }

    /// Puts back a session of a snapshot; `false` unless it comes after all others.
    pub(crate) fn restore(&mut self, id: SessionId, session: Session) -> bool {
        let ascending = self.sessions.get_max().is_none_or(|(last, _)| *last < id);
        self.sessions.insert(id, session);
        ascending
    }

    /// Puts back whose a session is, with the marks of its commands; `false` unless that session is there, and comes
    /// after all others.
    pub(crate) fn restore_owner(&mut self, id: SessionId, owner: Owner, marks: &[(Sequence, u64)]) -> bool {
        let ascending = self.owned.get_max().is_none_or(|(last, _)| *last < id);
        let Some(session) = self.sessions.get(&id) else { return false };
        let mut owned = Owned::new(owner);
        for (sequence, mark) in marks {
            let Some(reply) = session.replies.get(sequence) else { return false };
            owned.keep(*sequence, *mark, reply);
        }
        let fits = owned.marks().eq(marks.iter().copied()) && (marks.is_empty() || owned.is_client());
        self.owners.add(owner, owned.bytes());
        self.owned.insert(id, owned);
        ascending && fits && id.is_node() == matches!(owner, Owner::Node(_))
    }
}

/// `mark`: what is to be kept beside the reply.
fn verdict(judgement: Judgement<Reply>, mark: Option<u64>) -> Verdict {
    match judgement {
        Judgement::New => Verdict::Execute(mark),
        Judgement::Known(reply) => Verdict::Reply(reply),
        Judgement::Forgotten => Verdict::Reply(Err(Fault::ReplyForgotten)),
        Judgement::TooFar => Verdict::Reply(Err(Fault::SessionWindow { limit: SESSION_WINDOW })),
    }
}

/// What tells a command from every other one that its client may have sent.
fn mark_of(command: &AnyCommand) -> u64 {
    let mut hasher = Xxh3::new();
    // The mark of a retry is the transport's, and who asks is no part of what is asked.
    match command.plain() {
        // What a node puts in of its own is another one in each attempt.
        AnyCommand::Task(task::Command::Poll { scope, task, wish: _ }) => {
            canonical::feed(&("poll", scope, task), &mut hasher);
        }
        AnyCommand::Job(job::Command::Create { name, spec, service: _ }) => {
            canonical::feed(&("create", name, spec), &mut hasher);
        }
        // Before the level was raised a node sent it without the life.
        AnyCommand::Kv(insert @ kv::Command::InsertAs { .. }) => {
            canonical::feed(&AnyCommand::Kv(insert.clone().without_life()), &mut hasher);
        }
        // Likewise without the generation.
        AnyCommand::Mindspore(mindspore::Command::Planned { scope, generation: _, request }) => {
            let (scope, request) = (*scope, request.clone());
            let asked = mindspore::Command::Cluster { scope, request };
            canonical::feed(&AnyCommand::Mindspore(asked), &mut hasher);
        }
        // Where a registration comes from is for people, and a node may have left it out in an earlier attempt.
        AnyCommand::Task(register @ task::Command::RegisterFrom { .. }) => {
            canonical::feed(&AnyCommand::Task(register.clone().without_origin()), &mut hasher);
        }
        AnyCommand::Runtime(connect @ runtime::Command::ConnectFrom { .. }) => {
            canonical::feed(&AnyCommand::Runtime(connect.clone().without_origin()), &mut hasher);
        }
        command => canonical::feed(command, &mut hasher),
    }
    hasher.finish()
}

impl<R: Clone + Weigh> Weigh for Session<R> {
    fn outside(&self) -> u64 {
        self.replies.bytes()
    }
}

impl Weigh for Reply {
    fn outside(&self) -> u64 {
        match self {
            Ok(Answer::Done) => 0,
            said => of_faults(said),
        }
    }
}

impl Session {
    /// Whether a call of it was answered that it waits, and nobody has said since that it is over.
    fn waits(&self) -> bool {
        self.replies.values().any(|reply| matches!(reply, Ok(Answer::Waiting(_))))
    }
}

impl<R: Clone + Weigh> Session<R> {
    pub(crate) fn new(now: TimeMs) -> Self {
        Self { last_used: now, floor: Sequence(1), replies: Weighed::default() }
    }

    /// Judges a sequence number and forgets what its client has acknowledged. At most `window` numbers may be
    /// unacknowledged.
    pub(crate) fn judge(
        &mut self,
        sequence: Sequence,
        acknowledged_below: Sequence,
        window: u64,
    ) -> Judgement<R> {
        if let Some(reply) = self.replies.get(&sequence) {
            return Judgement::Known(reply.clone());
        }
        if sequence < self.floor {
            return Judgement::Forgotten;
        }
        // A client cannot have the reply of the command that it is just sending.
        self.acknowledge(acknowledged_below.min(sequence));
        if sequence.0 - self.floor.0 >= window { Judgement::TooFar } else { Judgement::New }
    }

    fn acknowledge(&mut self, below: Sequence) {
        if below <= self.floor {
            return;
        }
        self.floor = below;
        while let Some(oldest) =
            self.replies.get_min().map(|(sequence, _)| *sequence).filter(|oldest| *oldest < below)
        {
            self.replies.remove(&oldest);
        }
    }
}
