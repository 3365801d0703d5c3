//! Connections of which nothing has come yet. When all places are taken, they give way to those that come.
//!
//! A protocol may let its clients rest before their first byte for longer than anybody can be kept out. So what has said
//! nothing keeps its permit only for as long as no other needs it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tripod_local::{ConnectionPermit, Full};

use crate::caller_address::CallerAddress;

/// Connections that have given way and are not closed yet, at most. Each of them is an open file without a permit, of those
/// that a process keeps for itself.
const GIVING_WAY_MAX: usize = 32;

/// Those of a process, on all its ports. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct SilentConnections {
    shared: Arc<Mutex<Silent>>,
}

#[derive(Debug, Default)]
struct Silent {
    /// How many have ever come.
    came: u64,
    /// In the order in which they came.
    by_address: HashMap<CallerAddress, BTreeMap<u64, Kept>>,
    /// The addresses, by how many are there; the last one has most, and of several with as many it has waited longest.
    order: BTreeSet<(usize, Reverse<u64>, CallerAddress)>,
    giving_way: usize,
}

/// What is kept of a connection until it says something.
#[derive(Debug)]
struct Kept {
    permit: ConnectionPermit,
    /// Dropped, it tells the connection that it has given way.
    _word: oneshot::Sender<()>,
}

/// The silence of one connection, to be kept until it is over or the connection is closed.
#[derive(Debug)]
pub(crate) struct Silence {
    connections: SilentConnections,
    address: CallerAddress,
    number: u64,
    word: oneshot::Receiver<()>,
    /// The word was heard.
    has_given_way: bool,
    /// The permit was given back.
    is_over: bool,
}

impl SilentConnections {
    /// A connection from there has said nothing yet.
    pub(crate) fn enter(&self, address: CallerAddress, permit: ConnectionPermit) -> Silence {
        let (tell, word) = oneshot::channel();
        let mut silent = self.shared.lock();
        silent.came += 1;
        let number = silent.came;
        silent.change(address, |here| here.insert(number, Kept { permit, _word: tell }));
        drop(silent);
        Silence { connections: self.clone(), address, number, word, has_given_way: false, is_over: false }
    }

    /// Has one give way to a connection from there, for which there was no permit: of its own address, if that has as many
    /// as it may; else of the address that has most of them, so that who has few of them loses none to who has many. Of those
    /// the one that has been silent longest. Gives whether there is a permit more.
    pub(super) fn make_way(&self, full: Full, address: CallerAddress) -> bool {
        let mut silent = self.shared.lock();
        if silent.giving_way >= GIVING_WAY_MAX {
            return false;
        }
        let of = match full {
            Full::Address { .. } => Some(address),
            Full::All { .. } => silent.order.last().map(|(_, _, address)| *address),
        };
        let gone = of.and_then(|of| silent.change(of, BTreeMap::pop_first));
        silent.giving_way += usize::from(gone.is_some());
        drop(silent);
        gone.is_some()
    }
}

impl Silent {
    /// Changes who is there of an address.
    fn change<T>(&mut self, address: CallerAddress, change: impl FnOnce(&mut BTreeMap<u64, Kept>) -> T) -> T {
        let here = self.by_address.entry(address).or_default();
        if let Some(place) = place(here, address) {
            self.order.remove(&place);
        }
        let changed = change(here);
        match place(here, address) {
            Some(place) => {
                self.order.insert(place);
            }
            None => {
                self.by_address.remove(&address);
            }
        }
        changed
    }
}

fn place(here: &BTreeMap<u64, Kept>, address: CallerAddress) -> Option<(usize, Reverse<u64>, CallerAddress)> {
    let (first, _) = here.first_key_value()?;
    Some((here.len(), Reverse(*first), address))
}

impl Silence {
    /// Ready when the connection has given way: it has no permit any more, and is to be closed.
    pub(crate) fn poll_given_way(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.has_given_way {
            // Nothing is ever sent: it ends with what is kept.
            let _ = ready!(Pin::new(&mut self.word).poll(context));
            self.has_given_way = true;
        }
        Poll::Ready(())
    }

