//! What is counted, for [`AgentStatus`](crate::AgentStatus).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::calls::Kind;

/// Counters of an agent.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    clients: AtomicU64,
    held: [AtomicU64; Kind::ALL.len()],
    beats_told: AtomicU64,
    beats_in_words: AtomicU64,
    beats_leased: AtomicU64,
}

/// Which gauge a [`Counted`] belongs to.
#[derive(Debug, Clone, Copy)]
enum Gauge {
    Clients,
    Held(Kind),
}

/// Something that is counted for as long as it lives.
#[derive(Debug)]
pub(crate) struct Counted {
    meters: Arc<Meters>,
    gauge: Gauge,
}

impl Meters {
    /// A client's connection.
    pub(crate) fn client(self: &Arc<Self>) -> Counted {
        self.count(Gauge::Clients)
    }

    /// A client's call.
    pub(crate) fn call(self: &Arc<Self>, kind: Kind) -> Counted {
        self.count(Gauge::Held(kind))
    }

    /// A heartbeat got a verdict.
    pub(crate) fn told(&self) {
        self.beats_told.fetch_add(1, Ordering::Relaxed);
    }

    /// It got it as one of a set.
    pub(crate) fn told_in_a_word(&self) {
        self.beats_in_words.fetch_add(1, Ordering::Relaxed);
    }

    /// A heartbeat was answered from the lease.
    pub(crate) fn leased(&self) {
        self.beats_leased.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn clients(&self) -> u64 {
        self.clients.load(Ordering::Relaxed)
    }

    pub(crate) fn held(&self, kind: Kind) -> u64 {
        self.gauge(Gauge::Held(kind)).load(Ordering::Relaxed)
    }

    pub(crate) fn beats_told(&self) -> u64 {
        self.beats_told.load(Ordering::Relaxed)
    }

    pub(crate) fn beats_in_words(&self) -> u64 {
        self.beats_in_words.load(Ordering::Relaxed)
    }

    pub(crate) fn beats_leased(&self) -> u64 {
        self.beats_leased.load(Ordering::Relaxed)
    }

    fn count(self: &Arc<Self>, gauge: Gauge) -> Counted {
        self.gauge(gauge).fetch_add(1, Ordering::Relaxed);
        Counted { meters: Arc::clone(self), gauge }
    }

    fn gauge(&self, gauge: Gauge) -> &AtomicU64 {
        match gauge {
            Gauge::Clients => &self.clients,
            Gauge::Held(kind) => &self.held[kind as usize],
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.meters.gauge(self.gauge).fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lives_is_counted() {
        let meters = Arc::new(Meters::default());
        let call = meters.call(Kind::Poll);
        let clients = [meters.client(), meters.client()];
        assert_eq!((meters.clients(), meters.held(Kind::Poll), meters.held(Kind::Get)), (2, 1, 0));
        drop((call, clients));
        assert_eq!((meters.clients(), meters.held(Kind::Poll)), (0, 0));
    }

    #[test]
    fn every_kind_has_its_place() {
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
        }
    }
}
