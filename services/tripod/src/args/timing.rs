//! How fast elections are, as one word.

use std::fmt;

use clap::ValueEnum;
use tripod_raft::Timing;
use tripod_state::ids::DurationMs;

/// A set of Raft's clocks that go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Pace {
    /// For machines and networks that may stall for a few hundred milliseconds
    #[default]
    Default,
    /// For nodes in one machine room with processors to spare: a dead leader is replaced in about half the
    /// time, and a stall of 150 ms is already taken for a death
    Fast,
}

impl Pace {
    pub(crate) fn timing(self) -> Timing {
        match self {
            Self::Default => Timing::default(),
            Self::Fast => Timing {
                heartbeat: DurationMs(50),
                election_min: DurationMs(150),
                election_max: DurationMs(300),
            },
        }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::Fast => "fast",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_as_it_is_shown() {
        for pace in Pace::value_variants() {
            assert_eq!(Pace::from_str(&pace.to_string(), false).as_ref(), Ok(pace));
        }
    }
}
