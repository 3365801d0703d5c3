//! Whether an address is connected to, and on whose word.

use std::net::IpAddr;

use crate::allow::Allow;
use crate::refused::Refused;

/// What whoever connects to addresses of others goes by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What may be named by anybody.
    pub allow: Allow,
    /// The flag that says so, for texts.
    pub flag: &'static str,
    /// Only processes of this machine reach this one, so the loopback interface is everybody's.
    pub here_only: bool,
}

/// On whose word an address is connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// A caller from there says that it is its own; `None`: from this machine, by a unix socket.
    By(Option<IpAddr>),
    /// A node judged the caller and noted the address. A name was noted by an older build, or where everything is allowed.
    Noted,
    /// It was written down by somebody else than whom it belongs to.
    Unproven,
    /// Somebody said so whose orders are taken.
    Ordered,
}

/// What connects to no machine, or to one that each machine takes for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// No machine.
    Never,
    /// Another machine from each network: among them those from which clouds give out credentials.
    LinkLocal,
    Loopback,
    Usual,
}

impl Rule {
    /// Everything is connected to that can be: for tests, and where the network is a simulation's.
    #[must_use]
    pub fn any() -> Self {
        Self { allow: Allow::Any, flag: "--dial-allow", here_only: false }
    }

    /// Whether names are looked up before they are noted: not if whatever they mean is allowed.
    pub(crate) fn wants_addresses(&self) -> bool {
        self.allow != Allow::Any
    }

    /// Judges one address, which was written as `named`: itself, or a name that means it.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn judge(&self, address: IpAddr, named: &str, word: Named) -> Result<(), Refused> {
        let address = address.to_canonical();
        let kind = Kind::of(address);
        if kind == Kind::Never {
            return Err(Refused::Never { address });
        }
        if self.allow.has(address) || kind != Kind::LinkLocal && self.is_own(address, kind, named, word) {
            return Ok(());
        }
        let named = match crate::host_port::literal(named) {
            Some(_) => address.to_string(),
            None => format!("{named} ({address})"),
        };
        let flag = self.flag;
        Err(match word {
            Named::By(from) => {
                let from = from.map_or_else(|| "this machine".to_owned(), |from| from.to_string());
                Refused::NotYours { named, address, from, flag }
            }
            Named::Noted | Named::Unproven | Named::Ordered => Refused::NotListed { named, address, flag },
        })
    }

    /// Whether whoever named it may, without a list that has it.
    fn is_own(&self, address: IpAddr, kind: Kind, named: &str, word: Named) -> bool {
        let silent = self.allow.is_silent();
        match word {
            Named::By(None) => kind == Kind::Loopback,
            Named::By(Some(from)) => {
                let from = from.to_canonical();
                from == address || silent && from.is_loopback() && kind == Kind::Loopback
            }
            // A name may mean something else by now.
            Named::Noted => crate::host_port::literal(named).is_some(),
            Named::Unproven => silent && self.here_only && kind == Kind::Loopback,
            Named::Ordered => true,
        }
    }
}

