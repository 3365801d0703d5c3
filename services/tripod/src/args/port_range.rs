//! `FIRST-LAST`: the ports on which a node serves jobs.

use std::fmt;
use std::str::FromStr;

use tripod_proto::code::Code;

use crate::failure::Failure;

/// A range of ports, never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortRange {
    pub(crate) first: u16,
    pub(crate) last: u16,
}

impl PortRange {
    pub(crate) fn count(self) -> u16 {
        // The whole range of 65,535 ports still fits, because port 0 is refused.
        self.last - self.first + 1
    }

    /// That of jobs and another one: no port can serve both.
    pub(crate) fn check_apart(self, mindspore: Option<Self>) -> Result<(), Failure> {
        let Some(mindspore) = mindspore.filter(|other| self.overlaps(*other)) else { return Ok(()) };
        let text = format!(
            "--mindspore-ports {mindspore} and --job-ports {self} have ports in common; choose ranges that do not"
        );
        Err(Failure::new(Code::FlagsConflict, text))
    }

    /// Whether a port is in both.
    fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// The port of a slot, if the range reaches that far.
    pub(crate) fn port(self, slot: u16) -> Option<u16> {
        self.first.checked_add(slot).filter(|port| *port <= self.last)
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

impl FromStr for PortRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (first, last) = text.split_once('-').ok_or("write it as FIRST-LAST")?;
        let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
        let first = port(first).ok_or_else(|| format!("`{first}` is no port"))?;
        let last = port(last).ok_or_else(|| format!("`{last}` is no port"))?;
        if last < first {
            return Err("the last port is below the first".into());
        }
        Ok(Self { first, last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_knows_the_port_of_each_slot() {
        let range: PortRange = "8000-8099".parse().expect("legal");
        assert_eq!((range.count(), range.port(0), range.port(99)), (100, Some(8000), Some(8099)));
        assert_eq!(range.port(100), None);
        assert_eq!(range.to_string(), "8000-8099");
        let top: PortRange = "65535-65535".parse().expect("legal");
        assert_eq!((top.port(0), top.port(1)), (Some(65535), None));
        let other = |text: &str| text.parse::<PortRange>().expect("legal");
        assert!(
            range.overlaps(other("8099-8100")) && range.overlaps(other("7000-8000")) && range.overlaps(range)
        );
        assert!(!range.overlaps(other("8100-8199")) && !range.overlaps(top));
    }

    #[test]
    fn what_is_no_range_is_refused_with_the_reason() {
        let refusal = |text: &str| text.parse::<PortRange>().expect_err("refused");
        assert_eq!(refusal("8000"), "write it as FIRST-LAST");
        assert_eq!(refusal("0-9"), "`0` is no port");
        assert_eq!(refusal("9-70000"), "`70000` is no port");
        assert_eq!(refusal("9-8"), "the last port is below the first");
    }
}