    /// The connection has said something. Gives back its permit, unless it has given way before that was heard.
    pub(crate) fn end(&mut self) -> Option<ConnectionPermit> {
        let number = self.number;
        let kept = self.connections.shared.lock().change(self.address, |here| here.remove(&number))?;
        self.is_over = true;
        Some(kept.permit)
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        if !self.is_over && self.end().is_none() {
            // Another one has its permit, and now it is closed.
            self.connections.shared.lock().giving_way -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use tripod_local::{ConnectionLimits, Connections};

    use super::*;

    const HERE: Full = Full::Address { limit: 1 };
    const ANYWHERE: Full = Full::All { limit: 1 };

    fn at(host: u8) -> CallerAddress {
        CallerAddress::at([10, 0, 0, host].into())
    }

    /// One connection from each of these hosts, in this order.
    fn silent(hosts: &[u8]) -> (Connections, SilentConnections, Vec<Silence>) {
        let (connections, silent) =
            (Connections::new(ConnectionLimits::none()), SilentConnections::default());
        let enter = |host: &u8| silent.enter(at(*host), connections.admit(at(*host).0).unwrap());
        let silences = hosts.iter().map(enter).collect();
        (connections, silent, silences)
    }

    fn has_given_way(silence: &mut Silence) -> bool {
        silence.poll_given_way(&mut Context::from_waker(std::task::Waker::noop())).is_ready()
    }

    #[test]
    fn of_an_address_the_one_gives_way_that_has_been_silent_longest() {
        let (connections, silent, mut silences) = silent(&[2, 1, 1, 2]);
        assert!(silent.make_way(HERE, at(1)));
        let given: Vec<bool> = silences.iter_mut().map(has_given_way).collect();
        assert_eq!((given, connections.count()), (vec![false, true, false, false], 3));
        assert!(!silent.make_way(HERE, at(3)), "it has none");
    }

    #[test]
    fn an_address_with_few_silent_connections_loses_none_to_one_with_many() {
        let (_, silent, mut silences) = silent(&[1, 2, 2, 2, 3]);
        assert!(silent.make_way(ANYWHERE, at(4)) && silent.make_way(ANYWHERE, at(2)));
        let given: Vec<bool> = silences.iter_mut().map(has_given_way).collect();
        assert_eq!(given, [false, true, true, false, false]);
        // With one each, who came first goes.
        assert!(silent.make_way(ANYWHERE, at(4)));
        assert!(has_given_way(&mut silences[0]));
    }

    #[test]
    fn who_has_said_something_has_its_permit_and_gives_way_to_nobody() {
        let (connections, silent, mut silences) = silent(&[1]);
        let permit = silences[0].end().expect("nobody wanted it");
        assert!(!silent.make_way(HERE, at(1)) && !has_given_way_unheard(&silent));
        drop(silences);
        assert_eq!(connections.count(), 1);
        drop(permit);
        assert_eq!(connections.count(), 0);
    }

    #[test]
    fn what_is_heard_of_one_that_has_given_way_comes_too_late() {
        let (connections, silent, mut silences) = silent(&[1]);
        assert!(silent.make_way(HERE, at(1)));
        assert!(silences[0].end().is_none());
        assert_eq!(connections.count(), 0);
    }

    #[test]
    fn few_files_at_a_time_are_open_without_a_permit() {
        let (_, silent, mut silences) = silent(&[1; 2 * GIVING_WAY_MAX]);
        for _ in 0..GIVING_WAY_MAX {
            assert!(silent.make_way(HERE, at(1)));
        }
        assert!(!silent.make_way(HERE, at(1)), "those before are not closed");
        // One whose word was not even heard.
        drop(silences.remove(0));
        assert!(silent.make_way(HERE, at(1)));
        drop(silences);
        let rest = silent.shared.lock();
        assert!(rest.giving_way == 0 && rest.by_address.is_empty() && rest.order.is_empty());
    }

    fn has_given_way_unheard(silent: &SilentConnections) -> bool {
        silent.shared.lock().giving_way > 0
    }
}
