//! What one system did under one load, round by round.

use tripod_load::report::Report;

use super::stats::Samples;

/// One sample a round of each figure.
#[derive(Default)]
pub(super) struct Record {
    /// Operations, or whatever the table counts, per second.
    pub(super) rate: Samples,
    pub(super) p50_us: Samples,
    pub(super) p99_us: Samples,
    pub(super) errors: u64,
}

impl Record {
    /// Adds a round that had this rate.
    pub(super) fn add(&mut self, rate: f64, report: &Report) {
        self.rate.push(rate);
        self.p50_us.push(report.p50_us as f64);
        self.p99_us.push(report.p99_us as f64);
        self.errors += report.errors;
    }
}
