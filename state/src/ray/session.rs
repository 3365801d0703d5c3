//! Clients' sessions: what makes a repeated request take effect once.

use crate::ids::{Sequence, TimeMs};
use crate::memory::{Weigh, Weighed, all_inside, of_faults};
use crate::ray::answer::Answer;
use crate::ray::command::Stamp;
use crate::ray::ids::ClientSession;
use crate::ray::limits::{SESSION_BYTES_MAX, SESSION_WINDOW, SESSIONS_MAX, at_most};
use crate::ray::refusal::Refusal;
use crate::session::table::{Judgement, Session};

/// What a request was answered.
pub(crate) type Reply = Result<Answer, Refusal>;

/// The sessions of one scheduler.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Sessions {
    sessions: Weighed<ClientSession, Session<Reply>>,
    /// Of the answers that are remembered, roughly. Derived.
    bytes: u64,
}

impl Sessions {
    /// The answer that was given before, or the refusal to execute; `None`: execute it, then [`Self::remember`].
    pub(crate) fn admit(&mut self, stamp: Stamp, now: TimeMs) -> Option<Reply> {
        if !self.sessions.contains_key(&stamp.session) {
            if stamp.sequence.0 != 1 {
                return Some(Err(Refusal::SessionExpired));
            }
            if let Err(refusal) = at_most("sessions", self.sessions.len() as u64 + 1, SESSIONS_MAX) {
                return Some(Err(refusal));
            }
            // What is refused leaves nothing behind.
            if let Err(refusal) = at_most("bytes of remembered answers", self.bytes, SESSION_BYTES_MAX) {
                return Some(Err(refusal));
            }
            self.sessions.insert(stamp.session, Session::new(now));
        }
        let mut session = self.sessions.edit(&stamp.session).expect("it was just opened");
        let before = bytes(&session, stamp.acknowledged_below.min(stamp.sequence).0);
        session.last_used = now;
        match session.judge(stamp.sequence, stamp.acknowledged_below, SESSION_WINDOW) {
            Judgement::Known(Ok(answer)) => return Some(Ok(Answer::Replayed(Box::new(answer)))),
            Judgement::Known(Err(refusal)) => return Some(Err(refusal)),
            Judgement::Forgotten => return Some(Err(Refusal::AnswerForgotten)),
            Judgement::TooFar => {
                self.bytes -= before;
                return Some(Err(Refusal::SessionWindow { limit: SESSION_WINDOW }));
            }
            Judgement::New => self.bytes -= before,
        }
        at_most("bytes of remembered answers", self.bytes, SESSION_BYTES_MAX).err().map(Err)
    }

    pub(crate) fn remember(&mut self, stamp: Stamp, reply: &Reply) {
        if let Some(mut session) = self.sessions.edit(&stamp.session) {
            self.bytes += size(reply);
            session.replies.insert(stamp.sequence, reply.clone());
        }
    }

    /// Closes those that were last used before; whether there were any.
    pub(crate) fn expire(&mut self, before_ms: TimeMs) -> bool {
        let idle = self.sessions.iter().filter(|(_, session)| session.last_used < before_ms);
        let idle: Vec<ClientSession> = idle.map(|(id, _)| *id).collect();
        for id in &idle {
            if let Some(session) = self.sessions.remove(id) {
                self.bytes -= bytes(&session, u64::MAX);
            }
        }
        !idle.is_empty()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&ClientSession, &Session<Reply>)> {
        self.sessions.iter()
    }

    /// How many replies all of them remember.
    pub(crate) fn replies(&self) -> usize {
        self.sessions.values().map(|session| session.replies.len()).sum()
    }

    /// Whether the request of that stamp was executed, and its answer is remembered.
    pub(crate) fn remembers(&self, stamp: Stamp) -> bool {
        self.sessions.get(&stamp.session).is_some_and(|session| session.replies.contains_key(&stamp.sequence))
    }

    /// Whether an answer of that kind is remembered.
    pub(crate) fn remember_any(&self, is_one: impl Fn(&Answer) -> bool) -> bool {
        let mut replies = self.sessions.values().flat_map(|session| session.replies.values());
        replies.any(|reply| match reply {
            Ok(Answer::Batch(each)) => each.iter().flatten().any(&is_one),
            Ok(answer) => is_one(answer),
            Err(_) => false,
        })
    }

    /// What they take of memory, roughly.
    pub(crate) fn held(&self) -> u64 {
        self.sessions.bytes()
    }

    /// The same from all of them.
    pub(crate) fn recounted(&self) -> u64 {
        self.sessions.recounted()
    }

    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    pub(crate) fn restore(&mut self, id: ClientSession, session: Session<Reply>) {
        self.sessions.insert(id, session);
    }

    /// Puts a reply back; `false` unless it comes after all others of the session that was put back last.
    pub(crate) fn restore_reply(&mut self, id: ClientSession, sequence: Sequence, reply: Reply) -> bool {
        let newest = self.sessions.get_max().is_some_and(|(last, _)| *last == id);
        let Some(mut session) = self.sessions.edit(&id).filter(|_| newest) else { return false };
        let ascending = session.replies.get_max().is_none_or(|(last, _)| *last < sequence);
        let fits = ascending && sequence >= session.floor;
        self.bytes += size(&reply);
        session.replies.insert(sequence, reply);
        fits
    }
}

all_inside!(ClientSession);

impl Weigh for Reply {
    fn outside(&self) -> u64 {
        match self {
            Ok(Answer::Done) => 0,
            said => of_faults(said),
        }
    }
}

/// What a session's answers below a number take.
fn bytes(session: &Session<Reply>, below: u64) -> u64 {
    session.replies.iter().take_while(|(sequence, _)| sequence.0 < below).map(|(_, reply)| size(reply)).sum()
}

/// What it takes to remember an answer, roughly.
fn size(reply: &Reply) -> u64 {
    const REPLY_BYTES: u64 = 96;
    REPLY_BYTES
        + match reply {
            Ok(Answer::Submitted { results }) => 8 * results.len() as u64,
            Ok(Answer::Batch(replies)) => replies.iter().map(size).sum(),
            Ok(Answer::Worker { address, store_address, .. }) => (address.len() + store_address.len()) as u64,
            Ok(_) | Err(_) => 0,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_refused_for_want_of_room_is_not_opened() {
        let mut sessions = Sessions { bytes: SESSION_BYTES_MAX + 1, ..Sessions::default() };
        let stamp =
            Stamp { session: ClientSession(7), sequence: Sequence(1), acknowledged_below: Sequence(1) };
        let refused = sessions.admit(stamp, TimeMs(5));
        assert!(matches!(refused, Some(Err(Refusal::Full { .. }))), "{refused:?}");
        assert_eq!(sessions.len(), 0);
    }
}
