//! By which connection a call came, as whoever hands out turns must know it.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::caller_address::CallerAddress;
use crate::speaker::Speaker;

tokio::task_local! {
    static CALLER: Option<Caller>;
}

/// Of the present call.
#[derive(Debug, Clone)]
struct Caller {
    connection: CallerConnection,
    /// Who makes it, if that was said.
    speaker: Option<Speaker>,
}

/// A client's connection. What is asked within [`Self::scope`] is asked by that client, and may have to wait for its turn
/// among the calls of all clients; what is asked elsewhere is this node's own. The default is the connection of all calls of
/// which no more is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerConnection {
    address: CallerAddress,
    /// No two of this process have the same.
    number: u64,
}

impl CallerConnection {
    /// Another connection from there.
    #[must_use]
    pub fn from(address: CallerAddress) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        Self { address, number: NUMBERS.fetch_add(1, Ordering::Relaxed) }
    }

    /// Where its calls come from.
    #[must_use]
    pub fn address(self) -> CallerAddress {
        self.address
    }

    /// A call that came by this connection, of which it is not known who makes it.
    pub fn scope<F: Future>(self, call: F) -> impl Future<Output = F::Output> {
        scope(self, None, call)
    }

    /// One step of a call that came by this connection.
    pub(crate) fn enter<T>(self, speaker: Option<Speaker>, step: impl FnOnce() -> T) -> T {
        CALLER.sync_scope(Some(Caller { connection: self, speaker }), step)
    }

    /// A part of the present call that is to run in a task of its own.
    pub fn carried<F: Future>(part: F) -> impl Future<Output = F::Output> {
        CALLER.scope(present(Clone::clone), part)
    }

    /// That of the present call; `None` if this process asks by itself.
    #[must_use]
    pub fn current() -> Option<Self> {
        present(|caller| caller.connection)
    }

    /// No two connections of this process have the same; 0 is that of calls of which no more is known.
    #[must_use]
    pub fn number(self) -> u64 {
        self.number
    }
}

/// What there is to say of the present call.
fn present<T>(look: impl FnOnce(&Caller) -> T) -> Option<T> {
    CALLER.try_with(|caller| caller.as_ref().map(look)).ok().flatten()
}

/// Who makes the present call, if that was said.
pub(crate) fn speaker() -> Option<Speaker> {
    present(|caller| caller.speaker.clone()).flatten()
}

pub(crate) fn scope<F: Future>(
    connection: CallerConnection,
    speaker: Option<Speaker>,
    call: F,
) -> impl Future<Output = F::Output> {
    CALLER.scope(Some(Caller { connection, speaker }), call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_is_its_connections_also_in_a_task_of_its_own() {
        let caller = CallerConnection::from(CallerAddress::default());
        assert_ne!(caller, CallerConnection::from(CallerAddress::default()));
        let current = || async { CallerConnection::current() };
        assert_eq!(current().await, None);
        let within = async {
            let carried = tokio::spawn(CallerConnection::carried(current())).await.unwrap();
            (current().await, carried)
        };
        assert_eq!(caller.scope(within).await, (Some(caller), Some(caller)));
    }
}
