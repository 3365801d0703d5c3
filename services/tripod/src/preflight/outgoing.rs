//! Ports that the kernel gives to connections that go out: a job's port among them may be taken when its job comes.

use std::fs;

use crate::args::port_range::PortRange;

/// Two numbers, the first and the last port that are given away.
const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// Single ports and ranges that are not, with commas between them.
const RESERVED: &str = "/proc/sys/net/ipv4/ip_local_reserved_ports";

/// Whether the kernel may give a port of this range to a connection that goes out. Where that cannot be told, it may not.
pub(super) fn may_take(range: PortRange) -> bool {
    let read = |file| fs::read_to_string(file).unwrap_or_default();
    takes(&read(RANGE), &read(RESERVED), range)
}

fn takes(given: &str, reserved: &str, range: PortRange) -> bool {
    let mut ends = given.split_whitespace().filter_map(|port| port.parse::<u16>().ok());
    let (Some(first), Some(last)) = (ends.next(), ends.next()) else { return false };
    let reserved: Vec<PortRange> = reserved.trim().split(',').filter_map(one_or_more).collect();
    let is_reserved = |port: u16| reserved.iter().any(|range| (range.first..=range.last).contains(&port));
    (range.first.max(first)..=range.last.min(last)).any(|port| !is_reserved(port))
}

fn one_or_more(text: &str) -> Option<PortRange> {
    text.parse().ok().or_else(|| text.parse().ok().map(|port| PortRange { first: port, last: port }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n50_ports_that_may_be_taken_by_connections_are_known_unless_they_are_reserved() {
        let takes =
            |reserved: &str, range: &str| takes("32768\t60999\n", reserved, range.parse().expect("legal"));
        assert!(!takes("\n", "8000-8099"));
        assert!(takes("\n", "43000-43099") && takes("\n", "32700-32768") && takes("\n", "60999-61010"));
        assert!(
            !takes("43000-43099\n", "43000-43099") && !takes("8080,43000-43049,43050-43099\n", "43000-43099")
        );
        assert!(takes("43000-43098\n", "43000-43099"), "one is left");
        assert!(!super::takes("", "", PortRange { first: 43_000, last: 43_099 }), "not told");
    }
}
