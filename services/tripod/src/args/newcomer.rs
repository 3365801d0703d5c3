//! `[ID=]HOST:PORT`: a node that takes another one's place.

use std::str::FromStr;

use crate::args::host_port::host_port;

/// Where its peers reach it, and the id that the caller expects the cluster to give it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Newcomer {
    pub(crate) expected: Option<u64>,
    pub(crate) peer: String,
}

impl FromStr for Newcomer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((id, peer)) = text.split_once('=') else {
            return Ok(Self { expected: None, peer: host_port(text)? });
        };
        let expected = id.parse().ok().filter(|id| *id > 0).ok_or_else(|| format!("`{id}` is no node id"))?;
        Ok(Self { expected: Some(expected), peer: host_port(peer)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newcomer_is_an_address_with_or_without_the_id_that_it_should_get() {
        let newcomer = |expected, peer: &str| Newcomer { expected, peer: peer.to_owned() };
        assert_eq!("a:1".parse(), Ok(newcomer(None, "a:1")));
        assert_eq!("4=a:1".parse(), Ok(newcomer(Some(4), "a:1")));
        let refusal = |text: &str| text.parse::<Newcomer>().expect_err("refused");
        assert_eq!(refusal("0=a:1"), "`0` is no node id");
        assert_eq!(refusal("4=a"), "`a` is not HOST:PORT");
    }
}
