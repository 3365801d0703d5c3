//! Newtypes for every id and count, so that two bare integers never stand side by side.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

macro_rules! text {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub Arc<str>);

        impl $name {
            /// The text as the caller gave it.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

number! {
    /// A node of the cluster. Never reused after the node was removed.
    NodeId(u64)
}
number! {
    /// The place of a command in the replicated log; the source of every generated id.
    LogIndex(u64)
}
number! {
    /// A change of the members: the log index of the command that began it.
    ChangeId(u64)
}
number! {
    /// What all members of a cluster understand: see [`crate::level`]. From 1.
    FeatureLevel(u32)
}
number! {
    /// A Raft term.
    Term(u64)
}
number! {
    /// A job: the log index of the command that created it.
    JobId(u64)
}
number! {
    /// A job's place in every node's range of job ports, from 0.
    JobSlot(u16)
}
number! {
    /// A task of a job, `0..tasks`. Signed because the wire is: a client may ask for task -1.
    TaskId(i32)
}
number! {
    /// One life of a task: 64 random bits that its process draws at start.
    Incarnation(u64)
}
number! {
    /// One life of a job's coordination service: 64 random bits, the same on every node for as long
    /// as the job exists. A client that sees another value ends its process.
    ServiceIncarnation(u64)
}
number! {
    /// How many instances of a barrier id came before this one. Signed because the wire is.
    BarrierCounter(i64)
}
number! {
    /// Rises with every change of a job's task states.
    TaskVersion(i64)
}
number! {
    /// One waiting call: the log index of the command that began the wait. A later call of the same
    /// task has a higher one and replaces it.
    CallId(u64)
}
number! {
    /// One attempt of a process to connect to a job's runtime: 64 random bits of its own.
    ClientId(u64)
}
/// A token: 64 random bits, which are no secret. Shown as it stands in the token: 13 digits of base32, in small letters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TokenId(pub u64);

impl TokenId {
    /// Of base32, as RFC 4648 has it, in small letters.
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    /// Of five bits each; the first one has four.
    const DIGITS: u32 = 13;

    /// The token that is shown so.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != Self::DIGITS as usize {
            return None;
        }
        let mut bits = 0_u128;
        for digit in text.bytes() {
            let value = Self::ALPHABET.iter().position(|one| *one == digit)?;
            bits = bits << 5 | value as u128;
        }
        u64::try_from(bits).ok().map(Self)
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (0..Self::DIGITS).rev().try_for_each(|place| {
            let digit = (self.0 >> (5 * place)) & 31;
            fmt::Write::write_char(f, char::from(Self::ALPHABET[digit as usize]))
        })
    }
}

number! {
    /// The number of a command within its session, from 1.
    Sequence(u64)
}
number! {
    /// Milliseconds since the Unix epoch, as stamped by leaders and never decreasing in the log.
    TimeMs(u64)
}
number! {
    /// A length of time in milliseconds.
    DurationMs(u64)
}

text! {
    /// A job's name: 1 to 63 characters of `a-z`, `0-9`, `-`, `_`, `.`, first one a letter or digit.
    JobName
}
text! {
    /// A barrier's id within its job, any text.
    BarrierName
}
text! {
    /// A normalised key: no empty path parts, no slash at either end, no NUL.
    Key
}

text! {
    /// The id of a node of a MindSpore cluster, as its environment gives it.
    NodeName
}
text! {
    /// The name of an entry that nodes of a MindSpore cluster leave for each other.
    MetadataName
}

text! {
    /// What the certificate of a node of this cluster calls it: 1 to 63 characters, as a job's name has them.
    CertificateName
}

text! {
    /// What the certificate of an operator or a viewer calls that one: 1 to 63 characters, as a job's name has them.
    PersonName
}

/// A session. Below feature level 5: the log index of the command that opened it. From there on: random bits, of which the
/// highest is set in nodes' own sessions. Whoever decodes an id of a client clears it ([`Self::of_client`]), so no wire can
/// name a node's session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub u128);

impl SessionId {
    const NODE: u128 = 1 << 127;

    /// A node's own.
    #[must_use]
    pub const fn of_node(bits: u128) -> Self {
        Self(bits | Self::NODE)
    }

    /// A client's.
    #[must_use]
    pub const fn of_client(bits: u128) -> Self {
        Self(bits & !Self::NODE)
    }

    /// Whether it can be a node's own.
    #[must_use]
    pub const fn is_node(self) -> bool {
        self.0 & Self::NODE != 0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Small ids hash as they did when all were: a state keeps the digest that it has for a build that knows no others.
impl Hash for SessionId {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        match u64::try_from(self.0) {
            Ok(small) => small.hash(hasher),
            Err(_) => self.0.hash(hasher),
        }
    }
}

/// In texts large ids are hexadecimal: numbers of so many digits are read by few programs.
impl Serialize for SessionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match u64::try_from(self.0) {
            Err(_) if serializer.is_human_readable() => {
                serializer.collect_str(&format_args!("{:032x}", self.0))
            }
            _ => serializer.serialize_u128(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u128::deserialize(deserializer).map(Self)
    }
}

impl TimeMs {
    /// This time plus `length`, at the end of time if that is beyond it.
    #[must_use]
    pub fn plus(self, length: DurationMs) -> Self {
        Self(self.0.saturating_add(length.0))
    }
}
