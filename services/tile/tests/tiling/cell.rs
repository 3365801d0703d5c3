//! Partial results of reductions, one element of the result at a time.

use tripod_tile::ReductionFunction;

/// What is known of some elements, for every reduction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    count: f64,
    sum: f64,
    product: f64,
    nonzero: f64,
    mean: f64,
    squares: f64,
    most: Option<(f64, u64)>,
    least: Option<(f64, u64)>,
}

impl Cell {
    pub(crate) fn empty() -> Self {
        let (most, least) = (None, None);
        Self { count: 0.0, sum: 0.0, product: 1.0, nonzero: 0.0, mean: 0.0, squares: 0.0, most, least }
    }

    /// One element, and where it is.
    pub(crate) fn of(value: f64, place: u64) -> Self {
        let best = Some((value, place));
        let nonzero = f64::from(u8::from(value != 0.0));
        Self {
            count: 1.0,
            sum: value,
            product: value,
            nonzero,
            mean: value,
            squares: 0.0,
            most: best,
            least: best,
        }
    }

    /// Both together, by the formula for parallel variances.
    pub(crate) fn merge(&self, other: &Self) -> Self {
        if self.count == 0.0 || other.count == 0.0 {
            return if self.count == 0.0 { other.clone() } else { self.clone() };
        }
        let count = self.count + other.count;
        let delta = other.mean - self.mean;
        let squares = self.squares + other.squares + delta * delta * self.count * other.count / count;
        let better = |one: Option<(f64, u64)>, two: Option<(f64, u64)>, least: bool| {
            let (one, two) = (one?, two?);
            let wins = if least { two.0 < one.0 } else { two.0 > one.0 };
            Some(if wins || (two.0 == one.0 && two.1 < one.1) { two } else { one })
        };
        Self {
            count,
            sum: self.sum + other.sum,
            product: self.product * other.product,
            nonzero: self.nonzero + other.nonzero,
            mean: self.mean + delta * other.count / count,
            squares,
            most: better(self.most, other.most, false),
            least: better(self.least, other.least, true),
        }
    }

    pub(crate) fn result(&self, function: ReductionFunction, ddof: u64) -> f64 {
        let truth = |value: bool| f64::from(u8::from(value));
        match function {
            ReductionFunction::Sum => self.sum,
            ReductionFunction::Prod => self.product,
            ReductionFunction::Max => self.most.expect("numpy refuses this").0,
            ReductionFunction::Min => self.least.expect("numpy refuses this").0,
            ReductionFunction::Any => truth(self.nonzero > 0.0),
            ReductionFunction::All => truth(self.nonzero == self.count),
            ReductionFunction::Count => self.nonzero,
            ReductionFunction::Mean => self.sum / self.count,
            ReductionFunction::Var => self.squares / (self.count - ddof as f64).max(0.0),
            ReductionFunction::ArgMax => self.most.expect("numpy refuses this").1 as f64,
            ReductionFunction::ArgMin => self.least.expect("numpy refuses this").1 as f64,
        }
    }
}
