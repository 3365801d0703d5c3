//! Names of clusters, nodes, people and jobs: one rule, and a type for each, so that none is taken for another.

use std::fmt;
use std::str::FromStr;

use crate::Refused;

/// The longest name. A label of the DNS has as many, and a job's name can be one.
pub const NAME_BYTES_MAX: usize = 63;

/// 1 to 63 of `a-z`, `0-9`, `-`, `_` and `.`, the first a letter or digit: the rule for names of jobs in the log. So no name is `..`,
/// which whoever tidies up a URI would take away.
fn legal(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= NAME_BYTES_MAX
        && text.bytes().next().is_some_and(letter)
        && text.bytes().all(|byte| letter(byte) || b"-_.".contains(&byte))
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $refused:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            /// The name as it was read.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = Refused;

            fn from_str(text: &str) -> Result<Self, Refused> {
                if legal(text) { Ok(Self(text.into())) } else { Err(Refused::$refused) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }
    };
}

name!(
    /// What a cluster is called in the URIs of its certificates.
    ClusterName,
    Cluster
);
name!(
    /// What a node is called. The log says which node id a name belongs to.
    NodeName,
    Node
);
name!(
    /// What a person or a program is called that acts as an operator or a viewer.
    PersonName,
    Person
);
name!(
    /// A job's name, by the rule that the log has for them.
    JobName,
    Job
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rule_that_the_log_has_for_jobs() {
        let longest = "a".repeat(NAME_BYTES_MAX);
        for name in ["a", "0", "w-1_x.y", "default", longest.as_str()] {
            assert_eq!(name.parse::<JobName>().map(|name| name.to_string()).as_deref(), Ok(name));
        }
        let too_long = "a".repeat(NAME_BYTES_MAX + 1);
        for name in
            ["", "-a", ".", "..", "_a", "A", "a b", "a/b", "a%2f", "ä", "aä", "a\n", too_long.as_str()]
        {
            assert_eq!(name.parse::<JobName>(), Err(Refused::Job), "{name}");
        }
    }

    #[test]
    fn each_kind_of_name_is_refused_in_its_own_words() {
        assert_eq!("A".parse::<ClusterName>(), Err(Refused::Cluster));
        assert_eq!("A".parse::<NodeName>(), Err(Refused::Node));
        assert_eq!("A".parse::<PersonName>(), Err(Refused::Person));
    }
}
