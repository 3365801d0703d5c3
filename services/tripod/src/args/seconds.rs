//! Lengths of time on the command line: seconds, with a fraction if need be.

use std::str::FromStr;
use std::time::Duration;

/// A length of time in whole milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seconds {
    milliseconds: u64,
}

impl Seconds {
    pub(crate) fn milliseconds(self) -> u64 {
        self.milliseconds
    }

    pub(crate) fn duration(self) -> Duration {
        Duration::from_millis(self.milliseconds)
    }

    /// As it is written on a command line.
    pub(crate) fn to_flag(self) -> String {
        format!("{}.{:03}", self.milliseconds / 1000, self.milliseconds % 1000)
    }
}

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
        let length = Duration::try_from_secs_f64(seconds).map_err(|_| "no length of time".to_owned())?;
        if !length.is_zero() && length.as_millis() == 0 {
            return Err("below a millisecond".into());
        }
        let milliseconds = u64::try_from(length.as_millis()).map_err(|_| "too long".to_owned())?;
        Ok(Self { milliseconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_kept_to_the_millisecond() {
        let read = |text: &str| text.parse::<Seconds>().map(Seconds::milliseconds);
        assert_eq!(read("2.5"), Ok(2500));
        assert_eq!(read("0"), Ok(0));
        assert_eq!(read("100"), Ok(100_000));
        assert_eq!("1.25".parse::<Seconds>().expect("legal").to_flag(), "1.250");
    }

    #[test]
    fn what_is_no_length_of_time_is_refused() {
        for text in ["-1", "NaN", "inf", "1e300", "soon", "", "0.0001"] {
            assert!(text.parse::<Seconds>().is_err(), "{text:?} was accepted");
        }
    }
}
