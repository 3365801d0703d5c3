//! The number of a task.

use std::fmt;
use std::str::FromStr;

use crate::Refused;

/// Which task of its job: 0 to 2,147,483,647, as clients send it in 32 bits with a sign. Written without leading zeros and without
/// a sign, so that a number has one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskNumber(i32);

impl TaskNumber {
    /// The number, if it is not below 0.
    ///
    /// # Errors
    /// It is.
    pub fn new(number: i32) -> Result<Self, Refused> {
        if number < 0 { Err(Refused::Task) } else { Ok(Self(number)) }
    }

    /// The number as clients send it.
    #[must_use]
    pub fn get(self) -> i32 {
        self.0
    }
}

impl FromStr for TaskNumber {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Self, Refused> {
        let one_text = text == "0" || !text.starts_with(['0', '+', '-']);
        let number = text.parse().map_err(|_| Refused::Task)?;
        if one_text { Self::new(number) } else { Err(Refused::Task) }
    }
}

impl fmt::Display for TaskNumber {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_text() {
        for (text, number) in [("0", 0), ("7", 7), ("10", 10), ("2147483647", i32::MAX)] {
            assert_eq!(text.parse::<TaskNumber>().map(TaskNumber::get), Ok(number));
        }
        for text in ["", "-1", "-0", "+1", "00", "07", "1 ", "2147483648", "99999999999999999999", "0x1", "١"]
        {
            assert_eq!(text.parse::<TaskNumber>(), Err(Refused::Task), "{text}");
        }
    }
}
