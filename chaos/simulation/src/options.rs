//! What a simulation is told besides its seed.

use clap::ValueEnum as _;

/// Lengths and switches of one run. The seed decides everything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How long faults are injected, in milliseconds of simulated time.
    pub faults_for_ms: u64,
    /// A mistake to be made on purpose, to see it caught.
    pub planted: Option<super::Planted>,
    /// Whether a scheduler with its peers is in every run. Without it the seed decides: in one of five.
    pub scheduler: bool,
    /// Whether nodes of MindSpore are in every run. Without it the seed decides: in one of seven.
    pub mindspore: bool,
    /// Whether the report holds the lines of the event log.
    pub keep_events: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { faults_for_ms: 20_000, planted: None, scheduler: false, mindspore: false, keep_events: false }
    }
}

impl Options {
    /// The arguments with which `tripod-chaos` runs a seed with these options. Defaults are spelt out, so that a build
    /// with others does the same.
    #[must_use]
    pub fn arguments(&self, seed: u64) -> Vec<String> {
        let Self { faults_for_ms, planted, scheduler, mindspore, keep_events } = self;
        let mut words = vec!["run".to_owned(), super::NAME.to_owned()];
        words.extend(["--seed".to_owned(), seed.to_string()]);
        words.extend(["--faults-for-ms".to_owned(), faults_for_ms.to_string()]);
        if *scheduler {
            words.push("--scheduler".to_owned());
        }
        if *mindspore {
            words.push("--mindspore".to_owned());
        }
        if let Some(value) = planted.and_then(|planted| planted.to_possible_value()) {
            words.extend(["--plant".to_owned(), value.get_name().to_owned()]);
        }
        if *keep_events {
            words.push("--events".to_owned());
        }
        words
    }

    /// The command that runs a seed with these options again.
    #[must_use]
    pub fn reproduce(&self, seed: u64) -> String {
        format!("tripod-chaos {}", self.arguments(seed).join(" "))
    }
}
