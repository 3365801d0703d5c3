//! The open sessions and the replies they remember.

use imbl::OrdMap;

use crate::command::{Answer, Reply, Stamp};
use crate::context::ApplyContext;
use crate::fault::Fault;
use crate::ids::{Sequence, SessionId, TimeMs};
use crate::limits::{SESSION_WINDOW, SESSIONS_MAX, within};
use crate::session::Command;

/// One client's memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Session {
    /// The log time of the last command that bore its stamp.
    pub(crate) last_used: TimeMs,
    /// The client has every reply below this.
    pub(crate) floor: Sequence,
    /// The replies from the floor on, of the commands that came.
    pub(crate) replies: OrdMap<Sequence, Reply>,
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
        session.last_used = now;
        if let Some(reply) = session.replies.get(&stamp.sequence) {
            return Verdict::Reply(reply.clone());
        }
        if stamp.sequence < session.floor {
            return Verdict::Reply(Err(Fault::ReplyForgotten));
        }
        // A client cannot have the reply of the command that it is just sending.
        session.acknowledge(stamp.acknowledged_below.min(stamp.sequence));
        if stamp.sequence.0 - session.floor.0 >= SESSION_WINDOW {
            return Verdict::Reply(Err(Fault::SessionWindow { limit: SESSION_WINDOW }));
        }
        Verdict::Execute
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
                let session =
                    Session { last_used: context.now_ms, floor: Sequence(1), replies: OrdMap::new() };
                self.sessions.insert(id, session);
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

impl Session {
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
