//! How fast backups are read and written: a disk and processors that are shared with a node leave it most of their
//! time, so that whoever writes meanwhile hardly notices.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// A limit on the bytes of a second, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    mib_per_s: Option<NonZeroU32>,
}

impl Pace {
    /// The limit unless somebody asks for another, in MiB a second.
    pub const DEFAULT_MIB_PER_S: u32 = 32;

    /// So many MiB a second at most; 0 for no limit.
    #[must_use]
    pub fn mib_per_s(mib: u32) -> Self {
        Self { mib_per_s: NonZeroU32::new(mib) }
    }

    /// No limit: nobody is served here.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::mib_per_s(0)
    }

    /// Begins to count.
    #[must_use]
    pub fn walk(self) -> Walk {
        Walk { pace: self, began: Instant::now(), bytes: 0 }
    }

    /// How long so many bytes take at least.
    fn time_of(self, bytes: u64) -> Duration {
        match self.mib_per_s {
            Some(mib) => Duration::from_secs_f64(bytes as f64 / (f64::from(mib.get()) * f64::from(1 << 20))),
            None => Duration::ZERO,
        }
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self::mib_per_s(Self::DEFAULT_MIB_PER_S)
    }
}

/// Work that keeps to a pace.
#[derive(Debug)]
pub struct Walk {
    pace: Pace,
    began: Instant,
    bytes: u64,
}

impl Walk {
    /// So many bytes more are done; gives how long to rest before the next ones.
    pub fn step(&mut self, bytes: usize) -> Duration {
        self.bytes += bytes as u64;
        self.pace.time_of(self.bytes).saturating_sub(self.began.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_counts_from_the_beginning() {
        let pace = Pace::mib_per_s(4);
        assert_eq!(pace.time_of(1 << 20), Duration::from_millis(250));
        let mut walk = pace.walk();
        // What is to be rested and what has passed are what the bytes take, however long this process had no processor.
        for takes in [250, 500].map(Duration::from_millis) {
            let rest = walk.step(1 << 20);
            assert!(
                rest <= takes && rest + walk.began.elapsed() >= takes,
                "{rest:?} of {takes:?}: nobody rested"
            );
        }
        walk.began = Instant::now() - Duration::from_secs(60);
        assert_eq!(walk.step(1 << 20), Duration::ZERO, "it is late by itself");
    }

    #[test]
    fn without_a_limit_nobody_rests() {
        assert_eq!(Pace::unlimited().walk().step(1 << 40), Duration::ZERO);
    }
}
