//! Ranges of free ports on loopback that stay ours until we bind them, and between a process's death
//! and its restart.

use std::net::TcpListener;
use std::ops::Range;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use anyhow::Context as _;
use rand::RngExt as _;

/// Reserved ports lie above what services commonly use, and below those that Linux gives to outgoing
/// connections and to whoever binds port 0 (from 32,768 up).
const PORTS: Range<u16> = 12_000..32_000;
/// Ports are reserved by units of this many: what one guard stands for.
const UNIT: u16 = 64;
const UNITS: u16 = (PORTS.end - PORTS.start) / UNIT;

/// Consecutive ports that nobody else who reserves is given, in this process or another, for as long
/// as the value lives.
///
/// The ports themselves stay free, for processes that bind them at any later time. What is held is one
/// guard for each unit of the range: a socket under an abstract name, which the kernel gives to one
/// process of a network namespace (that is, to one of those that share the ports) and takes back when
/// that process ends, however it ends.
#[derive(Debug)]
pub struct ReservedPorts {
    first: u16,
    count: u16,
    _guards: Vec<UnixDatagram>,
}

impl ReservedPorts {
    /// Finds and reserves `count` ports in a row.
    ///
    /// # Errors
    /// There are not as many free ones.
    pub fn reserve(count: u16) -> anyhow::Result<Self> {
        let places = (UNITS + 1).saturating_sub(count.div_ceil(UNIT));
        anyhow::ensure!(count > 0 && places > 0, "{count} ports cannot be reserved, 1 to {}", UNITS * UNIT);
        // Who looks at the same time begins at another place.
        let begin = rand::rng().random_range(0..places);
        let mut found = (0..places).filter_map(|step| Self::try_at((begin + step) % places, count));
        found.next().with_context(|| {
            let Range { start, end } = PORTS;
            format!("no {count} free ports in a row between {start} and {end} on 127.0.0.1; `ss -ltn` shows who listens")
        })
    }

    /// The first port of the range.
    #[must_use]
    pub fn first(&self) -> u16 {
        self.first
    }

    /// All ports of the range.
    #[must_use]
    pub fn range(&self) -> Range<u16> {
        self.first..self.first + self.count
    }

    fn try_at(unit: u16, count: u16) -> Option<Self> {
        // The guards come first: nobody else who reserves looks at these ports from then on.
        let guards = (unit..unit + count.div_ceil(UNIT)).map(guard).collect::<Option<_>>()?;
        let first = PORTS.start + unit * UNIT;
        for port in first..first + count {
            TcpListener::bind(("127.0.0.1", port)).ok()?;
        }
        Some(Self { first, count, _guards: guards })
    }
}

fn guard(unit: u16) -> Option<UnixDatagram> {
    let name = format!("tripod-reserved-ports-{}", PORTS.start + unit * UNIT);
    let address = SocketAddr::from_abstract_name(name).ok()?;
    UnixDatagram::bind_addr(&address).ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Tells the test below that it runs in the other process.
    const UNIT_OF_THE_OTHER: &str = "TRIPOD_TEST_RESERVED_UNIT";

    fn unit_of(port: u16) -> u16 {
        (port - PORTS.start) / UNIT
    }

    #[test]
    fn ports_that_are_bound_later_are_given_to_nobody_else() {
        // As `tripod dev` uses them: its job ports are bound when there are jobs, or never.
        let range = ReservedPorts::reserve(600).unwrap();
        for port in range.range() {
            assert!(ReservedPorts::try_at(unit_of(port), 1).is_none(), "port {port} was given twice");
        }
        let before = unit_of(range.first()).saturating_sub(1);
        assert!(ReservedPorts::try_at(before, 2 * UNIT).is_none(), "a range that reaches into another");
    }

    #[test]
    fn another_process_is_not_given_our_ports() {
        if let Ok(unit) = std::env::var(UNIT_OF_THE_OTHER) {
            assert!(ReservedPorts::try_at(unit.parse().unwrap(), 1).is_none());
            return;
        }
        let range = ReservedPorts::reserve(1).unwrap();
        let name = concat!(module_path!(), "::another_process_is_not_given_our_ports");
        let (_, name) = name.split_once("::").unwrap();
        let mut other = Command::new(std::env::current_exe().unwrap());
        other.args(["--exact", name]).env(UNIT_OF_THE_OTHER, unit_of(range.first()).to_string());
        let output = other.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }

    #[test]
    fn a_range_with_a_port_in_use_is_not_given() {
        let range = ReservedPorts::reserve(130).unwrap();
        let unit = unit_of(range.first());
        let _taken = TcpListener::bind(("127.0.0.1", range.first() + 129)).unwrap();
        drop(range);
        assert!(ReservedPorts::try_at(unit, 130).is_none());
    }

    #[test]
    fn more_ports_than_there_are_are_refused() {
        assert!(ReservedPorts::reserve(0).is_err());
        assert!(ReservedPorts::reserve(UNITS * UNIT + 1).is_err());
    }
}
