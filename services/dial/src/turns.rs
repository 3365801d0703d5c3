//! How much is under way at a time, in all and for each.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Keys that are remembered before those are forgotten that nobody waits for.
const KEYS_MAX: usize = 1024;

/// Turns, of which each key has some and all keys together have some. Who waits for a turn of its key takes none of the
/// others'.
#[derive(Debug)]
pub(crate) struct Turns<K> {
    all: Arc<Semaphore>,
    for_each: usize,
    keys: Mutex<HashMap<K, Weak<Semaphore>>>,
}

/// One turn, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl<K: Hash + Eq> Turns<K> {
    pub(crate) fn new(all: usize, for_each: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), for_each, keys: Mutex::default() }
    }

    /// Waits for a turn.
    pub(crate) async fn take(&self, key: K) -> Turn {
        let own = self.of(key).acquire_owned().await.expect("it is never closed");
        let all = Arc::clone(&self.all).acquire_owned().await.expect("it is never closed");
        Turn { _own: own, _all: all }
    }

    fn of(&self, key: K) -> Arc<Semaphore> {
        let mut keys = self.keys.lock();
        if let Some(known) = keys.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        if keys.len() >= KEYS_MAX {
            keys.retain(|_, turns| turns.strong_count() > 0);
        }
        let new = Arc::new(Semaphore::new(self.for_each));
        keys.insert(key, Arc::downgrade(&new));
        new
    }
}

/// Whom an address belongs to, as far as an address tells: a machine has 2^64 of IPv6.
pub(crate) fn host_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn who_waits_for_its_own_turn_holds_up_nobody_else() {
        let turns = Turns::new(3, 2);
        let now = |key| {
            let mut taken = pin!(turns.take(key));
            match taken.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                std::task::Poll::Ready(turn) => Some(turn),
                std::task::Poll::Pending => None,
            }
        };
        let held = [now(1).expect("free"), now(1).expect("free")];
        assert!(now(1).is_none(), "its own are taken");
        let other = now(2).expect("one is left for others");
        assert!(now(3).is_none(), "all are taken");
        drop(held);
        assert!(now(3).is_some());
        drop(other);
    }

    #[test]
    fn keys_that_nobody_waits_for_are_forgotten() {
        let turns = Turns::new(1, 1);
        for key in 0..KEYS_MAX * 3 {
            drop(turns.of(key));
        }
        assert!(turns.keys.lock().len() <= KEYS_MAX, "{}", turns.keys.lock().len());
    }

    #[test]
    fn the_addresses_of_a_machine_are_one_host() {
        let host = |text: &str| host_of(text.parse().expect("an address"));
        assert_eq!(host("fd00::1:2:3:4"), host("fd00::5:6:7:8"));
        assert_ne!(host("fd00:0:0:1::1"), host("fd00:0:0:2::1"));
        assert_eq!(host("::ffff:10.0.0.1"), host("10.0.0.1"));
        assert_ne!(host("10.0.0.1"), host("10.0.0.2"));
    }
}
