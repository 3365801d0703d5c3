//! What a simulation is told besides its seed.

/// Lengths and switches of one run. The seed decides everything else.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long faults are injected, in milliseconds of simulated time.
    pub faults_for_ms: u64,
    /// A mistake to be made on purpose, to see it caught.
    pub planted: Option<super::Planted>,
    /// Whether a scheduler with its peers is in every run. Without it the seed decides: in one of five.
    pub scheduler: bool,
    /// Whether the report holds the lines of the event log.
    pub keep_events: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { faults_for_ms: 20_000, planted: None, scheduler: false, keep_events: false }
    }
}
