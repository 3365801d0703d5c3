//! The numbers of one session: which are out.

use std::collections::VecDeque;

/// How far the newest number may be ahead of the oldest that is not answered. A quarter of what the state allows (16,384), so
/// that it never has to refuse one of ours; and the state keeps the replies of a whole span while its oldest call is held,
/// which should be a fraction of a megabyte.
pub(crate) const SPAN_MAX: usize = 4096;

/// Number of a command in its session, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sequence(pub(crate) u64);

/// A number that was taken, and the lowest one that was not answered then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) sequence: Sequence,
    pub(crate) acknowledged_below: Sequence,
}

/// A ring: one flag a number, from the floor to the newest.
#[derive(Debug)]
pub(crate) struct Numbers {
    /// The lowest number that is not answered; the next one when all are.
    floor: u64,
    answered: VecDeque<bool>,
    span_max: usize,
}

impl Numbers {
    pub(crate) fn new(span_max: usize) -> Self {
        Self { floor: 1, answered: VecDeque::new(), span_max }
    }

    /// Takes the next number, unless the oldest that is not answered is too far behind.
    pub(crate) fn take(&mut self) -> Option<Taken> {
        if self.answered.len() >= self.span_max {
            return None;
        }
        let sequence = Sequence(self.floor + self.answered.len() as u64);
        self.answered.push_back(false);
        Some(Taken { sequence, acknowledged_below: Sequence(self.floor) })
    }

    /// Nobody will send the command with this number again.
    pub(crate) fn finish(&mut self, Sequence(sequence): Sequence) {
        let place = sequence.checked_sub(self.floor).and_then(|place| usize::try_from(place).ok());
        if let Some(answered) = place.and_then(|place| self.answered.get_mut(place)) {
            *answered = true;
        }
        while self.answered.front() == Some(&true) {
            self.answered.pop_front();
            self.floor += 1;
        }
    }

    /// Whether no number is out.
    pub(crate) fn is_idle(&self) -> bool {
        self.answered.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(numbers: &mut Numbers) -> (u64, u64) {
        let Taken { sequence, acknowledged_below } = numbers.take().expect("within the span");
        (sequence.0, acknowledged_below.0)
    }

    #[test]
    fn the_floor_is_the_oldest_number_that_is_out() {
        let mut numbers = Numbers::new(SPAN_MAX);
        assert_eq!([1, 2, 3].map(|_| taken(&mut numbers)), [(1, 1), (2, 1), (3, 1)]);
        numbers.finish(Sequence(2));
        assert_eq!(taken(&mut numbers), (4, 1), "the first is still out");
        numbers.finish(Sequence(1));
        assert_eq!(taken(&mut numbers), (5, 3));
        for sequence in 3..=5 {
            assert!(!numbers.is_idle());
            numbers.finish(Sequence(sequence));
        }
        assert!(numbers.is_idle());
        assert_eq!(taken(&mut numbers), (6, 6));
    }

    #[test]
    fn a_number_that_stays_out_bounds_how_far_the_others_run_ahead() {
        let mut numbers = Numbers::new(3);
        assert_eq!([1, 2, 3].map(|_| taken(&mut numbers).0), [1, 2, 3]);
        numbers.finish(Sequence(2));
        numbers.finish(Sequence(3));
        assert_eq!(numbers.take(), None);
        numbers.finish(Sequence(1));
        assert_eq!(taken(&mut numbers), (4, 4));
    }

    #[test]
    fn a_number_that_is_finished_twice_finishes_no_other() {
        let mut numbers = Numbers::new(3);
        taken(&mut numbers);
        numbers.finish(Sequence(1));
        taken(&mut numbers);
        numbers.finish(Sequence(1));
        assert_eq!(taken(&mut numbers), (3, 2));
    }

    #[test]
    fn the_span_is_well_within_what_the_state_allows() {
        let allowed = usize::try_from(tripod_state::limits::SESSION_WINDOW).expect("small");
        assert!(SPAN_MAX <= allowed / 2, "{SPAN_MAX} of {allowed}");
    }
}
