//! Which addresses may be named by anybody.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::network::{Illegal, Network};

/// Networks of one list: each is looked at for each address.
const NETWORKS_MAX: usize = 256;

/// The value of a flag: nothing, networks, or everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Allow {
    /// Nothing beyond what is whose own.
    #[default]
    Own,
    Networks(Vec<Network>),
    /// Whatever is named.
    Any,
}

impl Allow {
    /// Whether it says nothing, so that the rules for a single machine hold.
    #[must_use]
    pub(crate) fn is_silent(&self) -> bool {
        *self == Self::Own
    }

    /// Whether it has that address.
    #[must_use]
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        match self {
            Self::Own => false,
            Self::Networks(networks) => networks.iter().any(|network| network.contains(address)),
            Self::Any => true,
        }
    }
}

impl FromStr for Allow {
    type Err = Illegal;

    fn from_str(text: &str) -> Result<Self, Illegal> {
        if text == "any" {
            return Ok(Self::Any);
        }
        let networks: Vec<Network> =
            text.split(',').map(|network| network.trim().parse()).collect::<Result<_, _>>()?;
        if networks.len() > NETWORKS_MAX {
            return Err(Illegal(format!(
                "{} networks, of which there may be {NETWORKS_MAX}",
                networks.len()
            )));
        }
        Ok(Self::Networks(networks))
    }
}

/// As the flag is written; empty for nothing.
impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => Ok(()),
            Self::Any => f.write_str("any"),
            Self::Networks(networks) => {
                let texts: Vec<String> = networks.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_written_as_it_is_read() {
        for text in ["any", "10.0.0.0/8", "10.0.0.0/8,fd00::/8"] {
            assert_eq!(text.parse::<Allow>().expect("a list").to_string(), text);
        }
        assert_eq!("10.0.0.0/8, fd00::/8".parse::<Allow>().unwrap().to_string(), "10.0.0.0/8,fd00::/8");
        for text in ["", "10.0.0.0/8,", "any,10.0.0.0/8", "Any"] {
            assert!(text.parse::<Allow>().is_err(), "{text}");
        }
        let many = vec!["10.0.0.1"; NETWORKS_MAX + 1].join(",");
        assert!(many.parse::<Allow>().is_err());
    }
}
