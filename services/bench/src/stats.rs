//! Medians, ranges and ratios of few figures.

/// The figures of one quantity, one a round.
#[derive(Debug, Clone, Default)]
pub(super) struct Samples(Vec<f64>);

impl Samples {
    pub(super) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// The middle figure; of an even number, the mean of the two middle ones. Not a number if empty.
    pub(super) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            length if length % 2 == 1 => sorted[length / 2],
            length => f64::midpoint(sorted[length / 2 - 1], sorted[length / 2]),
        }
    }

    pub(super) fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::min)
    }

    pub(super) fn max(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::max)
    }

    /// The median of the ratios round by round: what disturbs a whole round cancels out.
    pub(super) fn median_ratio(&self, base: &Self) -> f64 {
        Self(self.0.iter().zip(&base.0).map(|(ours, theirs)| ours / theirs).collect()).median()
    }
}

/// A bound that the project has set itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

impl Goal {
    /// The bound and whether `figure` keeps it, as table cells.
    pub(super) fn cells(self, figure: f64, unit: &str) -> String {
        let (sign, bound, met) = match self {
            Self::AtLeast(bound) => (">=", bound, figure >= bound),
            Self::AtMost(bound) => ("<=", bound, figure <= bound),
        };
        format!("{sign} {bound}{unit} | {}", if met { "met" } else { "**missed**" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_ratios_ignores_a_disturbed_round() {
        let ours = Samples(vec![200.0, 20.0, 210.0]);
        let theirs = Samples(vec![100.0, 10.0, 100.0]);
        assert_eq!(ours.median_ratio(&theirs), 2.0);
        assert_eq!((ours.min(), ours.median(), ours.max()), (20.0, 200.0, 210.0));
    }

    #[test]
    fn an_even_number_of_figures_has_a_median_too() {
        assert_eq!(Samples(vec![4.0, 1.0, 3.0, 2.0]).median(), 2.5);
        assert!(Samples::default().median().is_nan());
    }

    #[test]
    fn a_goal_is_missed_by_a_figure_that_is_not_there() {
        assert_eq!(Goal::AtLeast(1.0).cells(1.0, "x"), ">= 1x | met");
        assert_eq!(Goal::AtMost(1.5).cells(1.6, " s"), "<= 1.5 s | **missed**");
        assert_eq!(Goal::AtLeast(1.0).cells(f64::NAN, "x"), ">= 1x | **missed**");
    }
}
