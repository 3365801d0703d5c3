//! What a register is: the rules that one copy of it would follow.

use crate::history::{Call, Found, Outcome, Refusal, Reply};

/// A register at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct State {
    held: Option<Stored>,
    /// The highest log index that is known of the writes so far.
    index: u64,
    /// Versions from here on need not be told apart: no operation speaks of them.
    version_max: u64,
}

/// What a register holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Stored {
    content: Content,
    version: u64,
    /// Whether the state's index is that of the write that is seen.
    indexed: bool,
}

/// A value, or one of those that nobody reads and that therefore need not be told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Content {
    Value(u64),
    Unread,
}

/// An operation on a register and what is known of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Action {
    Read(Option<Found>),
    /// A write that took effect, if it did, under this condition.
    Write {
        condition: Condition,
        content: Content,
        version: Option<u64>,
        index: Option<u64>,
    },
    Delete,
    /// An insertion was refused because the register exists.
    Exists,
    /// A compare-and-set was refused because the version is another one: the current one if that is known.
    Mismatch {
        expected: u64,
        current: Option<u64>,
    },
}

/// When a write takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Condition {
    Always,
    Absent,
    Version(u64),
}

impl Action {
    /// What an operation did or may have done to a register; `None` if it did nothing and tells nothing, or
    /// an answer does not fit its call.
    pub(super) fn of(call: &Call, outcome: &Outcome) -> Option<Self> {
        let (condition, value) = match call {
            Call::Read { .. } => {
                return match outcome.reply()? {
                    Reply::Value(found) => Some(Self::Read(*found)),
                    _ => None,
                };
            }
            Call::Delete { .. } => return outcome.may_have_effect().then_some(Self::Delete),
            Call::Write { value, .. } => (Condition::Always, value),
            Call::Insert { value, .. } => (Condition::Absent, value),
            Call::CompareAndSet { value, expected, .. } => (Condition::Version(expected.0), value),
            _ => return None,
        };
        let content = Content::Value(value.0);
        match (outcome, condition) {
            (Outcome::Fail(_), _) => None,
            (Outcome::Ok(Reply::Refused(Refusal::Exists)), Condition::Absent) => Some(Self::Exists),
            (
                Outcome::Ok(Reply::Refused(Refusal::VersionMismatch { current })),
                Condition::Version(expected),
            ) => Some(Self::Mismatch { expected, current: current.map(|version| version.0) }),
            (Outcome::Ok(Reply::Refused(_)), _) => None,
            (Outcome::Ok(Reply::Written { version, index }), _) => {
                let (version, index) = (version.map(|version| version.0), index.map(|index| index.0));
                Some(Self::Write { condition, content, version, index })
            }
            (Outcome::Ok(_) | Outcome::Unknown(_), _) => {
                Some(Self::Write { condition, content, version: None, index: None })
            }
        }
    }

    /// Whether it may change the register.
    pub(super) fn changes(&self) -> bool {
        match self {
            Self::Write { .. } | Self::Delete => true,
            Self::Read(_) | Self::Exists | Self::Mismatch { .. } => false,
        }
    }

    /// The highest version that it speaks of.
    pub(super) fn version(&self) -> u64 {
        match self {
            Self::Read(found) => found.and_then(|found| found.version).map_or(0, |version| version.0),
            Self::Write { condition, version, .. } => {
                let expected = if let Condition::Version(expected) = condition { *expected } else { 0 };
                version.unwrap_or(0).max(expected)
            }
            Self::Mismatch { expected, current } => current.unwrap_or(0).max(*expected),
            Self::Delete | Self::Exists => 0,
        }
    }

    /// The value that it writes.
    pub(super) fn writes(&self) -> Option<u64> {
        match self {
            Self::Write { content: Content::Value(value), .. } => Some(*value),
            _ => None,
        }
    }

    /// Whether it writes a value that nobody read.
    pub(super) fn is_unread(&self) -> bool {
        matches!(self, Self::Write { content: Content::Unread, .. })
    }

    /// The value that it saw.
    pub(super) fn sees(&self) -> Option<u64> {
        match self {
            Self::Read(Some(found)) => Some(found.value.0),
            _ => None,
        }
    }
}

impl State {
    /// A register that does not exist, and that none of these will ask for a version from `version_max` on.
    pub(super) fn new(version_max: u64) -> Self {
        Self { held: None, index: 0, version_max }
    }

    /// The register after `action`, or `None` if one copy could not have answered so now.
    pub(super) fn after(self, action: &Action) -> Option<Self> {
        match action {
            Action::Read(found) => self.read(found.as_ref()),
            Action::Write { condition, content, version, index } => {
                let current = self.version();
                let applies = match condition {
                    Condition::Always => true,
                    Condition::Absent => current == 0,
                    Condition::Version(expected) => current == *expected,
                };
                let fits = version.is_none_or(|version| version == current + 1);
                let rises = index.is_none_or(|index| index > self.index);
                let version = self.version_max.min(current + 1);
                let held = Stored { content: *content, version, indexed: index.is_some() };
                let index = index.unwrap_or(self.index);
                (applies && fits && rises).then_some(Self { held: Some(held), index, ..self })
            }
            Action::Delete => Some(Self { held: None, ..self }),
            Action::Exists => self.held.is_some().then_some(self),
            Action::Mismatch { expected, current } => {
                let version = self.version();
                let fits = version != *expected && current.is_none_or(|current| current == version);
                fits.then_some(self)
            }
        }
    }

    /// The value that a read would see, if any read is still to come that sees one.
    pub(super) fn value(&self) -> Option<u64> {
        match self.held?.content {
            Content::Value(value) => Some(value),
            Content::Unread => None,
        }
    }

    /// The same register when nobody is left to read its value.
    pub(super) fn unread(self) -> Self {
        let held = self.held.map(|held| Stored { content: Content::Unread, indexed: false, ..held });
        Self { held, ..self }
    }

    fn read(self, found: Option<&Found>) -> Option<Self> {
        let (Some(held), Some(found)) = (self.held, found) else {
            return (self.held.is_none() && found.is_none()).then_some(self);
        };
        let same = held.content == Content::Value(found.value.0)
            && found.version.is_none_or(|version| version.0 == held.version);
        let index = found.index.map(|index| index.0);
        match index {
            _ if !same => None,
            None => Some(self),
            Some(index) if held.indexed => (index == self.index).then_some(self),
            // The write did not tell its own index; the read does.
            Some(index) => (index > self.index).then_some(Self {
                held: Some(Stored { indexed: true, ..held }),
                index,
                ..self
            }),
        }
    }

    /// The version; 0: it does not exist.
    fn version(&self) -> u64 {
        self.held.map_or(0, |held| held.version)
    }
}
