//! Mistakes planted in histories, and how many of them were seen.

use rand::SeedableRng as _;
use rand::rngs::SmallRng;

use crate::check::{Checked, Conclusion};
use crate::history::History;

/// How often one kind of mistake was planted, and how often it was caught.
pub(in crate::check) struct Tally<'a> {
    name: &'a str,
    planted: u32,
    caught: u32,
}

impl<'a> Tally<'a> {
    /// Plants a mistake in the history of every seed that offers a place for it, and expects it to be caught
    /// wherever it was planted. `plant` tells whether it found a place, and plants nothing that could be
    /// right.
    pub(in crate::check) fn all_caught(
        name: &'a str,
        seeds: u64,
        history: impl Fn(u64) -> History,
        plant: impl Fn(&mut SmallRng, &mut History) -> bool,
        check: impl Fn(&History) -> Checked,
    ) {
        let mut tally = Self { name, planted: 0, caught: 0 };
        for seed in 0..seeds {
            let mut history = history(seed);
            let before = check(&history);
            assert!(before.held(), "seed {seed}: the model makes no mistakes: {before:?}");
            assert!(before.examined > 0, "seed {seed}: nothing was looked at");
            if !plant(&mut SmallRng::seed_from_u64(seed ^ 0x5eed), &mut history) {
                continue;
            }
            tally.planted += 1;
            let checked = check(&history);
            match &checked.conclusion {
                Conclusion::Violated { violations, .. } => {
                    assert!(!violations[0].explanation.is_empty());
                    tally.caught += 1;
                }
                other => eprintln!("{name}: seed {seed} was not caught: {other:?}"),
            }
        }
        eprintln!("{}: caught {} of {} planted in {seeds} seeds", tally.name, tally.caught, tally.planted);
        assert!(
            u64::from(tally.planted) * 4 >= seeds,
            "{name}: too few places: {} of {seeds}",
            tally.planted
        );
        assert_eq!(tally.caught, tally.planted, "{name}: some were missed");
    }
}
