//! The client's side of exactly once: numbers for writes, and the floor below which the cluster may
//! forget its replies.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use tripod_proto::wide;

use crate::wire;

/// A session of this client. Opened by the first write.
#[derive(Debug, Default)]
pub(crate) struct Session {
    window: Mutex<Window>,
    /// Held while a session is opened, so that many first writes open only one.
    opening: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Window {
    session: Option<u128>,
    next: u64,
    outstanding: BTreeSet<u64>,
}

/// A number that is in use. Dropping it tells that its reply is no longer needed.
#[derive(Debug)]
pub(crate) struct Ticket<'a> {
    owner: &'a Session,
    session: u128,
    stamp: wire::Stamp,
}

impl Session {
    /// A stamp of the open session, if there is one.
    pub(crate) fn stamp(&self) -> Option<Ticket<'_>> {
        let mut window = self.window.lock();
        let session = window.session?;
        let sequence = window.next;
        window.next += 1;
        window.outstanding.insert(sequence);
        let floor = window.outstanding.first().copied().unwrap_or(sequence);
        let (low, session_high) = wide::split(session);
        let stamp = wire::Stamp { session: low, session_high, sequence, acknowledged_below: floor };
        Some(Ticket { owner: self, session, stamp })
    }

    /// Waits for the right to open the session.
    pub(crate) async fn opening(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.opening.lock().await
    }

    /// The open session's id.
    pub(crate) fn id(&self) -> Option<u128> {
        self.window.lock().session
    }

    /// Starts numbering for a session that was just opened.
    pub(crate) fn opened(&self, session: u128) {
        *self.window.lock() = Window { session: Some(session), next: 1, outstanding: BTreeSet::new() };
    }

    /// Forgets the session if it is still the current one.
    pub(crate) fn lost(&self, session: u128) {
        let mut window = self.window.lock();
        if window.session == Some(session) {
            *window = Window::default();
        }
    }
}

impl Ticket<'_> {
    pub(crate) fn stamp(&self) -> wire::Stamp {
        self.stamp
    }

    pub(crate) fn session(&self) -> u128 {
        self.session
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut window = self.owner.window.lock();
        // A later session numbers from 1 again; its numbers are not ours to finish.
        if window.session == Some(self.session) {
            window.outstanding.remove(&self.stamp.sequence);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_the_lowest_number_in_use() {
        let session = Session::default();
        assert!(session.stamp().is_none(), "there is no session yet");
        session.opened(9);
        let first = session.stamp().expect("open");
        let second = session.stamp().expect("open");
        assert_eq!((second.stamp().sequence, second.stamp().acknowledged_below), (2, 1));
        drop(first);
        let third = session.stamp().expect("open");
        assert_eq!((third.stamp().sequence, third.stamp().acknowledged_below), (3, 2));
    }

    #[test]
    fn a_number_of_a_lost_session_does_not_touch_the_next_one() {
        let session = Session::default();
        session.opened(1);
        let old = session.stamp().expect("open");
        session.lost(1);
        session.opened(2);
        let new = session.stamp().expect("open");
        drop(old);
        let next = session.stamp().expect("open");
        assert_eq!(next.stamp().acknowledged_below, new.stamp().sequence);
    }
}