impl Kind {
    fn of(address: IpAddr) -> Self {
        let never = match address {
            // The whole of 0.0.0.0/8 means "this network", and Linux connects to this machine for it.
            IpAddr::V4(address) => {
                address.octets()[0] == 0 || address.is_multicast() || address.is_broadcast()
            }
            IpAddr::V6(address) => address.is_unspecified() || address.is_multicast(),
        };
        let link_local = match address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        match address {
            _ if never => Self::Never,
            _ if link_local => Self::LinkLocal,
            _ if address.is_loopback() => Self::Loopback,
            _ => Self::Usual,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it is connected to.
    fn judged(allow: &str, here_only: bool, address: &str, named: &str, word: Named) -> bool {
        let allow = if allow.is_empty() { Allow::Own } else { allow.parse().expect("a list") };
        let rule = Rule { allow, flag: "--dial-allow", here_only };
        rule.judge(address.parse().expect("an address"), named, word).is_ok()
    }

    fn by(from: &str) -> Named {
        Named::By(Some(from.parse().expect("an address")))
    }

    #[test]
    fn a_caller_may_name_its_own_address_and_what_is_listed() {
        let is_dialled = |allow, from, address| judged(allow, false, address, address, by(from));
        for (allow, from, address, expected) in [
            ("", "10.0.0.7", "10.0.0.7", true),
            ("", "::ffff:10.0.0.7", "10.0.0.7", true),
            ("", "10.0.0.7", "::ffff:10.0.0.7", true),
            ("", "10.0.0.7", "10.0.0.8", false),
            ("", "10.0.0.7", "127.0.0.1", false),
            ("", "10.0.0.7", "::ffff:127.0.0.1", false),
            ("", "127.0.0.1", "10.0.0.7", false),
            ("10.0.0.0/8", "10.0.0.7", "10.0.0.8", true),
            ("10.0.0.0/8", "10.0.0.7", "11.0.0.8", false),
            ("10.0.0.0/8", "192.0.2.1", "192.0.2.1", true),
            ("any", "10.0.0.7", "127.0.0.1", true),
            // On one machine, unless a list says what is meant.
            ("", "127.0.0.1", "127.0.0.2", true),
            ("", "127.0.0.1", "::1", true),
            ("10.0.0.0/8", "127.0.0.1", "127.0.0.1", true),
            ("10.0.0.0/8", "127.0.0.1", "127.0.0.2", false),
        ] {
            assert_eq!(is_dialled(allow, from, address), expected, "{allow} {from} {address}");
        }
        assert!(judged("10.0.0.0/8", false, "127.0.0.1", "localhost", Named::By(None)));
        assert!(!judged("", false, "10.0.0.7", "10.0.0.7", Named::By(None)));
    }

    #[test]
    fn addresses_of_no_machine_are_never_connected_to() {
        for address in
            ["0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255", "::", "ff02::1", "::ffff:0.0.0.0"]
        {
            for word in [by(address), Named::By(None), Named::Noted, Named::Unproven, Named::Ordered] {
                assert!(!judged("any", true, address, address, word), "{address} {word:?}");
            }
        }
    }

    /// What a cloud tells about a machine, credentials among it, is at 169.254.169.254.
    #[test]
    fn link_local_addresses_are_connected_to_only_where_they_are_listed() {
        for address in ["169.254.169.254", "fe80::1", "::ffff:169.254.169.254"] {
            for word in [by(address), Named::Noted, Named::Unproven, Named::Ordered] {
                assert!(!judged("", true, address, address, word), "{address} {word:?}");
                assert!(
                    judged("169.254.0.0/16,fe80::/10", true, address, address, word),
                    "{address} {word:?}"
                );
            }
        }
    }

    #[test]
    fn an_address_that_was_noted_was_judged_and_a_name_may_mean_another_by_now() {
        assert!(judged("", false, "10.0.0.7", "10.0.0.7", Named::Noted));
        assert!(judged("", false, "127.0.0.1", "127.0.0.1", Named::Noted));
        assert!(!judged("", false, "10.0.0.7", "gpu5", Named::Noted));
        assert!(judged("10.0.0.0/8", false, "10.0.0.7", "gpu5", Named::Noted));
    }

    #[test]
    fn what_others_wrote_down_is_connected_to_where_it_is_listed_or_all_is_one_machine() {
        assert!(!judged("", false, "10.0.0.7", "10.0.0.7", Named::Unproven));
        assert!(!judged("", false, "127.0.0.1", "127.0.0.1", Named::Unproven));
        assert!(judged("", true, "127.0.0.1", "localhost", Named::Unproven));
        assert!(!judged("", true, "10.0.0.7", "10.0.0.7", Named::Unproven));
        assert!(judged("10.0.0.0/8", false, "10.0.0.7", "gpu5", Named::Unproven));
        assert!(!judged("10.0.0.0/8", true, "127.0.0.1", "127.0.0.1", Named::Unproven));
    }

    #[test]
    fn a_refusal_names_the_address_the_caller_and_the_flag() {
        let rule = Rule { allow: Allow::Own, flag: "--dial-allow", here_only: false };
        let refused =
            rule.judge("10.0.0.9".parse().unwrap(), "gpu5", by("10.0.0.7")).unwrap_err().to_string();
        for part in ["T6305", "gpu5", "10.0.0.9", "10.0.0.7", "--dial-allow 10.0.0.9"] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
    }
}
