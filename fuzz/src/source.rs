//! Where every choice of an input comes from: one generator, seeded, so that a seed repeats its inputs.

use rand::rngs::StdRng;
use rand::{Rng as _, RngExt as _, SeedableRng as _};

/// Characters that mean something to somebody who reads text.
const SIGNS: &[&str] = &[
    "/",
    ":",
    ",",
    "=",
    "-",
    ".",
    "%2F",
    "\0",
    "\n",
    "\u{1b}[2J",
    "\u{e9}",
    "\u{1f980}",
    "'",
    "\\",
    "[",
    "]",
];

/// Chance, with a taste for extremes.
pub struct Source {
    random: StdRng,
}

impl Source {
    /// The choices of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { random: StdRng::seed_from_u64(seed) }
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.random.random_range(0..end)
    }

    /// Whether something of which one in `many` is so.
    pub fn one_in(&mut self, many: u32) -> bool {
        self.random.random_ratio(1, many)
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Any bits.
    pub fn bits(&mut self) -> u64 {
        self.random.next_u64()
    }

    /// A number: small ones often, and those at the edges of what numbers of any width can be.
    pub fn number(&mut self) -> u64 {
        match self.below(16) {
            0..=8 => self.bits() % 6,
            9 => self.bits() % 2_000,
            10 => 1 << self.below(64),
            11 => (1_u64 << self.below(64)).wrapping_sub(1),
            12 => u64::MAX - self.bits() % 3,
            13 => i64::MAX as u64 - self.bits() % 3,
            14 => (u64::from(u32::MAX) + 2) - self.bits() % 4,
            _ => self.bits(),
        }
    }

    /// How many elements a list has: few, and sometimes as many as make a bound of lists speak.
    pub fn length(&mut self) -> usize {
        match self.below(64) {
            0 => 1 + self.below(2_000),
            1..=8 => 4 + self.below(16),
            _ => self.below(4),
        }
    }

    /// Text of a few characters, and sometimes of thousands.
    pub fn text(&mut self) -> String {
        let long = self.one_in(48);
        let parts = if long { 200 + self.below(4_000) } else { self.below(6) };
        let mut text = String::new();
        for _ in 0..parts {
            if self.one_in(3) {
                text.push_str(SIGNS[self.below(SIGNS.len())]);
            } else {
                text.push(char::from(b'a' + self.below(4) as u8));
            }
        }
        text
    }

    /// Any bytes of about so many.
    pub fn bytes(&mut self, about: usize) -> Vec<u8> {
        let mut bytes = vec![0; self.below(2 * about + 1)];
        self.random.fill_bytes(&mut bytes);
        bytes
    }
}
