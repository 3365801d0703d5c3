//! The bytes of a graph that comes in parts.

use bytes::Bytes;
use imbl::Vector;

use crate::ids::TimeMs;
use crate::mars::ids::{GraphKind, Name, SessionNo};
use crate::memory::{Weigh, of_list, of_text};

/// Which one it is.
pub(crate) type UploadKey = (SessionNo, GraphKind, Name);

/// The parts that are there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Upload {
    pub(crate) parts: Vector<Bytes>,
    /// Of all parts. Derived.
    pub(crate) bytes: u64,
    pub(crate) is_complete: bool,
    /// When the last part came.
    pub(crate) touched: TimeMs,
}

impl Upload {
    pub(crate) fn new(now: TimeMs) -> Self {
        Self { parts: Vector::new(), bytes: 0, is_complete: false, touched: now }
    }

    pub(crate) fn add(&mut self, part: Bytes) {
        self.bytes = self.bytes.saturating_add(part.len() as u64);
        self.parts.push_back(part);
    }
}

impl Weigh for Upload {
    fn outside(&self) -> u64 {
        let each = of_text(1).saturating_add(2 * size_of::<Bytes>() as u64);
        self.bytes.saturating_add(of_list::<u8>(0)).saturating_add(each * self.parts.len() as u64)
    }
}

impl Weigh for UploadKey {
    fn outside(&self) -> u64 {
        self.2.outside()
    }
}
