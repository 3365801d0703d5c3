//! How many connections a process takes.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Open files that no client takes: 96 connections of peers and 32 to the http port at most, as many to peers as there are
/// peers, four each, and some dozens for the journal, snapshots, the log's home, listeners, and what the process opens for a
/// moment.
pub const FILES_RESERVED: u64 = 256;
/// Of the connections for clients, how many parts of a hundred one address may have.
const ADDRESS_PERCENT: usize = 75;

/// How many there may be at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Of all clients.
    pub all: usize,
    /// Of those at one address. What comes by unix sockets is one address, too.
    pub at_one_address: usize,
}

impl ConnectionLimits {
    /// What a process can take that may have so many open files: all but the reserve, and at least a quarter of them.
    #[must_use]
    pub fn of_files(files: u64) -> Self {
        let free = files.saturating_sub(FILES_RESERVED).max(files / 4).max(1);
        Self::of(usize::try_from(free).unwrap_or(usize::MAX))
    }

    /// So many, of which one address has three quarters at most.
    #[must_use]
    pub fn of(all: usize) -> Self {
        let at_one_address = (all / 100).saturating_mul(ADDRESS_PERCENT) + all % 100 * ADDRESS_PERCENT / 100;
        Self { all, at_one_address: at_one_address.max(1) }
    }

    /// No limits: for tests, and for what takes connections of itself only.
    #[must_use]
    pub const fn none() -> Self {
        Self { all: usize::MAX, at_one_address: usize::MAX }
    }
}

/// The connections that a process has, of one kind, on all its ports. Clones count together.
#[derive(Debug, Clone)]
pub struct Connections {
    limits: ConnectionLimits,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    open: Mutex<Open>,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_address: HashMap<Option<IpAddr>, usize>,
}

/// The permit of a connection, which is counted for as long as this lives.
#[derive(Debug)]
pub struct ConnectionPermit {
    shared: Arc<Shared>,
    address: Option<IpAddr>,
}

/// There is no permit for a connection. The text is for its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    All { limit: usize },
    Address { limit: usize },
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All { limit } => write!(f, "this node takes {limit} connections at a time"),
            Self::Address { limit } => {
                write!(f, "this node takes {limit} connections at a time of one address")
            }
        }
    }
}

impl Connections {
    /// None yet, and these limits.
    #[must_use]
    pub fn new(limits: ConnectionLimits) -> Self {
        Self { limits, shared: Arc::default() }
    }

    /// Counts one more from there; `None` is this machine, by a unix socket.
    ///
    /// # Errors
    /// [`Full`]: close it.
    pub fn admit(&self, address: Option<IpAddr>) -> Result<ConnectionPermit, Full> {
        let mut open = self.shared.open.lock();
        let here = open.by_address.get(&address).copied().unwrap_or(0);
        // Of both limits the address's: to make room for it, one of its own must go.
        let full = if here >= self.limits.at_one_address {
            Some(Full::Address { limit: self.limits.at_one_address })
        } else if open.all >= self.limits.all {
            Some(Full::All { limit: self.limits.all })
        } else {
            None
        };
        if let Some(full) = full {
            drop(open);
            self.shared.refused.fetch_add(1, Ordering::Relaxed);
            return Err(full);
        }
        open.all += 1;
        open.by_address.insert(address, here + 1);
        drop(open);
        Ok(ConnectionPermit { shared: Arc::clone(&self.shared), address })
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shared.open.lock().all
    }

    /// How many were refused so far.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// How many there may be.
    #[must_use]
    pub fn limits(&self) -> ConnectionLimits {
        self.limits
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.shared.open.lock();
        open.all -= 1;
        if let Some(here) = open.by_address.get_mut(&self.address) {
            *here -= 1;
            if *here == 0 {
                open.by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_stays_and_one_address_does_not_take_all() {
        let limits = ConnectionLimits::of_files(1_024);
        assert_eq!(limits, ConnectionLimits { all: 768, at_one_address: 576 });
        assert_eq!(ConnectionLimits::of_files(100).all, 25);
        assert_eq!(ConnectionLimits::of_files(u64::MAX).all, usize::MAX - 256);
        assert_eq!(ConnectionLimits::of_files(0), ConnectionLimits { all: 1, at_one_address: 1 });
    }

    #[test]
    fn f6_connections_are_counted_by_address_and_their_permits_come_back() {
        let connections = Connections::new(ConnectionLimits { all: 3, at_one_address: 2 });
        let at = |host| Some(IpAddr::from([10, 0, 0, host]));
        let mine = [connections.admit(at(1)).unwrap(), connections.admit(at(1)).unwrap()];
        assert_eq!(connections.admit(at(1)).unwrap_err(), Full::Address { limit: 2 });
        let other = connections.admit(at(2)).unwrap();
        assert_eq!(connections.admit(None).unwrap_err(), Full::All { limit: 3 });
        drop(mine);
        let again = connections.admit(at(1)).unwrap();
        assert_eq!((connections.count(), connections.refused()), (2, 2));
        drop((other, again));
        assert_eq!(connections.count(), 0);
        assert!(connections.shared.open.lock().by_address.is_empty(), "nothing is kept of who has gone");
    }
}
