//! Where every random number of this crate, and of the engine below it, comes from. Normally that is the
//! operating system. A simulation seeds it for its thread, and the same seed then gives the same run.

use std::cell::RefCell;
use std::convert::Infallible;
use std::marker::PhantomData;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng as _, TryRng};

thread_local! {
    static SEEDED: RefCell<Option<SmallRng>> = const { RefCell::new(None) };
}

/// A source of random numbers, to be used wherever one is needed. All values of this type are the same
/// source: that of the thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chance;

impl Chance {
    /// Has this thread draw all of its numbers from `seed` until the guard is dropped.
    #[must_use]
    pub fn seed(seed: u64) -> SeededChance {
        let before = SEEDED.replace(Some(SmallRng::seed_from_u64(seed)));
        SeededChance { before, _of_this_thread: PhantomData }
    }

    /// Whether this thread draws from a seed: then it is a simulation's, and nothing may leave it.
    #[must_use]
    pub fn is_seeded() -> bool {
        SEEDED.with_borrow(Option::is_some)
    }

    fn draw<T>(from_seed: impl FnOnce(&mut SmallRng) -> T, from_system: impl FnOnce() -> T) -> T {
        SEEDED.with_borrow_mut(|seeded| match seeded {
            Some(generator) => from_seed(generator),
            None => from_system(),
        })
    }
}

impl TryRng for Chance {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(Self::draw(Rng::next_u32, || rand::rng().next_u32()))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(Self::draw(Rng::next_u64, || rand::rng().next_u64()))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        SEEDED.with_borrow_mut(|seeded| match seeded {
            Some(generator) => generator.fill_bytes(bytes),
            None => rand::rng().fill_bytes(bytes),
        });
        Ok(())
    }
}

/// While it lives, the thread that made it draws from a seed. Guards of one thread are dropped in the
/// reverse of the order in which they were made, as variables are.
#[derive(Debug)]
pub struct SeededChance {
    before: Option<SmallRng>,
    /// Dropped on another thread it would end that one's seed.
    _of_this_thread: PhantomData<*const ()>,
}

impl Drop for SeededChance {
    fn drop(&mut self) {
        SEEDED.replace(self.before.take());
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;

    use super::*;

    fn numbers() -> Vec<u64> {
        (0..8).map(|_| Chance.random_range(0..1_000_000)).collect()
    }

    #[test]
    fn a_seed_repeats_and_ends_with_its_guard() {
        let first = {
            let _seeded = Chance::seed(7);
            numbers()
        };
        let again = {
            let _seeded = Chance::seed(7);
            let within = {
                let _other = Chance::seed(8);
                numbers()
            };
            assert_ne!(within, first);
            numbers()
        };
        assert_eq!(again, first);
        assert_ne!(numbers(), numbers(), "without a seed nothing repeats");
    }
}
