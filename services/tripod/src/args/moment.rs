//! Moments on the command line, in UTC: `03:12`, `2026-11-27T03:12`, or so long ago, `90s`, `10m`, `2h`, `3d`.

use std::str::FromStr;

use time::{Date, Month, OffsetDateTime};

const DAY_MS: u64 = 24 * 3_600 * 1_000;

/// A moment as it is written. What it means depends on when it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The last one of this time of day: milliseconds since midnight.
    OfDay(u64),
    /// Milliseconds since the Unix epoch.
    At(u64),
    Ago(u64),
}

impl Moment {
    /// Milliseconds since the Unix epoch.
    pub(crate) fn ms(self, now_ms: u64) -> u64 {
        match self {
            Self::At(ms) => ms,
            Self::Ago(ms) => now_ms.saturating_sub(ms),
            Self::OfDay(ms) => {
                let today = now_ms - now_ms % DAY_MS + ms;
                if today <= now_ms { today } else { today.saturating_sub(DAY_MS) }
            }
        }
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || {
            format!("`{}` is no moment; write 03:12, 03:12:07, 2026-11-27T03:12 or 10m", text.escape_debug())
        };
        if let Some((number, unit)) = text.split_at_checked(text.len().saturating_sub(1))
            && let Some(unit_ms) = unit_ms(unit)
        {
            let number: u64 = number.parse().map_err(|_| wrong())?;
            return number.checked_mul(unit_ms).map(Self::Ago).ok_or_else(wrong);
        }
        let text = text.strip_suffix('Z').unwrap_or(text);
        match text.split_once('T') {
            None => of_day(text).map(Self::OfDay).ok_or_else(wrong),
            Some((date, day)) => {
                let midnight = midnight(date).ok_or_else(wrong)?;
                of_day(day).and_then(|ms| midnight.checked_add(ms)).map(Self::At).ok_or_else(wrong)
            }
        }
    }
}

fn unit_ms(unit: &str) -> Option<u64> {
    match unit {
        "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(DAY_MS),
        _ => None,
    }
}

/// Milliseconds since midnight of `03:12` or `03:12:07`.
fn of_day(text: &str) -> Option<u64> {
    let parts: Option<Vec<u64>> = text.split(':').map(|part| part.parse().ok()).collect();
    match parts?.as_slice() {
        [hours @ 0..24, minutes @ 0..60] => Some((hours * 3_600 + minutes * 60) * 1_000),
        [hours @ 0..24, minutes @ 0..60, seconds @ 0..60] => {
            Some((hours * 3_600 + minutes * 60 + seconds) * 1_000)
        }
        _ => None,
    }
}

/// When the day of `2026-11-27` begins.
fn midnight(text: &str) -> Option<u64> {
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let month = Month::try_from(month.parse::<u8>().ok()?).ok()?;
    let date = Date::from_calendar_date(year.parse().ok()?, month, day.parse().ok()?).ok()?;
    let seconds = date.midnight().assume_utc().unix_timestamp();
    u64::try_from(seconds).ok().filter(|_| parts.next().is_none())?.checked_mul(1_000)
}

/// A moment as people read it: the time of day with milliseconds, in UTC.
pub(crate) fn time_of_day(ms: u64) -> String {
    let of_day = ms % DAY_MS;
    let (seconds, ms) = (of_day / 1_000, of_day % 1_000);
    format!("{:02}:{:02}:{:02}.{ms:03}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// With the day: `2026-11-27 03:12:07`.
pub(crate) fn day_and_time(ms: u64) -> String {
    let seconds = i64::try_from(ms / 1_000).unwrap_or(i64::MAX);
    let Ok(moment) = OffsetDateTime::from_unix_timestamp(seconds) else { return format!("{ms} ms") };
    let (date, day) = (moment.date(), time_of_day(ms));
    let day = &day[..8];
    format!("{:04}-{:02}-{:02} {day}", date.year(), u8::from(date.month()), date.day())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-27 19:10:59 UTC.
    const NOW: u64 = 1_795_806_659_000;

    fn shown(text: &str) -> String {
        text.parse::<Moment>().map_or_else(|error| error, |moment| day_and_time(moment.ms(NOW)))
    }

    #[test]
    fn a_time_of_day_is_the_last_one_and_others_are_what_they_say() {
        assert_eq!(day_and_time(NOW), "2026-11-27 19:10:59");
        assert_eq!(shown("03:12"), "2026-11-27 03:12:00");
        assert_eq!(shown("23:12:07"), "2026-11-26 23:12:07");
        assert_eq!(shown("2026-02-28T03:12Z"), "2026-02-28 03:12:00");
        assert_eq!(shown("10m"), "2026-11-27 19:00:59");
        assert_eq!(time_of_day(NOW + 7), "19:10:59.007");
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for wrong in ["", "24:00", "3", "03:60", "2026-02-30T03:12", "xm", "-1s", "1:2:3:4", "\u{e4}"] {
            assert!(wrong.parse::<Moment>().is_err(), "{wrong}");
        }
    }
}
