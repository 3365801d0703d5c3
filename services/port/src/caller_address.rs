//! Where calls come from.

use std::net::IpAddr;

/// The address of a call's client, among the extensions of its request; `None` if it is on this machine and came by a
/// unix socket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerAddress(pub Option<IpAddr>);

impl CallerAddress {
    /// That of a connection from `address`. An IPv4 address is the same by whichever socket it comes.
    #[must_use]
    pub fn at(address: IpAddr) -> Self {
        Self(Some(address.to_canonical()))
    }

    /// Whether it is this machine's own, so that nothing of the call was on a network.
    #[must_use]
    pub fn is_of_this_machine(self) -> bool {
        self.0.is_none_or(|address| address.is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_and_sockets_are_of_this_machine() {
        let is_own = |address: &str| CallerAddress::at(address.parse().unwrap()).is_of_this_machine();
        assert!(CallerAddress::default().is_of_this_machine());
        assert!(is_own("127.0.0.2") && is_own("::1") && is_own("::ffff:127.0.0.1"));
        assert!(!is_own("10.0.0.7") && !is_own("0.0.0.0") && !is_own("::ffff:10.0.0.7"));
    }

    #[test]
    fn an_address_is_one_by_both_kinds_of_sockets() {
        let mapped = "::ffff:10.0.0.7".parse().unwrap();
        assert_eq!(CallerAddress::at(mapped), CallerAddress::at("10.0.0.7".parse().unwrap()));
    }
}
