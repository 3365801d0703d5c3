//! Random numbers that a seed repeats.

/// A generator of the family xorshift*.
#[derive(Debug, Clone)]
pub(in crate::disk::journal) struct Dice(u64);

impl Dice {
    pub(in crate::disk::journal) fn new(seed: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        dice.next();
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// A number below `bound`.
    pub(in crate::disk::journal) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Heads or tails.
    pub(in crate::disk::journal) fn flip(&mut self) -> bool {
        self.below(2) == 0
    }

    #[cfg(test)]
    pub(in crate::disk::journal) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }
}
