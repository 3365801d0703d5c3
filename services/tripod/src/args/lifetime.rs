//! How long something is to live: a number and a unit.

use std::str::FromStr;

/// In milliseconds; never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lifetime(pub(crate) u64);

/// Milliseconds of each unit.
const UNITS: [(char, u64); 4] = [('s', 1_000), ('m', 60_000), ('h', 3_600_000), ('d', 86_400_000)];

impl FromStr for Lifetime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || "write a number and s, m, h or d, such as 12h".to_owned();
        let (unit, ms) = UNITS.into_iter().find(|(unit, _)| text.ends_with(*unit)).ok_or_else(form)?;
        let number = text.strip_suffix(unit).unwrap_or_default();
        if number.is_empty() || !number.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(form());
        }
        let number: u64 = number.parse().map_err(|_| form())?;
        match number.checked_mul(ms) {
            Some(0) => Err("must be above 0".to_owned()),
            Some(ms) => Ok(Self(ms)),
            None => Err("too long".to_owned()),
        }
    }
}

/// A length of time in the largest unit of which there is one at least: `12 h`, `90 d`.
pub(crate) fn in_words(ms: u64) -> String {
    let (unit, length) = UNITS.into_iter().rev().find(|(_, length)| ms >= *length).unwrap_or(UNITS[0]);
    format!("{} {unit}", ms / length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_a_number_and_a_unit() {
        let read = |text: &str| text.parse::<Lifetime>().map(|read| read.0);
        assert_eq!(read("30s"), Ok(30_000));
        assert_eq!(read("15m"), Ok(900_000));
        assert_eq!(read("12h"), Ok(43_200_000));
        assert_eq!(read("90d"), Ok(7_776_000_000));
        for wrong in
            ["", "h", "12", "12x", "-1h", "1.5h", "1hh", "0h", "99999999999999999999d", "9999999999999999d"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!([500, 90_000, 43_200_000, 7_776_000_000].map(in_words), ["0 s", "1 m", "12 h", "90 d"]);
    }
}
