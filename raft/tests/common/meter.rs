//! What passes to one address.

use std::sync::Mutex;

use super::network::Wire;

/// Counts, and cuts when it has counted enough.
#[derive(Default)]
pub(crate) struct Meter {
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    knocks: u64,
    passed_bytes: u64,
    cuts: u64,
    cut_after: Option<(u64, Wire)>,
}

impl Meter {
    pub(super) fn knock(&self) {
        self.counts.lock().unwrap().knocks += 1;
    }

    /// How often somebody wanted to connect.
    pub(crate) fn knocks(&self) -> u64 {
        self.counts.lock().unwrap().knocks
    }

    /// Bytes that arrived, over all connections.
    pub(crate) fn passed_bytes(&self) -> u64 {
        self.counts.lock().unwrap().passed_bytes
    }

    /// How many connections were ended because of what they brought.
    pub(crate) fn cuts(&self) -> u64 {
        self.counts.lock().unwrap().cuts
    }

    /// Ends the first connection that brings more than so many bytes; all ways are then as is said.
    pub(crate) fn cut_after(&self, bytes: u64, then: Wire) {
        self.counts.lock().unwrap().cut_after = Some((bytes, then));
    }

    /// Notes bytes of a connection that has brought so many in all. What the ways are then, if it is to end.
    pub(super) fn pass(&self, bytes: u64, brought: u64) -> Option<Wire> {
        let mut counts = self.counts.lock().unwrap();
        counts.passed_bytes += bytes;
        let (_, then) = counts.cut_after.take_if(|(limit, _)| brought > *limit)?;
        counts.cuts += 1;
        Some(then)
    }
}
