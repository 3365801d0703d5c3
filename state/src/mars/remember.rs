//! Requests that come again: a client that does not know whether its request was executed sends it with the same id.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use imbl::OrdMap;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::ids::TimeMs;
use crate::mars::answer::Answer;
use crate::mars::command::Request;
use crate::mars::ids::Name;
use crate::mars::limits::{REMEMBERED_BYTES_MAX, REMEMBERED_MAX, REMEMBERED_MS};
use crate::memory::{Weigh, Weighed, of_map};

/// An answer that was given.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Reply {
    /// The session's name; empty: the job.
    pub(crate) of: Name,
    pub(crate) request: Name,
    /// Of what was asked.
    pub(crate) fingerprint: u64,
    pub(crate) at: TimeMs,
    pub(crate) answer: Answer,
}

/// The newest answers, by the log index of their commands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Replies {
    by_index: Weighed<u64, Arc<Reply>>,
    /// Derived.
    by_request: OrdMap<(Name, Name), u64>,
}

impl Replies {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&u64, &Arc<Reply>)> {
        self.by_index.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_index.len()
    }

    pub(crate) fn get(&self, of: &str, request: &str, now: TimeMs) -> Option<&Reply> {
        let index = self.by_request.get(&(of.into(), request.into()))?;
        self.by_index.get(index).map(Arc::as_ref).filter(|reply| now < reply.at.plus(REMEMBERED_MS))
    }

    /// Adds one behind the others; whether it is.
    pub(crate) fn restore(&mut self, index: u64, reply: Reply) -> bool {
        let ascending = self.by_index.get_max().is_none_or(|(last, _)| *last < index);
        let is_new = self.by_request.insert((reply.of.clone(), reply.request.clone()), index).is_none();
        self.by_index.insert(index, Arc::new(reply));
        ascending && is_new
    }

    pub(crate) fn remember(&mut self, index: u64, reply: Reply) {
        self.forget(reply.at);
        let key = (reply.of.clone(), reply.request.clone());
        if let Some(before) = self.by_request.get(&key).copied() {
            self.by_index.remove(&before);
        }
        self.by_request.insert(key, index);
        self.by_index.insert(index, Arc::new(reply));
        while self.by_index.len() as u64 > REMEMBERED_MAX || self.bytes() > REMEMBERED_BYTES_MAX {
            self.forget_oldest();
        }
    }

    /// Forgets what is old enough; whether there was any.
    pub(crate) fn forget(&mut self, now: TimeMs) -> bool {
        let mut changed = false;
        while self.next_due().is_some_and(|due| due <= now) {
            self.forget_oldest();
            changed = true;
        }
        changed
    }

    pub(crate) fn next_due(&self) -> Option<TimeMs> {
        self.by_index.get_min().map(|(_, oldest)| oldest.at.plus(REMEMBERED_MS))
    }

    fn forget_oldest(&mut self) {
        let Some(oldest) = self.by_index.get_min().map(|(index, _)| *index) else { return };
        if let Some(reply) = self.by_index.remove(&oldest) {
            self.by_request.remove(&(reply.of.clone(), reply.request.clone()));
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.by_index.bytes().saturating_add(of_map::<(Name, Name), u64>(self.by_request.len()))
    }

    pub(crate) fn recounted(&self) -> u64 {
        self.by_index.recounted().saturating_add(of_map::<(Name, Name), u64>(self.by_request.len()))
    }
}

impl Request {
    /// Equal requests have equal ones, on every replica and build. An id that a node proposed is another one each time.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = Xxh3::new();
        match self {
            Self::CreateSession { is_proposed: true, if_not_exist, labels, session: _ } => {
                ("session", if_not_exist, labels).hash(&mut hasher);
            }
            Self::CreateMutable { is_proposed: true, session, definition, if_not_exist, name: _ } => {
                ("mutable", session, definition, if_not_exist).hash(&mut hasher);
            }
            request => request.hash(&mut hasher),
        }
        hasher.finish()
    }
}

impl Weigh for Reply {
    fn outside(&self) -> u64 {
        let named = match &self.answer {
            Answer::Session { session: name, .. }
            | Answer::Mutable { name, .. }
            | Answer::Sealing { tileable: name, .. } => name.outside(),
            Answer::Done
            | Answer::Deleted { .. }
            | Answer::Uploaded { .. }
            | Answer::Graph { .. }
            | Answer::Stopped { .. }
            | Answer::Freed { .. } => 0,
        };
        self.of.outside().saturating_add(self.request.outside()).saturating_add(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(request: &str, at: u64) -> Reply {
        Reply {
            of: "s".into(),
            request: request.into(),
            fingerprint: 7,
            at: TimeMs(at),
            answer: Answer::Done,
        }
    }

    #[test]
    fn an_answer_is_remembered_for_ten_minutes_and_not_longer() {
        let mut replies = Replies::default();
        replies.remember(1, reply("a", 0));
        replies.remember(2, reply("b", 5));
        assert!(replies.get("s", "a", TimeMs(599_999)).is_some());
        assert!(replies.get("s", "a", TimeMs(600_000)).is_none());
        assert_eq!(replies.next_due(), Some(TimeMs(600_000)));
        assert!(replies.forget(TimeMs(600_004)) && !replies.forget(TimeMs(600_004)));
        assert_eq!((replies.len(), replies.bytes()), (1, replies.recounted()));
    }

    #[test]
    fn beyond_the_bound_the_oldest_is_forgotten() {
        let mut replies = Replies::default();
        for index in 0..=REMEMBERED_MAX {
            replies.remember(index, reply(&index.to_string(), 0));
        }
        assert_eq!(replies.len() as u64, REMEMBERED_MAX);
        assert!(replies.get("s", "0", TimeMs(0)).is_none() && replies.get("s", "1", TimeMs(0)).is_some());
        assert!(replies.bytes() <= REMEMBERED_BYTES_MAX);
    }

    #[test]
    fn ids_that_nodes_propose_do_not_tell_requests_apart() {
        let create = |session: &str, is_proposed| Request::CreateSession {
            session: session.to_owned(),
            is_proposed,
            if_not_exist: false,
            labels: Vec::new(),
        };
        assert_eq!(create("a", true).fingerprint(), create("b", true).fingerprint());
        assert_ne!(create("a", false).fingerprint(), create("b", false).fingerprint());
        assert_ne!(create("a", false).fingerprint(), create("a", true).fingerprint());
    }
}
