//! Ids of sessions and what they hold. Numbers are log indexes, so none is given twice.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::memory::{Weigh, all_inside, of_text};

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

        all_inside!($name);
    };
}

number! {
    /// A session: the log index of the command that created it. One that is created again is another one.
    SessionNo(u64)
}
number! {
    /// A graph: the log index of the command that began it.
    GraphNo(u64)
}
number! {
    /// A mutable tileable: the log index of the command that created it.
    MutableNo(u64)
}
number! {
    /// A chunk's place in its graph, from 0.
    Place(u32)
}

/// What a client calls something: a session, a graph, a tileable, a mutable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Name(pub Arc<str>);

impl Name {
    /// The text as the client gave it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Weigh for Name {
    fn outside(&self) -> u64 {
        of_text(self.0.len())
    }
}

/// Of which kind a graph is. Each kind has its own keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum GraphKind {
    Tileable,
    Chunk,
}

impl GraphKind {
    /// In words.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Tileable => "tileable",
            Self::Chunk => "chunk",
        }
    }
}

/// A graph as its client names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GraphName {
    pub session: String,
    pub kind: GraphKind,
    pub key: String,
}
