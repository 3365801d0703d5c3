//! The open sessions and the replies they remember.

use imbl::OrdMap;

use crate::command::{Answer, Reply, Stamp};
use crate::context::ApplyContext;
use crate::fault::Fault;
use crate::ids::{Sequence, SessionId, TimeMs};
use crate::limits::{SESSION_WINDOW, SESSIONS_MAX, within};
use crate::session::Command;

/// One client's memory of replies of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Session<R: Clone = Reply> {
    /// The log time of the last command that bore its stamp.
    pub(crate) last_used: TimeMs,
    /// The client has every reply below this.
    pub(crate) floor: Sequence,
    /// The replies from the floor on, of the commands that came.
    pub(crate) replies: OrdMap<Sequence, R>,
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Table {
    sessions: OrdMap<SessionId, Session>,
}

/// What a stamp says about its command.
pub(crate) enum Verdict {
    /// It is new: execute it, then [`Table::remember`] the reply.
    Execute,
    /// It was executed, or must not be: this is the reply.
    Reply(Reply),
}

impl Table {
    /// Judges a stamp and forgets what its client has acknowledged.
    pub(crate) fn admit(&mut self, stamp: Stamp, now: TimeMs) -> Verdict {
        let Some(session) = self.sessions.get_mut(&stamp.session) else {
            return Verdict::Reply(Err(Fault::SessionExpired));
        };
        match session.judge(stamp.sequence, stamp.acknowledged_below, now, SESSION_WINDOW) {
            Judgement::New => Verdict::Execute,
            Judgement::Known(reply) => Verdict::Reply(reply),
            Judgement::Forgotten => Verdict::Reply(Err(Fault::ReplyForgotten)),
            Judgement::TooFar => Verdict::Reply(Err(Fault::SessionWindow { limit: SESSION_WINDOW })),
        }
    }

    /// Keeps the reply of an executed command, unless the command closed its own session.
    pub(crate) fn remember(&mut self, stamp: Stamp, reply: &Reply) {
        if let Some(session) = self.sessions.get_mut(&stamp.session) {
            session.replies.insert(stamp.sequence, reply.clone());
        }
    }

    pub(crate) fn apply(&mut self, context: &ApplyContext, command: &Command) -> Reply {
        match command {
            Command::Open => {
                within("open sessions", self.sessions.len() as u64 + 1, SESSIONS_MAX as u64)?;
                let id = SessionId(context.index.0);
                self.sessions.insert(id, Session::new(context.now_ms));
                Ok(Answer::Session(id))
            }
            Command::Close { session } => {
                self.sessions.remove(session).map(|_| Answer::Done).ok_or(Fault::SessionExpired)
            }
            Command::ExpireIdle { before_ms } => {
                let idle: Vec<SessionId> = self
                    .sessions
                    .iter()
                    .filter(|(_, session)| session.last_used < *before_ms)
                    .map(|(id, _)| *id)
                    .collect();
                for id in idle {
                    self.sessions.remove(&id);
                }
                Ok(Answer::Done)
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&SessionId, &Session)> {
        self.sessions.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Puts back a session of a snapshot; `false` unless it comes after all others.
    pub(crate) fn restore(&mut self, id: SessionId, session: Session) -> bool {
        let ascending = self.sessions.get_max().is_none_or(|(last, _)| *last < id);
        self.sessions.insert(id, session);
        ascending
    }
}

impl<R: Clone> Session<R> {
    pub(crate) fn new(now: TimeMs) -> Self {
        Self { last_used: now, floor: Sequence(1), replies: OrdMap::new() }
    }

    /// Judges a sequence number and forgets what its client has acknowledged. At most `window` numbers may be
    /// unacknowledged.
    pub(crate) fn judge(
        &mut self,
        sequence: Sequence,
        acknowledged_below: Sequence,
        now: TimeMs,
        window: u64,
    ) -> Judgement<R> {
        self.last_used = now;
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
        while let Some(oldest) = self.replies.get_min().map(|(sequence, _)| *sequence) {
            if oldest >= below {
                break;
            }
            self.replies.remove(&oldest);
        }
    }
}
