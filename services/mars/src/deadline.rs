//! How long a call may be held.

use std::time::Duration;

use prost_types::Duration as Message;
use tonic::Status;
use tonic::metadata::MetadataMap;

use crate::limits::HOLD_MAX;
use crate::status;

/// The header by which gRPC tells how long the client waits.
const HEADER: &str = "grpc-timeout";

/// How long a call is held: as long as it asks for, a little less than its client waits for its answer, and not longer than
/// a node holds any.
///
/// # Errors
/// The time that it asks for is none.
pub(crate) fn hold(metadata: &MetadataMap, asked: Option<&Message>) -> Result<Duration, Status> {
    let asked = asked.map(|asked| length("timeout", asked)).transpose()?;
    let waits = metadata.get(HEADER).and_then(|told| read(told.to_str().ok()?));
    // The answer has a way to go.
    let waits = waits.map(|waits| waits - waits / 16);
    Ok(asked.into_iter().chain(waits).fold(HOLD_MAX, Duration::min))
}

/// A length of time in a message.
///
/// # Errors
/// It is negative, or none.
pub(crate) fn length(field: &str, message: &Message) -> Result<Duration, Status> {
    let wrong = || status::invalid(&format!("{field}: not a length of time"));
    let seconds = u64::try_from(message.seconds).map_err(|_| wrong())?;
    let nanos = u32::try_from(message.nanos).map_err(|_| wrong())?;
    if nanos >= 1_000_000_000 {
        return Err(wrong());
    }
    Ok(Duration::new(seconds, nanos))
}

/// As gRPC writes it: up to eight digits and a unit.
fn read(told: &str) -> Option<Duration> {
    let (digits, unit) = told.split_at_checked(told.len().checked_sub(1)?)?;
    let is_number = (1..=8).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    let count: u64 = is_number.then(|| digits.parse().ok())??;
    match unit {
        "H" => Some(Duration::from_secs(count * 3_600)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(told: Option<&str>, asked: Option<(i64, i32)>) -> Result<Duration, Status> {
        let mut metadata = MetadataMap::new();
        if let Some(told) = told {
            metadata.insert(HEADER, told.parse().unwrap());
        }
        hold(&metadata, asked.map(|(seconds, nanos)| Message { seconds, nanos }).as_ref())
    }

    #[test]
    fn a_call_is_held_for_the_shortest_of_what_it_asks_what_its_client_waits_and_what_a_node_holds() {
        assert_eq!(held(None, None).unwrap(), HOLD_MAX);
        assert_eq!(held(None, Some((3, 500_000_000))).unwrap(), Duration::from_millis(3_500));
        assert_eq!(held(Some("16S"), Some((30, 0))).unwrap(), Duration::from_secs(15));
        assert_eq!(held(Some("1600m"), None).unwrap(), Duration::from_millis(1_500));
        assert_eq!(held(Some("2H"), Some((7_200, 0))).unwrap(), HOLD_MAX);
        assert_eq!(held(None, Some((0, 0))).unwrap(), Duration::ZERO);
    }

    #[test]
    fn what_is_no_time_is_refused_and_what_is_no_header_is_none() {
        for wrong in [(-1, 0), (0, -1), (0, 1_000_000_000)] {
            assert!(held(None, Some(wrong)).unwrap_err().message().contains("timeout"), "{wrong:?}");
        }
        for strange in ["", "S", "+1S", "123456789S", "1x", "1 S"] {
            assert_eq!(read(strange), None, "{strange}");
        }
    }
}
