//! How the client of a connection registered.
//!
//! A write of the older dialect does not say which task makes it. A node knows by the connection on which the task has
//! registered; by an agent's connection many clients come, so the agent passes on with a write how its client registered.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

/// A registration that an agent passes on in the headers of other calls: names have 63 characters, and headers little room.
/// Of a longer one nodes are not told.
const REGISTRATION_BYTES_MAX: usize = 1024;

/// How a client registered on one connection, as its [`tripod_port::ConnectionCalls`] keeps it. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Registered(Arc<Mutex<Option<Registration>>>);

#[derive(Debug)]
struct Registration {
    /// Which task, in the words of its client.
    task: String,
    /// As it came; `None`: several tasks did on this connection, or one with a message that is too long, and nobody knows whose
    /// a call is.
    message: Option<Bytes>,
}

impl Registered {
    /// A client has registered as this task, in its own words, by this message.
    pub(crate) fn note(&self, task: String, message: Bytes) {
        let mut known = self.0.lock();
        let is_alone = known.as_ref().is_none_or(|known| known.message.is_some() && known.task == task);
        let is_kept = is_alone && message.len() <= REGISTRATION_BYTES_MAX;
        *known = Some(if is_kept {
            Registration { task, message: Some(message) }
        } else {
            Registration { task: String::new(), message: None }
        });
    }

    /// The newest message by which the only task of the connection registered.
    pub(crate) fn get(&self) -> Option<Bytes> {
        self.0.lock().as_ref()?.message.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_knows_how_the_only_client_of_a_connection_registered_last() {
        let registered = Registered::default();
        assert_eq!(registered.get(), None);
        for life in ["first", "second"] {
            registered.note("worker/0".to_owned(), life.into());
            assert_eq!(registered.get(), Some(life.into()));
        }
        for task in ["worker/1", "worker/0", "worker/0"] {
            registered.note(task.to_owned(), "of one of two".into());
            assert_eq!(registered.get(), None);
        }
    }

    #[test]
    fn an_agent_keeps_no_registration_that_is_longer_than_headers_have_room_for() {
        let registered = Registered::default();
        let of = |length| Bytes::from(vec![7; length]);
        registered.note("worker/0".to_owned(), of(REGISTRATION_BYTES_MAX));
        assert!(registered.get().is_some());
        registered.note("worker/0".to_owned(), of(REGISTRATION_BYTES_MAX + 1));
        assert_eq!(registered.get(), None);
        assert!(registered.0.lock().as_ref().is_some_and(|known| known.task.is_empty()));
    }
}
