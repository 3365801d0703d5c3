//! Addresses that begin alike.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// All addresses with the same first bits, as `10.0.0.0/8` or `fd00::/8`; without a length it is one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    length: u8,
}

/// What is no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no network; write one as 10.0.0.0/8 or fd00::/8, or an address")]
pub struct Illegal(pub(crate) String);

impl Network {
    /// Whether the address is one of these. An IPv4 address is the same in both notations.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0);
                (first.to_bits() ^ address.to_bits()) & mask == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => same_start(first, address, self.length),
            _ => false,
        }
    }
}

fn same_start(first: Ipv6Addr, address: Ipv6Addr, length: u8) -> bool {
    let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
    (first.to_bits() ^ address.to_bits()) & mask == 0
}

impl FromStr for Network {
    type Err = Illegal;

    fn from_str(text: &str) -> Result<Self, Illegal> {
        let illegal = || Illegal(text.to_owned());
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let first: IpAddr = address.parse().map_err(|_| illegal())?;
        let longest = if first.is_ipv4() { 32 } else { 128 };
        let length = match length {
            // "+8" is a number to Rust, and to nobody else.
            Some(length) if length.starts_with('+') => return Err(illegal()),
            Some(length) => length.parse().ok().filter(|length| *length <= longest).ok_or_else(illegal)?,
            None => longest,
        };
        Ok(Self { first, length })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_that_begin_as_it_does() {
        let has = |network: &str, address: &str| {
            network.parse::<Network>().expect("a network").contains(address.parse().expect("an address"))
        };
        for (network, within, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("10.1.2.3/8", "10.0.0.1", "9.255.255.255"),
            ("10.0.0.7", "10.0.0.7", "10.0.0.6"),
            ("10.0.0.0/8", "::ffff:10.0.0.1", "::10.0.0.1"),
            ("0.0.0.0/0", "203.0.113.1", "fd00::1"),
            ("fd00::/8", "fdff::1", "fe00::1"),
            ("::/0", "fd00::1", "10.0.0.1"),
        ] {
            assert!(has(network, within), "{network} {within}");
            assert!(!has(network, outside), "{network} {outside}");
        }
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in
            ["", "10.0.0.0/33", "fd00::/129", "10.0.0.0/", "10.0.0.0/+8", "10.0.0/8", "host", "10.0.0.0/-1"]
        {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
