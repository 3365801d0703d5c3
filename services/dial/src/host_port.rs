//! A host and a port, as they are written.

use std::net::IpAddr;

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostPort<'a> {
    /// Without brackets.
    pub(crate) host: &'a str,
    pub(crate) port: u16,
}

impl<'a> HostPort<'a> {
    /// `HOST:PORT`, with brackets around an IPv6 address. `None`: it is not written so, or the port is 0.
    pub(crate) fn of(text: &'a str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        // "+80" is a number to Rust, and to nobody else.
        let port = port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse().ok()).flatten();
        let port = port.filter(|port| *port > 0)?;
        let bare = bare(host);
        let written_so = !bare.is_empty() && (bare.len() < host.len() || !host.contains(':'));
        written_so.then_some(Self { host: bare, port })
    }
}

/// A host without the brackets around an IPv6 address.
pub(crate) fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// The address that a host is written as, if it is none of a name.
pub(crate) fn literal(host: &str) -> Option<IpAddr> {
    bare(host).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_host_and_a_port_that_can_be_connected_to() {
        let of = |text| HostPort::of(text).map(|place| (place.host, place.port));
        assert_eq!(of("10.0.0.1:7750"), Some(("10.0.0.1", 7750)));
        assert_eq!(of("[::1]:1"), Some(("::1", 1)));
        assert_eq!(of("gpu5:65535"), Some(("gpu5", 65535)));
        for text in
            ["", "a", "a:", ":1", "[]:1", "a:0", "a:65536", "a:+1", "a:-1", "::1:1", "a:1/x", "unix:/s"]
        {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
