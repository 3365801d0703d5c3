//! Ports that other machines could reach in plain text. Nobody gets them without saying so: whoever reaches such a port
//! may do whatever this process does.

use std::net::{IpAddr, ToSocketAddrs};

use tripod_proto::code::Code;

use crate::failure::Failure;

const VARIABLE: &str = "TRIPOD_INSECURE";

/// A port that takes plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlainPort {
    pub(crate) flag: &'static str,
    /// `HOST:PORT` or an IP address, as it was given.
    pub(crate) address: String,
}

impl PlainPort {
    pub(crate) fn new(flag: &'static str, address: impl Into<String>) -> Self {
        Self { flag, address: address.into() }
    }

    /// Whether machines other than this one can connect. Looks the host up, if it is a name; one that is not found now may
    /// be found when the port is opened.
    pub(crate) fn is_open_to_others(&self) -> bool {
        self.is_open_by_its_address().unwrap_or_else(|| {
            let found = self.address.to_socket_addrs();
            !found.is_ok_and(|mut found| found.all(|address| address.ip().to_canonical().is_loopback()))
        })
    }

    /// The same, if the address alone says so.
    fn is_open_by_its_address(&self) -> Option<bool> {
        if let Ok(ip) = self.address.parse::<IpAddr>() {
            return Some(!ip.to_canonical().is_loopback());
        }
        let host = self.address.rsplit_once(':').map_or(self.address.as_str(), |(host, _)| host);
        if host.is_empty() {
            return Some(true);
        }
        let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        ip.ok().map(|ip| !ip.to_canonical().is_loopback())
    }
}

/// What is done about hosts that are names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// They are looked up.
    LookedUp,
    /// They say nothing: another machine may find something else.
    LeftAlone,
}

/// Whether a process that has no file of settings was told to serve other machines in plain text: by its flag, or by the
/// variable that nodes know, too.
pub(crate) fn is_asked_for(flag: bool) -> bool {
    flag || std::env::var_os(VARIABLE).is_some_and(|value| value == "true")
}

/// Refuses ports that other machines could reach, and says what to do instead.
///
/// # Errors
/// [`Code::PlainText`], with each of them.
pub(crate) fn refuse(ports: Vec<PlainPort>, names: Names, next: &str) -> Result<(), Failure> {
    let is_open = |port: &PlainPort| match names {
        Names::LookedUp => port.is_open_to_others(),
        Names::LeftAlone => port.is_open_by_its_address() == Some(true),
    };
    let open: Vec<String> = ports
        .into_iter()
        .filter(is_open)
        .map(|PlainPort { flag, address }| format!("{flag} {address}"))
        .collect();
    if open.is_empty() {
        return Ok(());
    }
    let text = format!("other machines could use {} in plain text; {next}", open.join(", "));
    Err(Failure::new(Code::PlainText, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_closed_to_others() {
        let open = |address: &str| PlainPort::new("--client", address).is_open_to_others();
        let closed = [
            "127.0.0.1",
            "::1",
            "127.0.0.1:7700",
            "127.9.8.7:0",
            "[::1]:7700",
            "[::ffff:127.0.0.1]:7700",
            "localhost:7700",
        ];
        for address in closed {
            assert!(!open(address), "{address}");
        }
        for address in [
            "10.0.0.5",
            "fd00::5",
            "0.0.0.0:7700",
            "[::]:7700",
            "10.0.0.1:7700",
            "[fd00::1]:7700",
            ":7700",
            "[::ffff:10.0.0.1]:1",
        ] {
            assert!(open(address), "{address}");
        }
        assert!(open("no-such-host.invalid:7700"), "it may be found later");
    }

    #[test]
    fn every_open_port_is_named() {
        let ports =
            ["127.0.0.1:1", "10.0.0.1:2", "0.0.0.0:3"].map(|address| PlainPort::new("--peer", address));
        let refused = refuse(ports.to_vec(), Names::LookedUp, "add --insecure").expect_err("two are open");
        assert_eq!(
            refused.to_string(),
            "T1541 plain-text: other machines could use --peer 10.0.0.1:2, --peer 0.0.0.0:3 in plain text; add --insecure"
        );
        assert_eq!(refuse(ports[..1].to_vec(), Names::LookedUp, ""), Ok(()));
        let named = || vec![PlainPort::new("--peer", "no-such-host.invalid:7800")];
        assert!(refuse(named(), Names::LookedUp, "").is_err());
        assert_eq!(refuse(named(), Names::LeftAlone, ""), Ok(()));
    }
}
