//! The host of an identity's URI.

use std::fmt;
use std::str::FromStr;

use crate::Refused;

/// The longest trust domain, as SPIFFE has it.
pub const TRUST_DOMAIN_BYTES_MAX: usize = 255;

/// Whose certificates these are: 1 to 255 of `a-z`, `0-9`, `-`, `_` and `.`, as SPIFFE has it. There is no port and no user.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrustDomain(Box<str>);

impl TrustDomain {
    /// The domain as it was read.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TrustDomain {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Self, Refused> {
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let length = (1..=TRUST_DOMAIN_BYTES_MAX).contains(&text.len());
        if length && text.bytes().all(|byte| letter(byte) || b"-_.".contains(&byte)) {
            Ok(Self(text.into()))
        } else {
            Err(Refused::TrustDomain)
        }
    }
}

impl fmt::Display for TrustDomain {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trust_domain_has_no_port_no_user_and_no_capitals() {
        let longest = "a".repeat(TRUST_DOMAIN_BYTES_MAX);
        for text in ["example.org", "a", longest.as_str()] {
            assert_eq!(text.parse::<TrustDomain>().map(|domain| domain.to_string()).as_deref(), Ok(text));
        }
        let too_long = "a".repeat(TRUST_DOMAIN_BYTES_MAX + 1);
        for text in ["", "Example.org", "a:1", "u@a", "a%2e", "[::1]", too_long.as_str()] {
            assert_eq!(text.parse::<TrustDomain>(), Err(Refused::TrustDomain), "{text}");
        }
    }
}
