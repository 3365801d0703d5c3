//! How many calls of one connection may not be cut, how many are just being answered, and when it has ended.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Waker};

use http::Extensions;
use parking_lot::Mutex;
use tokio::sync::watch;
use tripod_tls::{Presented, Proved};

use crate::bytes_held::Account;
use crate::caller_address::CallerAddress;
use crate::caller_connection::CallerConnection;

/// Counts the calls of a connection that must be answered in full before it may end. Every request
/// carries its connection's among its extensions.
#[derive(Debug, Clone, Default)]
pub struct ConnectionCalls {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    connection: CallerConnection,
    account: Account,
    /// The same since it is known who calls by it.
    named: OnceLock<Account>,
    /// Set where connections are protected.
    presented: OnceLock<Presented>,
    /// Set where the system says whose process has connected.
    user: OnceLock<u32>,
    /// What front ends keep with the connection, by its type.
    kept: Mutex<Extensions>,
    unfinished: AtomicUsize,
    handing: AtomicUsize,
    /// Who waits for the last of them.
    waiting: Mutex<Option<Waker>>,
    ended: watch::Sender<bool>,
}

/// The end of a connection, for as long as this lives still to come.
#[derive(Debug)]
pub(super) struct Open {
    calls: ConnectionCalls,
}

/// A call that may not be cut, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Unfinished {
    calls: ConnectionCalls,
}

/// An answer of which h2 has not been handed everything, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Handing {
    calls: ConnectionCalls,
}

impl ConnectionCalls {
    /// That of a connection from there, whose bytes are counted in this account.
    pub(crate) fn from(address: CallerAddress, account: Account) -> Self {
        let shared = Shared { connection: CallerConnection::from(address), account, ..Shared::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Where its bytes are counted: with those of all connections whose clients have proved the same. That of a certificate
    /// is known when the handshake is over, and so before the first call.
    pub(crate) fn account(&self) -> &Account {
        let Shared { account, named, .. } = &*self.shared;
        match (named.get(), self.proved()) {
            (Some(named), _) => named,
            (None, Some(proved)) => named.get_or_init(|| account.named(&proved.identity().to_string())),
            (None, None) => account,
        }
    }

    /// Whoever makes a call by it has proved this by a word of its own, such as a token. What is held for the connection from
    /// then on counts with what is held for all that have proved the same; if its client has a certificate, or has proved
    /// something before, that counts and this does not.
    pub fn belong_to(&self, bearer: impl FnOnce() -> String) {
        let Shared { named, .. } = &*self.shared;
        if named.get().is_none() && self.proved().is_none() {
            let _ = named.get_or_init(|| self.shared.account.named(&bearer()));
        }
    }

    /// What tells its calls from those of other connections.
    #[must_use]
    pub fn connection(&self) -> CallerConnection {
        self.shared.connection
    }

    /// Its client proves by this who it is.
    pub(super) fn prove_by(&self, presented: Presented) {
        // Once, before its first call.
        let _ = self.shared.presented.set(presented);
    }

    /// Whom its client has proved to be; nobody on a connection in plain text.
    #[must_use]
    pub fn proved(&self) -> Option<&Proved> {
        self.shared.presented.get()?.proved()
    }

    /// Whether it is by TLS: also if its client has no certificate.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.shared.presented.get().is_some_and(Presented::is_encrypted)
    }

    /// From where it comes.
    #[must_use]
    pub fn address(&self) -> CallerAddress {
        self.shared.connection.address()
    }

    /// It is of a process of this user of the machine.
    pub(crate) fn come_from(&self, user: u32) {
        // Once, before its first call.
        let _ = self.shared.user.set(user);
    }

    /// The user of this machine whose process has connected, by the word of the system; of connections by unix sockets only.
    #[must_use]
    pub fn user(&self) -> Option<u32> {
        self.shared.user.get().copied()
    }

    /// Whether its client has to prove who it is, or can.
    pub(super) fn is_protected(&self) -> bool {
        self.shared.presented.get().is_some()
    }

    /// Whether what its client has proved still holds; so it is in plain text, where nothing was proved.
    pub(super) fn is_believed(&self) -> bool {
        self.shared.presented.get().is_none_or(Presented::still_holds)
    }

    /// What a front end keeps with its connection: one value of each type, made when it is first asked for. Clones of it
    /// are to be one value.
    #[must_use]
    pub fn kept<T: Clone + Default + Send + Sync + 'static>(&self) -> T {
        self.shared.kept.lock().get_or_insert_default::<T>().clone()
    }

    /// What its connection holds until it ends.
    pub(super) fn open(&self) -> Open {
        Open { calls: self.clone() }
    }

    /// Resolves when the connection has ended, from whichever side.
    pub async fn ended(&self) {
        let mut ended = self.shared.ended.subscribe();
        ended.wait_for(|ended| *ended).await.expect("the sender is held");
    }

    /// Counts a call.
    pub(crate) fn enter(&self) -> Unfinished {
        self.shared.unfinished.fetch_add(1, Ordering::SeqCst);
        Unfinished { calls: self.clone() }
    }

    /// Counts an answer that is made, and about to be handed to h2 in one go.
    pub(crate) fn hand(&self) -> Handing {
        self.shared.handing.fetch_add(1, Ordering::SeqCst);
        Handing { calls: self.clone() }
    }

    /// Whether an answer is being handed to h2. If none is, h2 has all that was.
    pub(crate) fn is_handing(&self) -> bool {
        self.shared.handing.load(Ordering::SeqCst) > 0
    }

    /// Whether no call is counted. If one is, the task of `context` is woken after the last.
    pub(crate) fn is_quiet(&self, context: &Context<'_>) -> bool {
        *self.shared.waiting.lock() = Some(context.waker().clone());
        self.shared.unfinished.load(Ordering::SeqCst) == 0
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.calls.shared.ended.send_replace(true);
    }
}

impl Drop for Handing {
    fn drop(&mut self) {
        self.calls.shared.handing.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let Shared { unfinished, waiting, .. } = &*self.calls.shared;
        if unfinished.fetch_sub(1, Ordering::SeqCst) == 1
            && let Some(waker) = waiting.lock().take()
        {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use super::*;

    #[tokio::test]
    async fn the_last_call_wakes_who_waits() {
        let calls = ConnectionCalls::default();
        let entered = [calls.enter(), calls.enter()];
        let quiet = tokio::spawn(async move {
            poll_fn(|context| if calls.is_quiet(context) { Poll::Ready(()) } else { Poll::Pending }).await;
        });
        for call in entered {
            tokio::task::yield_now().await;
            assert!(!quiet.is_finished());
            drop(call);
        }
        quiet.await.unwrap();
    }

    #[test]
    fn what_a_front_end_keeps_is_one_for_all_calls_of_a_connection() {
        let calls = ConnectionCalls::default();
        *calls.clone().kept::<Arc<Mutex<u8>>>().lock() = 7;
        assert_eq!(*calls.kept::<Arc<Mutex<u8>>>().lock(), 7);
        assert_eq!(*calls.kept::<Arc<Mutex<u64>>>().lock(), 0, "of another type");
        assert_eq!(*ConnectionCalls::default().kept::<Arc<Mutex<u8>>>().lock(), 0, "of another connection");
    }
}
