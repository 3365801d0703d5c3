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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_by_both_kinds_of_sockets() {
        let mapped = "::ffff:10.0.0.7".parse().unwrap();
        assert_eq!(CallerAddress::at(mapped), CallerAddress::at("10.0.0.7".parse().unwrap()));
    }
}
