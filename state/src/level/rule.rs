//! What commands of an earlier level mean otherwise from a level on.
//!
//! Replicas apply an entry at the same level, which is part of their state. So what a command means may change with
//! the level, as long as each level keeps its own meaning: an older build is at it, and replays of old logs are.

use crate::command::Command;
use crate::ids::FeatureLevel;
use crate::level::{self, FIRST};

/// Something that came with a level and needs no command of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Of a scheduler's exports, the last one of each name stays. Before, all of them did.
    LastExports,
    /// A worker whose tasks wait for others is given one more, whatever its slots. Before, slots were the most.
    RoomBesideWaiting,
    /// Tasks that are not over may be within each other only so deep. Before, as deep as there were slots.
    BoundedNests,
    /// A session belongs to a node or to a client, and its id cannot be guessed. Before, ids were log indexes; those
    /// sessions are closed soon, whether they are used or not.
    OwnedSessions,
    /// It is known which tasks of a recoverable job are not in their first life.
    Returns,
    /// It is told what happens to jobs: see [`crate::events`].
    Events,
    /// A level that is lowered leaves no reply in sessions that builds of the lower one could not read. Before, it did.
    ReadableReplies,
}

impl Rule {
    /// All of them, in no order.
    pub const ALL: &[Self] = &[
        Self::LastExports,
        Self::RoomBesideWaiting,
        Self::BoundedNests,
        Self::OwnedSessions,
        Self::Returns,
        Self::Events,
        Self::ReadableReplies,
    ];

    /// The first level at which it holds.
    #[must_use]
    pub const fn since(self) -> FeatureLevel {
        match self {
            Self::LastExports | Self::RoomBesideWaiting | Self::BoundedNests => FeatureLevel(4),
            Self::OwnedSessions => FeatureLevel(5),
            Self::Returns => FeatureLevel(7),
            Self::Events | Self::ReadableReplies => FeatureLevel(11),
        }
    }

    /// The lowest level whose builds mean the same by commands as are meant at a level, as far as they know them.
    fn needed_at(level: FeatureLevel) -> FeatureLevel {
        let since = Self::ALL.iter().map(|rule| rule.since()).filter(|since| *since <= level);
        since.max().unwrap_or(FIRST)
    }

    /// Whether it holds at a level.
    #[must_use]
    pub fn holds_at(self, level: FeatureLevel) -> bool {
        level >= self.since()
    }
}

impl Command {
    /// The lowest level whose builds apply it as it is applied at `level`. A build that stands below what the level was
    /// raised to must not go on as if it did not.
    #[must_use]
    pub fn needs_at(&self, level: FeatureLevel) -> FeatureLevel {
        let raised = match self {
            Self::Level(level::Command::Raise { to, .. }) => *to,
            Self::Retried(command) => return command.needs_at(level),
            Self::By(by) => return by.command.needs_at(level).max(self.needs()),
            _ => FIRST,
        };
        self.needs().max(raised).max(Rule::needed_at(level))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Scope;
    use crate::ids::JobId;
    use crate::kv;

    #[test]
    fn every_rule_holds_from_a_level_on_that_this_build_knows() {
        for rule in Rule::ALL {
            assert!((FIRST..=level::NEWEST).contains(&rule.since()));
            assert!(rule.holds_at(level::NEWEST) && !rule.holds_at(FIRST));
        }
    }

    #[test]
    fn an_entry_needs_a_build_that_knows_the_rules_of_the_level_at_which_it_is_applied() {
        let [three, four, nine] = [3, 4, 9].map(FeatureLevel);
        let scope = Scope { job: JobId(1), service: None };
        let delete = Command::Kv(kv::Command::Delete { scope, key: "a".into() });
        assert_eq!((delete.needs_at(three), delete.needs_at(four)), (FIRST, four));
        let raise = |to| Command::Level(level::Command::Raise { to, heard: Vec::new() });
        assert_eq!((raise(three).needs_at(FIRST), raise(nine).needs_at(three)), (three, nine));
        let marked = Command::Retried(Box::new(raise(nine)));
        assert_eq!((marked.needs_at(FIRST), marked.needs()), (nine, FeatureLevel(2)));
    }
}
