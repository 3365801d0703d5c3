//! What a gate does with a refusal.

use std::fmt;
use std::str::FromStr;

/// What a gate does with a refusal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Mode {
    /// Nothing is asked, and nothing counted.
    #[default]
    Off,
    /// It is counted, and the call is made.
    Rehearse,
    /// The call is not made.
    Enforce,
}

impl Mode {
    pub(crate) const ALL: [Self; 3] = [Self::Off, Self::Rehearse, Self::Enforce];

    /// As settings have it: `off`, `log`, `enforce`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Rehearse => "log",
            Self::Enforce => "enforce",
        }
    }
}

impl FromStr for Mode {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|mode| mode.word() == text).ok_or("must be off, log or enforce")
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_read_as_it_is_written() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert!("On".parse::<Mode>().is_err() && "".parse::<Mode>().is_err());
    }
}
